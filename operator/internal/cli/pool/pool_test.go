package pool_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/cli/pool"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// site writes the results of one site, where the throughput of b is higher than that of a by a
// share.
func site(t *testing.T, name string, share float64) string {
	t.Helper()
	e := results.Experiment{
		Format: results.ExperimentFormat, Name: name, UID: "uid-" + name, Axes: []results.Axis{{Name: "variant", Values: []string{"a", "b"}}},
		Spec: json.RawMessage(`{"systems":[{"name":"kv"}],"claims":[{"name":"faster","statement":"b is faster.","expr":"throughput(variant='b') > throughput(variant='a')"}]}`),
	}
	for point, variant := range []string{"a", "b"} {
		e.Points = append(e.Points, results.PointResult{Index: int32(point), Coordinates: map[string]string{"variant": variant}})
		for k := range 5 {
			x := 100 * (1 + share*float64(point) + 0.01*float64((3*k+2*point)%5-2))
			e.Trials = append(e.Trials, results.TrialLine{Number: int32(2*k + point), PointIndex: int32(point), Repetition: int32(k), Outcome: "Succeeded", Committed: 1e6, Throughput: x,
				Coordinates: map[string]string{"variant": variant}})
		}
	}
	text, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPool(t *testing.T) {
	files := []string{site(t, "north", 0.10), site(t, "south", 0.20), site(t, "west", 0.14)}
	for form, wants := range map[string][]string{
		"text": {"site 1", "north", "faster", "left by right", "next site", "Random effects", "3 runs, each taken for a site of its own"},
		"json": {`"claim": "faster"`, `"tau2"`, `"prediction"`},
		"yaml": {"claim: faster", "tau2: ", "prediction:"},
		"html": {"<h1>Several sites together</h1>", "<td>south</td>", "faster"},
	} {
		var out bytes.Buffer
		if err := pool.Run(t.Context(), &session.Session{Out: &out, Width: 200}, pool.Options{Runs: files, Output: form}); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not say %q:\n%s", form, want, out.String())
			}
		}
		if form == "json" {
			var p model.PooledEffects
			if err := json.Unmarshal(out.Bytes(), &p); err != nil || len(p.Effects) != 1 {
				t.Fatalf("%v: %s", err, out.String())
			}
			e := p.Effects[0]
			if !e.Log || e.Mean.Value < 1.13 || e.Mean.Value > 1.16 || *e.Mean.Low > 1.10 || *e.Mean.High < 1.18 || *e.Prediction.Low > *e.Mean.Low || *e.Prediction.High < *e.Mean.High || e.I2 < 0.9 {
				t.Errorf("pooled: %+v", e)
			}
		}
	}
	// With two sites an I² of 0 looks like agreement.
	var out bytes.Buffer
	if err := pool.Run(t.Context(), &session.Session{Out: &out, Width: 500}, pool.Options{Runs: files[:2], Output: "text"}); err != nil || !strings.Contains(out.String(), "Two sites say little of how much sites differ.") {
		t.Errorf("two sites: %v\n%s", err, out.String())
	}
	for name, tc := range map[string]struct {
		o    pool.Options
		want string
	}{
		"a run twice":  {pool.Options{Runs: []string{files[0], files[0]}, Output: "text"}, "are the same run"},
		"another form": {pool.Options{Runs: files, Output: "pdf"}, "choose text, json, yaml or html"},
		"no file":      {pool.Options{Runs: []string{files[0], "./none.json"}, Output: "text"}, "none.json"},
	} {
		if err := pool.Run(t.Context(), &session.Session{Out: &bytes.Buffer{}}, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
