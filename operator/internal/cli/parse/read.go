package parse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

// Reading is what Assay reads from a client's output.
type Reading struct {
	Format string `json:"format"`
	// Numbers in the order of the output.
	Numbers []Number `json:"numbers"`
	// Operations is how many operations a report lists line by line. First and Last are the
	// instants at which the first one begins and the last one ends.
	Operations int64  `json:"operations,omitempty"`
	First      string `json:"first,omitempty"`
	Last       string `json:"last,omitempty"`
	// Kinds of operations, if the report tells them apart.
	Kinds []results.OperationSummary `json:"kinds,omitempty"`
	// Seconds that a summary covers: its count divided by its rate.
	Seconds float64 `json:"seconds,omitempty"`
	// Counters of other lines in the report: otherLines, cutLines, unlistedOutcome.
	Counters map[string]int64 `json:"counters,omitempty"`
	// Unreported are the counters that the report does not have.
	Unreported []string `json:"unreported,omitempty"`
	Remarks    []string `json:"remarks,omitempty"`
	// Unmatched is how many lines match nothing. FirstUnmatched are the first of them.
	Unmatched      int64    `json:"unmatched,omitempty"`
	FirstUnmatched []string `json:"firstUnmatched,omitempty"`

	// Summary in the form of the results of a trial.
	Summary results.Summary `json:"-"`
}

// Number is a number with its unit, if it has one.
type Number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// mostShown is how many unmatched lines are shown.
const mostShown = 5

// longest is the longest run that a trial can have.
const longest = 26 * time.Hour

// Read reads a client's output as a trial would. load is how long clients are to send; 0: it is not
// known. If there is an error, the Reading still has all that is known.
func Read(of *v1alpha1.ClientResults, output io.ReadSeeker, load time.Duration) (Reading, error) {
	r := Reading{Format: string(of.Format)}
	o := parsers.Options{
		Clients: 1, Records: plan.Records(of.Records), Histograms: plan.Histograms(of.Histograms), Summary: plan.Summary(of.Summary), Whole: true, Windows: timeline.Windows{Measure: load},
		Other: func(line []byte) {
			if r.Unmatched++; len(r.FirstUnmatched) < mostShown {
				r.FirstUnmatched = append(r.FirstUnmatched, string(line[:min(len(line), 160)]))
			}
		},
	}
	if of.Format == v1alpha1.FormatSummary {
		c, err := parsers.Parse(string(of.Format), output, o)
		if err != nil {
			return r, err
		}
		return r, r.take(c, 0)
	}
	return r, r.operations(of, output, o)
}

// operations reads a report with a line for each operation. The report does not say when the run
// began. So operations reads it twice: first to find the first begin and the last end, then with a
// window between these two.
func (r *Reading) operations(of *v1alpha1.ClientResults, output io.ReadSeeker, o parsers.Options) error {
	seen := &parsers.Seen{}
	first := o
	first.Other, first.Seen, first.Windows = nil, seen, timeline.Windows{}
	if o.Records != nil && o.Records.ByArrival() {
		first.Arrivals, o.Arrivals = atOnce(), atOnce()
	}
	c, err := parsers.Parse(string(of.Format), output, first)
	if _, again := output.Seek(0, io.SeekStart); again != nil {
		return fmt.Errorf("read the output again: %w", again)
	}
	if err != nil {
		return err
	}
	r.Operations = seen.Operations
	if seen.Operations == 0 {
		r.Counters = c.Driver
		_, err := parsers.Parse(string(of.Format), output, o) // finds the lines that nothing matches
		return errors.Join(err, errors.New("no line is an operation: the trial would end with NothingMeasured"))
	}
	r.First, r.Last = instantText(of.Format, o.Records, seen.First), instantText(of.Format, o.Records, seen.Last)
	span := seen.Last - seen.First
	if span > longest {
		return fmt.Errorf("the operations are from %s to %s, which is longer than any trial: look at the unit and the clock of instant", r.First, r.Last)
	}
	if onWallClock(of.Format, o.Records) && time.Unix(0, int64(seen.Last)).Before(firstTrial) {
		return fmt.Errorf("the operations are from %s to %s, when no trial ran, and it would end with NothingMeasured: look at the unit of instant; if the client counts from its own start, set clock: SinceStart", r.First, r.Last)
	}
	o.ZeroMonotonicNanos, o.ZeroUnixNanos, o.StartNanos = int64(seen.First), int64(seen.First), -int64(seen.First)
	o.Windows.Measure = span + 1
	if c, err = parsers.Parse(string(of.Format), output, o); err != nil {
		return err
	}
	return r.take(c, span)
}

// atOnce returns arrival times for an output whose lines have none: all lines count as one arrival.
func atOnce() io.Reader {
	return bytes.NewReader(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, math.MaxInt64), 0))
}

