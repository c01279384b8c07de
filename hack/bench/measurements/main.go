// Command bench-measurements runs three trials on this machine, without a cluster. Their pods use
// known amounts of processor, memory, page cache, disk, volumes and network, count their own stages
// and faults, and restore data. It prints Assay's measurements beside those of another source, and
// fails if they differ by more than 2%. The other sources share no code with Assay's:
//
//   - for disks and restored data, the program that reads and writes counts its own bytes,
//   - for processor, memory, page cache and network, this program reads the kernel's files ten
//     times a second, outside of the pods,
//   - for volumes, du, and for latencies and counters, the client's own lines.
//
// Energy is not compared: virtual machines have no counters of it.
//
// Run it as root from the repository's root:
//
//	bench-measurements PROGRAM      the path of kubectl-assay
package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:embed system.yaml
var system string

//go:embed use.yaml
var use string

//go:embed percentiles.yaml
var percentiles string

//go:embed counters.yaml
var counters string

// run is an experiment of one trial.
type run struct {
	name, file string
	// second computes the measurements from the other sources.
	second func(*bundle, *outside) (map[string]second, error)
}

// An experiment has 16 measurements at most.
var runs = []run{
	{"use", system + "---\n" + use, ofUse},
	{"percentiles", system + "---\n" + percentiles, ofUse},
	{"counters", counters, ofCounters},
}

const (
	// limit of the trial, and of the steps after it.
	limit = 3 * time.Minute
	// tolerance is how much two sources may differ.
	tolerance = 0.02
	// notDecided is the exit code of a run whose claim is undecided: one trial has no interval.
	notDecided = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bench-measurements PROGRAM")
		os.Exit(2)
	}
	if err := measure(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-measurements:", err)
		os.Exit(1)
	}
}

