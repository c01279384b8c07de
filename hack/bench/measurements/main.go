// Command bench-measurements runs one trial on this machine, without a cluster. Its pods use known
// amounts of processor, memory, page cache, disk, volumes and network. It prints Assay's
// measurements beside those of another source, and fails if they differ by more than 2%. The other
// sources share no code with Assay's:
//
//   - for disks, the program that reads and writes counts its own bytes,
//   - for processor, memory, page cache and network, this program reads the kernel's files four
//     times a second, outside of the pods,
//   - for volumes, du, and for latencies, the client's own lines, sorted.
//
// Run it as root from the repository's root:
//
//	bench-measurements PROGRAM      the path of kubectl-assay
package main

import (
	"archive/tar"
	"bytes"
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

//go:embed experiment.yaml
var experimentFile []byte

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

func measure(ctx context.Context, program string) error {
	dir, err := os.MkdirTemp("", "bench-measurements-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, folder, packed := filepath.Join(dir, "experiment.yaml"), filepath.Join(dir, "results"), filepath.Join(dir, "bundle.tar.gz")
	if err := os.WriteFile(file, experimentFile, 0o600); err != nil {
		return err
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
		return fmt.Errorf("run: %w\n%s", err, out)
	}
	if out, err := call(ctx, program, "bundle", "--local="+folder, "measurements", "-o", packed); err != nil {
		return fmt.Errorf("bundle: %w\n%s", err, out)
	}
	kept, err := unpack(packed)
	if err != nil {
		return err
	}
	return compare(os.Stdout, kept, other)
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

// bundle has the needed parts of a bundle.
type bundle struct {
	trial trial
	// disks are the accounts of the replicas by pod, and operations the lines of the clients.
	disks, operations map[string]string
}

func unpack(file string) (*bundle, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	b := &bundle{disks: map[string]string{}, operations: map[string]string{}}
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
		switch {
		case base == "trial.json":
			if err := json.NewDecoder(bytes.NewReader(content)).Decode(&b.trial); err != nil {
				return nil, fmt.Errorf("%s: %w", header.Name, err)
			}
		case base == "disk.csv" && len(parts) > 2:
			b.disks[podOf(parts)] = string(content)
		case base == "operations.csv" && len(parts) > 2:
			b.operations[podOf(parts)] = string(content)
		}
	}
	if b.trial.ZeroUnixNanos == 0 || len(b.disks) != 2 || len(b.operations) != 2 {
		return nil, fmt.Errorf("the bundle has the accounts of %d replicas and %d clients, and t = 0 at %d; it must have 2, 2, and one", len(b.disks), len(b.operations), b.trial.ZeroUnixNanos)
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

// compare prints a line for each measurement, and fails if two sources differ.
func compare(out io.Writer, b *bundle, other *outside) error {
	second, err := secondSources(b, other)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-18s %12s %12s %8s  %s\n", "measurement", "Assay", "the other", "off", "the other source")
	var wrong []string
	for _, m := range b.trial.Measurements {
		s, has := second[m.Name]
		switch {
		case m.Value == nil:
			wrong = append(wrong, m.Name+" was not measured: "+m.Reason)
			fmt.Fprintf(out, "%-18s %12s %12.4g %8s  %s\n", m.Name, "-", s.value, "-", s.from)
			continue
		case !has:
			wrong = append(wrong, "there is no other source of "+m.Name)
			continue
		}
		off := math.Abs(*m.Value-s.value) / math.Abs(s.value)
		fmt.Fprintf(out, "%-18s %12.4f %12.4f %7.2f%%  %s\n", m.Name, *m.Value, s.value, 100*off, s.from)
		if !(off <= tolerance) {
			wrong = append(wrong, fmt.Sprintf("%s is off by %.2f%%", m.Name, 100*off))
		}
	}
	for _, p := range b.trial.Pods {
		for _, c := range p.Resources.Containers {
			if p.Part == "replica" {
				fmt.Fprintf(out, "%s: disks from %s\n", p.Name, c.DiskFrom)
			}
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	fmt.Fprintf(out, "all %d within %.0f%%\n", len(b.trial.Measurements), 100*tolerance)
	return nil
}
