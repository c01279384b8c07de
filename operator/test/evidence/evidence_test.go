package evidence

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/results"
)

// folders is a pattern for the folders of evidence. EVIDENCE names another folder, to check its
// bundles before they are kept.
func folders() string {
	if dir := os.Getenv("EVIDENCE"); dir != "" {
		return dir
	}
	return "../../../experiments/*/evidence"
}

// outputOf is the file with what the clients of a bundle's trials printed:
// experiments/FOLDER/evidence/NAME.tar.zst has it in experiments/outputs/FOLDER/NAME.tar.zst.
func outputOf(bundle string) string {
	folder := filepath.Dir(filepath.Dir(bundle))
	return filepath.Join(filepath.Dir(folder), "outputs", filepath.Base(folder), filepath.Base(bundle))
}

func stemOf(bundle string) string {
	stem, _ := archive.Cut(bundle)
	return stem
}

func bundles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folders(), "*.tar.*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no bundle", folders())
	}
	return files
}

// The committed results follow from the trials in the bundle.
func TestBundlesVerify(t *testing.T) {
	for _, bundle := range bundles(t) {
		t.Run(filepath.Base(bundle), func(t *testing.T) {
			var out bytes.Buffer
			if err := verify.Run(&session.Session{Out: &out, Err: &out}, verify.Options{Bundle: bundle}); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// The throughput and latency of each trial equal the results of the artifact's own formula for its
// clients' output.
func TestResultsAreThoseOfTheArtifact(t *testing.T) {
	compared := 0
	for _, bundle := range bundles(t) {
		packed, err := os.ReadFile(outputOf(bundle))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		printed, err := readOutputs(packed)
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials(t, bundle) {
			pods := printed.trials[trial.Name]
			if trial.Outcome != "Succeeded" || len(pods) == 0 {
				continue
			}
			t.Run(trial.Name, func(t *testing.T) {
				var clients []string
				for _, pod := range trial.Pods {
					if pod.Part == "client" {
						clients = append(clients, pod.Name)
					}
				}
				var got []string
				for pod := range pods { // a Job adds random letters to a client's name
					got = append(got, pod[:max(0, strings.LastIndex(pod, "-"))])
				}
				slices.Sort(got)
				if !slices.Equal(got, slices.Sorted(slices.Values(clients))) {
					t.Fatalf("there is output of %v; the clients were %v", got, clients)
				}
				for name, pod := range pods {
					if err := pod.complete(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				if err := agrees(trial, pods, printed.clock); err != nil {
					t.Error(err)
				}
				t.Logf("%v: %v tx/s, mean %v ms", trial.Coordinates, trial.Summary.Throughput, trial.Summary.MeanMillis)
			})
			delete(printed.trials, trial.Name)
			compared++
		}
	}
	if os.Getenv("EVIDENCE") == "" && compared < 68 {
		t.Errorf("%d trials were compared, want those of six bundles: 68", compared)
	}
}

// trials of a bundle.
func trials(t *testing.T, bundle string) []results.Trial {
	t.Helper()
	data, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	var all []results.Trial
	err = archive.Read(bytes.NewReader(data), func(name string) bool { return path.Base(name) == "trial.json" }, func(name string, data []byte) error {
		trial, err := results.DecodeTrial(data)
		all = append(all, trial)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", bundle, err)
	}
	return all
}

// The test detects a difference of one line, or of a microsecond.
func TestAgreesSeesDifferences(t *testing.T) {
	const clock, zero = int64(1e18), int64(5e9) // t = 0 on the monotonic clock
	text := "starting client threadpool\nrw,2000000,4999000000,0\nrw,1000999,5500000000,0\nrw,3000000,5900000000,1\nrw,2000000,6000500000,1\n#end,1,2,0\n" +
		"20261122 NOTICE: Average latency is 1500499 ns (1.50 ms)\n"
	printed, err := readOutput(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := printed.complete(); err != nil {
		t.Errorf("complete: %v", err)
	}
	trial := func(committed, micros int64, throughput, mean float64) results.Trial {
		return results.Trial{
			ZeroUnixNanos: clock + zero + int64(clockTolerance)/10, MeasureNanos: int64(time.Second),
			Timeline: &results.Timeline{IntervalMillis: 1000, FirstMillis: -1000, Committed: []int64{1, committed, 1}, LatencySumMicros: []int64{2000, micros, 2000}},
			Summary:  results.Summary{Throughput: throughput, MeanMillis: mean},
		}
	}
	for name, tc := range map[string]struct {
		trial results.Trial
		want  string
	}{
		"the same":                 {trial(2, 4000, 2, 2.0004), ""},
		"a line more":              {trial(5, 9000, 5, 1.8), "the results have 5 transactions"},
		"a microsecond more":       {trial(2, 4001, 2, 2), "the results have 2 transactions and 4001 us"},
		"another throughput":       {trial(2, 4000, 2.1, 2), "2 lines in 1 s are 2 a second"},
		"another mean":             {trial(2, 4000, 2, 2.01), "the mean of the lines is 2 ms"},
		"within the clocks' error": {trial(3, 6000, 3, 2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := agrees(tc.trial, map[string]output{"client-0": printed}, clock)
			if got := err != nil; got != (tc.want != "") || got && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("agrees: %v; want %q", err, tc.want)
			}
		})
	}
	printed.lines = printed.lines[1:]
	if printed.complete() == nil {
		t.Error("complete: a line is missing, and nothing is said")
	}
}