// measure runs all, and prints a line for each measurement.
func measure(ctx context.Context, program string) error {
	dir, err := os.MkdirTemp("", "bench-measurements-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &table{out: os.Stdout}
	t.head()
	for _, r := range runs {
		kept, other, err := r.trial(ctx, program, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		sources, err := r.second(kept, other)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		t.compare(kept, sources)
	}
	return t.end()
}

// trial runs the experiment, and reads the kernel's files at the same time.
func (r run) trial(ctx context.Context, program, dir string) (*bundle, *outside, error) {
	file, folder, packed := filepath.Join(dir, r.name+".yaml"), filepath.Join(dir, r.name), filepath.Join(dir, r.name+".tar.gz")
	if err := os.WriteFile(file, []byte(r.file), 0o600); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	polling, stop := context.WithCancel(ctx)
	seen := make(chan *outside)
	go func() { seen <- poll(polling) }()
	out, err := call(ctx, program, "run", "--local="+folder, "-f", file, "--wait")
	stop()
	other := <-seen
	if undecided := new(exec.ExitError); err != nil && !(errors.As(err, &undecided) && undecided.ExitCode() == notDecided) {
		return nil, nil, fmt.Errorf("run: %w\n%s", err, out)
	}
	if out, err := call(ctx, program, "bundle", "--local="+folder, r.name, "-o", packed); err != nil {
		return nil, nil, fmt.Errorf("bundle: %w\n%s", err, out)
	}
	kept, err := unpack(packed)
	return kept, other, err
}

func call(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...) // #nosec G204 -- the program is what is measured
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// trial has the compared fields of a trial's results.
type trial struct {
	ZeroUnixNanos int64 `json:"zeroUnixNanos"`
	MeasureNanos  int64 `json:"measureNanos"`
	Measurements  []struct {
		Name   string   `json:"name"`
		Value  *float64 `json:"value"`
		Reason string   `json:"reason"`
	} `json:"measurements"`
	Pods []struct {
		Name      string `json:"name"`
		Part      string `json:"part"`
		Region    string `json:"region"`
		Resources struct {
			Containers []struct {
				DiskFrom string `json:"diskFrom"`
			} `json:"containers"`
		} `json:"resources"`
	} `json:"pods"`
}

// bundle has the needed parts of a bundle: the trial, and the pods' own files by name and pod.
type bundle struct {
	trial trial
	files map[string]map[string]string
}

func unpack(file string) (*bundle, error) {
	f, err := os.Open(file) // #nosec G304 -- this program's own file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	b := &bundle{files: map[string]map[string]string{}}
	in := tar.NewReader(zipped)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		parts := strings.Split(header.Name, "/")
		base := parts[len(parts)-1]
		switch pod := podOf(parts); {
		case base == "trial.json":
			if err := json.Unmarshal(content, &b.trial); err != nil {
				return nil, fmt.Errorf("%s: %w", header.Name, err)
			}
		case pod != "" && strings.HasSuffix(base, ".csv"):
			if b.files[base] == nil {
				b.files[base] = map[string]string{}
			}
			b.files[base][pod] = string(content)
		}
	}
	if b.trial.ZeroUnixNanos == 0 {
		return nil, errors.New("the bundle does not say when t = 0 was")
	}
	return b, nil
}

// podOf is the pod's name in the path of a pod's file: trials/NAME/pods/POD/...
func podOf(parts []string) string {
	for i, part := range parts[:len(parts)-1] {
		if part == "pods" {
			return parts[i+1]
		}
	}
	return ""
}

// kept are the files of a name, by pod. There must be a file for each of so many pods.
func (b *bundle) kept(name string, pods int) (map[string]string, error) {
	if files := b.files[name]; len(files) == pods {
		return files, nil
	}
	return nil, fmt.Errorf("%d pods have %s in the bundle, want %d", len(b.files[name]), name, pods)
}

// table prints the measurements, and collects what is wrong.
type table struct {
	out   io.Writer
	lines int
	wrong []string
	// furthest is how far the sources of a measurement differ at most, as a share.
	furthest     float64
	furthestName string
}

func (t *table) head() {
	fmt.Fprintf(t.out, "%-23s %14s %14s %8s  %s\n", "measurement", "Assay", "the other", "off", "the other source")
}

// compare prints a line for each measurement of a trial.
func (t *table) compare(b *bundle, sources map[string]second) {
	for _, m := range b.trial.Measurements {
		t.lines++
		s, has := sources[m.Name]
		switch {
		case m.Value == nil:
			t.wrong = append(t.wrong, m.Name+" was not measured: "+m.Reason)
			fmt.Fprintf(t.out, "%-23s %14s %14.4g %8s  %s\n", m.Name, "-", s.value, "-", s.from)
			continue
		case !has:
			t.wrong = append(t.wrong, "there is no other source of "+m.Name)
			continue
		}
		off := math.Abs(*m.Value-s.value) / math.Abs(s.value)
		fmt.Fprintf(t.out, "%-23s %14.4f %14.4f %7.2f%%  %s\n", m.Name, *m.Value, s.value, 100*off, s.from)
		if off > t.furthest {
			t.furthest, t.furthestName = off, m.Name
		}
		if !(off <= tolerance) {
			t.wrong = append(t.wrong, fmt.Sprintf("%s is off by %.2f%%", m.Name, 100*off))
		}
	}
	for _, p := range b.trial.Pods {
		for _, c := range p.Resources.Containers {
			if p.Part == "replica" {
				fmt.Fprintf(t.out, "%s: disks from %s\n", p.Name, c.DiskFrom)
			}
		}
	}
}

// end fails if two sources differ.
func (t *table) end() error {
	if len(t.wrong) > 0 {
		return errors.New(strings.Join(t.wrong, "; "))
	}
	fmt.Fprintf(t.out, "all %d within %.0f%%; the furthest is %s, %.2f%%\n", t.lines, 100*tolerance, t.furthestName, 100*t.furthest)
	return nil
}
