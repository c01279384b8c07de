package verify_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
)

// sealedFiles are the files of a bundle whose claims were sealed, and then changed in spec and
// results.
type sealedFiles struct {
	files

	results results.Experiment
	spec    v1alpha1.ExperimentSpec
}

func sealedBundle(t *testing.T, change func(*v1alpha1.ExperimentSpec)) sealedFiles {
	t.Helper()
	f := sealedFiles{files: experiment(t)}
	var object struct {
		Spec v1alpha1.ExperimentSpec `json:"spec"`
	}
	if err := json.Unmarshal(f.data["experiment.yaml"], &object); err != nil {
		t.Fatal(err)
	}
	f.spec = object.Spec
	kept := &results.Seal{At: time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC), Sealed: seal.Text(f.spec), SHA256: seal.Of(f.spec)}
	change(&f.spec)
	was, err := results.DecodeExperiment(f.data["results.json"])
	if err != nil {
		t.Fatal(err)
	}
	exp := &v1alpha1.Experiment{Spec: f.spec}
	exp.Name, exp.Status.Seed = was.Name, was.Seed
	systems := map[string]v1alpha1.SystemSpec{"ring": {Program: &v1alpha1.Program{Name: "Ring", Version: "2"}}}
	f.results = model.Build(exp, systems, was.Axes, was.Trials, was.Written)
	f.results.Seal = kept
	for _, n := range f.names {
		if strings.HasSuffix(n, "/trial.json") {
			f.sealTrial(t, n, kept.SHA256)
		}
	}
	return f
}

func (f *sealedFiles) sealTrial(t *testing.T, name, digest string) {
	t.Helper()
	trial, err := results.DecodeTrial(f.data[name])
	if err != nil {
		t.Fatal(err)
	}
	trial.Seal = digest
	if f.data[name], err = results.EncodeTrial(trial); err != nil {
		t.Fatal(err)
	}
}

// verify writes the bundle and verifies it.
func (f *sealedFiles) verify(t *testing.T) (said string, err error) {
	t.Helper()
	encoded, err := results.EncodeExperiment(f.results)
	if err != nil {
		t.Fatal(err)
	}
	applied, err := json.Marshal(map[string]any{"kind": "Experiment", "spec": f.spec})
	if err != nil {
		t.Fatal(err)
	}
	whole := f.with(t, "ro-crate-metadata.json", sumOf(f.data["results.json"]), sumOf(encoded)).replaced("results.json", encoded).replaced("experiment.yaml", applied)
	path := filepath.Join(t.TempDir(), "sealed.tar.gz")
	if err := os.WriteFile(path, whole.bundle(t), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = verify.Run(&session.Session{Out: &out}, verify.Options{Bundle: path})
	return out.String(), err
}

func TestSeal(t *testing.T) {
	easier := func(s *v1alpha1.ExperimentSpec) {
		s.Claims[0].Expr = "mean_latency(clients=10) < 2s"
		s.Tolerances.StartSpread = "7s"
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		then   func(*sealedFiles)
		code   int
		want   []string
		not    string
	}{
		"as sealed": {want: []string{"all are as they are said to be"}, not: "seal"},
		"no seal": {want: []string{"note: not sealed: nobody kept what the claims were before the first trial", "all are as they are said to be"},
			then: func(f *sealedFiles) {
				f.results.Seal = nil
				for _, n := range f.names {
					if strings.HasSuffix(n, "/trial.json") {
						f.sealTrial(t, n, "")
					}
				}
			}},
		"changed claims": {change: easier, code: session.ExitDifferent, want: []string{
			`differs: since the seal, and not said: claim fast: expr was "mean_latency(clients=10) < 1s", is "mean_latency(clients=10) < 2s"`,
			`differs: since the seal, and not said: tolerances.startSpread was`}},
		"changed claims, as the results say": {change: easier,
			then: func(f *sealedFiles) {
				changes, err := seal.Since(f.results.Seal.Sealed, f.spec)
				if err != nil {
					t.Fatal(err)
				}
				f.results.Seal.Changes = changes
			},
			want: []string{`note: since the seal: claim fast: expr was "mean_latency(clients=10) < 1s", is "mean_latency(clients=10) < 2s"`, "all are as they are said to be"}},
		"a change without effect": {code: session.ExitDifferent, want: []string{`it is said that since the seal claim fast: within was "1%", is "5%"; the spec says otherwise`},
			then: func(f *sealedFiles) {
				f.results.Seal.Changes = []results.SealChange{{Claim: "fast", Field: "within", Was: `"1%"`, Is: `"5%"`}}
			}},
		"changed claims and text": {change: easier, code: session.ExitDifferent, want: []string{"differs: what is said to have been sealed before the first trial has the digest"},
			then: func(f *sealedFiles) { f.results.Seal.Sealed = seal.Text(f.spec) }},
		"changed claims, text and digest": {change: easier, code: session.ExitDifferent, want: []string{"differs: trial e-0 ran under the seal"},
			then: func(f *sealedFiles) {
				f.results.Seal.Sealed, f.results.Seal.SHA256 = seal.Text(f.spec), seal.Of(f.spec)
			}},
		"a trial of no seal": {code: session.ExitDifferent, want: []string{"differs: trial e-3 ran under no seal, and results.json has"},
			then: func(f *sealedFiles) { f.sealTrial(t, "trials/e-3/trial.json", "") }},
		"trials of a seal, and no seal": {code: session.ExitDifferent, want: []string{"and results.json has none"},
			then: func(f *sealedFiles) { f.results.Seal = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(*v1alpha1.ExperimentSpec) {}
			}
			f := sealedBundle(t, tc.change)
			if tc.then != nil {
				tc.then(&f)
			}
			said, err := f.verify(t)
			if session.ExitCode(err) != tc.code {
				t.Errorf("exit code %d (%v), want %d; it says:\n%s", session.ExitCode(err), err, tc.code, said)
			}
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			if tc.not != "" && strings.Contains(said, tc.not) {
				t.Errorf("it says %q:\n%s", tc.not, said)
			}
		})
	}
}