// firstTrial is earlier than any run whose output Assay reads, and long after 1970.
var firstTrial = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// onWallClock reports whether the instants of a report are on the wall clock.
func onWallClock(format v1alpha1.ResultsFormat, records *results.Records) bool {
	return format == v1alpha1.FormatHdrHistogram || records != nil && records.Instant.Clock == results.ClockWall && !records.ByArrival()
}

// instantText writes an instant of a clock.
func instantText(format v1alpha1.ResultsFormat, records *results.Records, at time.Duration) string {
	if onWallClock(format, records) {
		return time.Unix(0, int64(at)).UTC().Format(time.RFC3339Nano)
	}
	return at.String()
}

// take keeps the numbers of a report.
func (r *Reading) take(c results.Client, span time.Duration) error {
	c.MeasureNanos = int64(span) + 1 // one more than span, so that the last end is inside the window
	merged, err := results.Merge([]results.Client{c})
	if err != nil {
		return err
	}
	s := merged.Summary
	r.Summary, r.Kinds = s, s.Operations
	r.Counters, r.Unreported, r.Remarks = merged.Driver, s.Unreported, s.Remarks
	r.Numbers = numbersOf(s)
	if span == 0 && s.Throughput > 0 {
		r.Seconds = float64(s.Committed) / s.Throughput
	}
	if s.Committed == 0 {
		return errors.New("no transaction committed: the trial would end with NothingMeasured")
	}
	return nil
}

// numbersOf returns the numbers of a summary, in the order in which people read them.
func numbersOf(s results.Summary) (all []Number) {
	for _, n := range []struct {
		name, counter string
		value         int64
	}{
		{"Committed", "", s.Committed}, {"Aborted", results.CounterAborted, s.Aborted},
		{"Errors", results.CounterErrors, s.Errors}, {"Timeouts", results.CounterTimeouts, s.Timeouts},
	} {
		if !slices.Contains(s.Unreported, n.counter) {
			all = append(all, Number{n.name, float64(n.value), ""})
		}
	}
	all = append(all, Number{"Throughput", s.Throughput, "/s"})
	latencies := map[string]float64{"MeanLatency": s.MeanMillis, "MaxLatency": s.MaxMillis, "P10Latency": s.P10Millis, "P50Latency": s.P50Millis,
		"P90Latency": s.P90Millis, "P99Latency": s.P99Millis, "P999Latency": s.P999Millis}
	for name, millis := range s.Percentiles {
		latencies[name+"Latency"] = millis
	}
	for _, name := range byRank(latencies) {
		if latencies[name] > 0 {
			all = append(all, Number{name, latencies[name], "ms"})
		}
	}
	for _, name := range sortedKeys(s.Numbers) {
		all = append(all, Number{name, s.Numbers[name], ""})
	}
	return all
}

// byRank sorts latencies: the mean, the percentiles, the longest.
func byRank(latencies map[string]float64) []string {
	rank := func(name string) float64 {
		switch {
		case name == results.NumberMax:
			return 100
		case name == results.NumberMean:
			return 0
		}
		return results.Percentile(name)
	}
	names := sortedKeys(latencies)
	slices.SortStableFunc(names, func(a, b string) int { return int(1000 * (rank(a) - rank(b))) })
	return names
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// write prints the numbers for people.
func (r *Reading) write(w io.Writer) {
	fmt.Fprintf(w, "format %s\n", r.Format)
	if r.Operations > 0 {
		fmt.Fprintf(w, "%d operations, from %s to %s\n", r.Operations, r.First, r.Last)
	}
	for _, n := range r.Numbers {
		fmt.Fprintf(w, "  %-16s %.10g %s\n", n.Name, n.Value, n.Unit)
	}
	for _, k := range r.Kinds {
		fmt.Fprintf(w, "  of %s: %d committed, mean %.6g ms, P50 %.6g, P95 %.6g, P99 %.6g, max %.6g ms\n",
			k.Name, k.Committed, k.MeanMillis, k.Percentiles["P50"], k.Percentiles["P95"], k.Percentiles["P99"], k.MaxMillis)
	}
	if r.Seconds > 0 {
		fmt.Fprintf(w, "of %.10g s, by count and rate\n", r.Seconds)
	}
	if len(r.Unreported) > 0 {
		fmt.Fprintf(w, "not known: %s\n", strings.Join(r.Unreported, ", "))
	}
	for _, name := range sortedKeys(r.Counters) {
		fmt.Fprintf(w, "%s: %d\n", name, r.Counters[name])
	}
	for _, remark := range r.Remarks {
		fmt.Fprintf(w, "remark: %s\n", remark)
	}
	if r.Unmatched > 0 {
		fmt.Fprintf(w, "%d lines match nothing; the first of them:\n", r.Unmatched)
		for _, line := range r.FirstUnmatched {
			fmt.Fprintf(w, "  | %s\n", strings.TrimRight(line, "\r\n"))
		}
	}
}
