package importer

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli/compare"
	"assay.dev/assay/operator/internal/cli/pequin"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/testpequin"
)

// oldRun imports a folder of results. It returns the written file and the results.
func oldRun(t *testing.T, evaluation testpequin.Evaluation) (string, results.Experiment) {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, testpequin.Folder(evaluation)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "old.json")
	s := &session.Session{Out: io.Discard, Err: io.Discard, Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
	if err := Results(t.Context(), s, ResultsOptions{Folders: []string{root}, Name: "old", Output: file}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := results.DecodeExperiment(b)
	if err != nil {
		t.Fatal(err)
	}
	return file, e
}

// newRun fakes the results of an imported Experiment. At each point it has three trials, whose
// throughputs are within 2% of the old run with as many clients.
func newRun(t *testing.T, config string, old results.Experiment) string {
	t.Helper()
	yaml, _, err := run(t, PequinOptions{File: configFile(t, config), Options: pequin.Options{Name: "new"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := check(t.Context(), []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	e := results.Experiment{Name: "new", UID: "u", Axes: p.Axes, Claims: []results.ClaimResult{}}
	for i, point := range p.Points {
		throughput, mean := 100., 5.
		for _, q := range old.Trials {
			if q.Coordinates[old.Axes[0].Name] == strconv.Itoa(int(point.Template.Clients.Count)) {
				throughput, mean = q.Throughput, q.MeanMillis
			}
		}
		for repetition := range 3 {
			by := 1 + 0.02*float64(repetition-1)
			e.Trials = append(e.Trials, results.TrialLine{Number: int32(len(e.Trials)), PointIndex: int32(i), Repetition: int32(repetition), Coordinates: point.Template.Point.Coordinates,
				Outcome: stats.Succeeded, Throughput: throughput * by, MeanMillis: mean / by})
		}
	}
	e.Points = stats.Points(e.Trials)
	b, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "new.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An earlier run and a new run of one configuration once had axes with different names. So no point
// of one run matched a point of the other.
func TestOldAndNewRunAreCompared(t *testing.T) {
	tests := map[string]struct {
		evaluation    testpequin.Evaluation
		config        string
		both, onlyNew []string
	}{
		"orders": {testpequin.Orders, tpccConfig, []string{"12", "16", "24", "28", "32", "36"}, []string{"44"}},
		// The folder is of an evaluation with fewer clients than the configuration. Its point of 30
		// processes had only 25 correct clients, so it does not match.
		"ranges": {testpequin.Ranges, rangeConfig, []string{"18", "24", "36", "42"}, []string{"30", "54", "66"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file, old := oldRun(t, tc.evaluation)
			var out bytes.Buffer
			s := &session.Session{Out: &out, Err: io.Discard, Width: 200}
			err := compare.Run(t.Context(), s, compare.Options{A: file, B: newRun(t, tc.config, old), Output: "csv"})
			// The artifact ran each point once. So each point has a ratio and no test.
			if session.ExitCode(err) != session.ExitUndecided {
				t.Errorf("exit code %d (%v)", session.ExitCode(err), err)
			}
			var both []string
			for line := range strings.Lines(out.String()) {
				cells := strings.Split(line, ",")
				if len(cells) > 9 && cells[1] == "throughput" {
					both = append(both, cells[0])
					if !strings.HasPrefix(cells[9], "1") && !strings.HasPrefix(cells[9], "0.99999") {
						t.Errorf("the ratio is %s, want 1: %s", cells[9], line)
					}
				}
			}
			if strings.Join(both, " ") != strings.Join(tc.both, " ") {
				t.Errorf("compared at %v, want %v:\n%s", both, tc.both, &out)
			}
			out.Reset()
			_ = compare.Run(t.Context(), s, compare.Options{A: file, B: newRun(t, tc.config, old), Output: "text"})
			for _, n := range tc.onlyNew {
				if !strings.Contains(out.String(), "Only B has") || !strings.Contains(out.String(), "clients="+n) {
					t.Errorf("nothing says that only the new run has %s clients:\n%s", n, &out)
				}
			}
		})
	}
}
