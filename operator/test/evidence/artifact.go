// Package evidence verifies the files under experiments/*/evidence: bundles. It compares some of
// them with the output of the clients of a paper's own program, under experiments/outputs.
//
//	FOLDER/evidence/NAME.tar.zst    a bundle
//	outputs/FOLDER/NAME.tar.zst     TRIAL/POD.txt: stdout and stderr of each client of the bundle's valid trials, as the Pequin artifact prints them;
//	                                clock: CLOCK_REALTIME less CLOCK_MONOTONIC of the machine, in ns
package evidence

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/results"
)

// clockTolerance is how far t = 0 of a pod may differ from that of its trial. It covers the error
// of the comparison between the machines' clocks, and between the machine's two clocks.
const clockTolerance = 20 * time.Millisecond

// line is a transaction in the output of the artifact's client: "rw,3703921,7548133599816,0". Times
// are in ns.
type line struct{ latency, end, client int64 }

// output is what a client's process printed.
type output struct {
	lines []line
	// averages are the mean latencies that the program printed itself, in whole ns: one for each of
	// its threads that ended normally.
	averages []int64
}

var averageLine = regexp.MustCompile(`Average latency is (\d+) ns`)

// readOutput reads the lines of one process. It skips all lines but transactions and means: the two
// streams of the process are in one file.
func readOutput(r io.Reader) (output, error) {
	var o output
	in := bufio.NewScanner(r)
	for in.Scan() {
		if m := averageLine.FindStringSubmatch(in.Text()); m != nil {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				return o, err
			}
			o.averages = append(o.averages, n)
			continue
		}
		fields := strings.Split(in.Text(), ",")
		if len(fields) != 4 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		var n [3]int64
		for i, field := range fields[1:] {
			var err error
			if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
				return o, fmt.Errorf("%q is no transaction: %w", in.Text(), err)
			}
		}
		o.lines = append(o.lines, line{n[0], n[1], n[2]})
	}
	return o, in.Err()
}

// outputs of the clients of all trials.
type outputs struct {
	trials map[string]map[string]output // trial -> pod
	clock  int64                        // CLOCK_REALTIME less CLOCK_MONOTONIC, ns
}

func readOutputs(packed []byte) (outputs, error) {
	all := outputs{trials: map[string]map[string]output{}}
	unpacked, err := archive.Unzip(bytes.NewReader(packed))
	if err != nil {
		return all, err
	}
	defer func() { _ = unpacked.Close() }() // nothing is written
	files := tar.NewReader(unpacked)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		name := path.Clean(header.Name)
		switch trial, pod := path.Split(name); {
		case header.Typeflag != tar.TypeReg:
		case name == "clock":
			text, err := io.ReadAll(files)
			if err != nil {
				return all, err
			}
			if all.clock, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
				return all, fmt.Errorf("clock: %w", err)
			}
		default:
			o, err := readOutput(files)
			if err != nil {
				return all, fmt.Errorf("%s: %w", name, err)
			}
			trial = path.Clean(trial)
			if all.trials[trial] == nil {
				all.trials[trial] = map[string]output{}
			}
			all.trials[trial][strings.TrimSuffix(pod, ".txt")] = o
		}
	}
}

// complete returns an error if the output of a process lacks a line. Each mean that the program
// printed must equal the mean of one client's lines, in whole ns, as the program computes it. A
// client that was killed before its end printed no mean.
func (o output) complete() error {
	sum, count := map[int64]int64{}, map[int64]int64{}
	for _, l := range o.lines {
		sum[l.client] += l.latency
		count[l.client]++
	}
	var means []int64
	for client := range sum {
		means = append(means, sum[client]/count[client])
	}
	slices.Sort(means)
	left := slices.Clone(means)
	for _, average := range o.averages {
		i := slices.Index(left, average)
		if i < 0 {
			return fmt.Errorf("the program says that a client's mean is %d ns; those of its lines are %v", average, means)
		}
		left = slices.Delete(left, i, i+1)
	}
	return nil
}

// totals are the inputs of the artifact's formula: the number of lines, and the sum of their
// latencies. Each latency is in whole microseconds, since Assay adds those up.
type totals struct{ count, micros int64 }

// within are the totals of the lines that end in the window, for every possible instant of t = 0.
func (o output) within(zero int64, measure time.Duration) []totals {
	var zeros []int64
	for _, l := range o.lines {
		for _, edge := range []int64{l.end, l.end + 1, l.end - int64(measure), l.end - int64(measure) + 1} {
			if d := edge - zero; d >= -int64(clockTolerance) && d <= int64(clockTolerance) {
				zeros = append(zeros, edge)
			}
		}
	}
	var all []totals
	for _, z := range append(zeros, zero) {
		var t totals
		for _, l := range o.lines {
			if l.end >= z && l.end < z+int64(measure) {
				t.count++
				t.micros += l.latency / 1000
			}
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// reported are the same totals from the results of a trial.
func reported(t results.Trial) totals {
	var sum totals
	for i, n := range t.Timeline.Committed {
		at := t.Timeline.FirstMillis + int64(i)*t.Timeline.IntervalMillis
		if at >= 0 && at < t.MeasureNanos/1e6 {
			sum.count += n
			sum.micros += t.Timeline.LatencySumMicros[i]
		}
	}
	return sum
}

// agrees compares a trial's results with the output of its clients. Every process has its own t =
// 0, which differs from the trial's by at most the error of the clocks.
func agrees(t results.Trial, pods map[string]output, clock int64) error {
	want := reported(t)
	possible := []totals{{}}
	for _, pod := range slices.Sorted(keys(pods)) {
		var next []totals
		for _, before := range possible {
			for _, own := range pods[pod].within(t.ZeroUnixNanos-clock, time.Duration(t.MeasureNanos)) {
				next = append(next, totals{before.count + own.count, before.micros + own.micros})
			}
		}
		possible = next
	}
	if !slices.Contains(possible, want) {
		return fmt.Errorf("the results have %d transactions and %d us in the window; of the lines the window has one of %v", want.count, want.micros, possible)
	}
	seconds := time.Duration(t.MeasureNanos).Seconds()
	if got := float64(want.count) / seconds; got != t.Summary.Throughput {
		return fmt.Errorf("%d lines in %v s are %v a second; the results have %v", want.count, seconds, got, t.Summary.Throughput)
	}
	mean := float64(want.micros) / float64(want.count) / 1e3
	if d := t.Summary.MeanMillis/mean - 1; d > meanTolerance || d < -meanTolerance {
		return fmt.Errorf("the mean of the lines is %v ms; the results have %v", mean, t.Summary.MeanMillis)
	}
	return nil
}

// meanTolerance is how much the mean of a histogram with three digits may differ from the mean of
// its values.
const meanTolerance = 1e-3

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
