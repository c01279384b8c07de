package evidence

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/renames"
)

// Bundles from before some names changed are read as if they were written today. A seal of that
// time seals the same claims today.
func TestBundlesOfFormerNamesAreRead(t *testing.T) {
	var former struct{ specs, gates, phases, summaries, seals int }
	for _, file := range bundles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := bundle.Open(data)
			if err != nil {
				t.Fatal(err)
			}
			trials := map[string]results.Trial{}
			for _, trial := range kept.Trials {
				trials[trial.Name] = trial
			}
			var spec v1alpha1.ExperimentSpec
			if err := json.Unmarshal(kept.Spec, &spec); err != nil {
				t.Fatal(err)
			}
			former.seals += checkSeal(t, kept)
			err = archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, data []byte) error {
				switch path.Base(name) {
				case bundle.ExperimentFile:
					former.specs += checkSpec(t, data, spec)
				case bundle.TrialFile:
					var raw formerTrial
					if err := json.Unmarshal(data, &raw); err != nil {
						return err
					}
					got := trials[raw.Name]
					if q := raw.Quiet; q != nil {
						former.gates++
						if g := got.IdleGate; g == nil || g.Idle != q.Found || g.WaitedSeconds != q.WaitedSeconds {
							t.Errorf("%s: its wait is read as %+v, and was %+v", raw.Name, g, *q)
						}
					}
					if s, ok := raw.PhaseSeconds["proven"]; ok {
						former.phases++
						if got.PhaseSeconds["networkVerified"] != s {
							t.Errorf("%s: its phases are read as %v", raw.Name, got.PhaseSeconds)
						}
					}
					if raw.Summary.WholeRun {
						former.summaries++
						if !got.Summary.RunSummary {
							t.Errorf("%s: its summary is read as one of the window", raw.Name)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if os.Getenv("EVIDENCE") == "" && (former.specs == 0 || former.gates == 0 || former.phases == 0 || former.summaries == 0 || former.seals == 0) {
		t.Errorf("the bundles had %+v in former names; without any of a kind the test shows nothing of it", former)
	}
}

// formerTrial has the members of a trial's results that had other names.
type formerTrial struct {
	Name  string `json:"name"`
	Quiet *struct {
		Found         bool    `json:"found"`
		WaitedSeconds float64 `json:"waitedSeconds"`
	} `json:"quiet"`
	PhaseSeconds map[string]float64 `json:"phaseSeconds"`
	Summary      struct {
		WholeRun bool `json:"wholeRun"`
	} `json:"summary"`
}

// checkSpec takes an Experiment as a user would apply it: with present names only. It returns 1 if
// the bundle has others.
func checkSpec(t *testing.T, text []byte, spec v1alpha1.ExperimentSpec) int {
	t.Helper()
	present, err := renames.Experiment(text)
	if err != nil {
		t.Fatal(err)
	}
	exp, err := plan.DecodeExperiment(present)
	if err != nil {
		t.Fatal(err)
	}
	if asJSON(exp.Spec.Disturbances) != asJSON(spec.Disturbances) {
		t.Errorf("its disturbances are read as %+v and as %+v", exp.Spec.Disturbances, spec.Disturbances)
	}
	if bytes.Equal(text, present) {
		return 0
	}
	if strings.Contains(string(text), "quietWait: 0s") && exp.Spec.Disturbances.IdleWait != "0s" && len(exp.Spec.Profiles) == 0 {
		t.Errorf("its trials did not wait, and are read as %+v", exp.Spec.Disturbances)
	}
	return 1
}

// checkSeal compares the seal of a run with the spec of that run. It returns 1 if the sealed text
// has former names and has not changed since.
func checkSeal(t *testing.T, kept bundle.Kept) int {
	t.Helper()
	ran, spec := kept.Results, kept.Spec
	if asRun, ok := kept.Files[bundle.AsRunFolder+bundle.ResultsFile]; ok {
		var err error
		if ran, err = results.DecodeExperiment(asRun); err != nil {
			t.Fatal(err)
		}
		if spec, err = renames.Spec(kept.Files[bundle.AsRunFolder+"spec.json"]); err != nil {
			t.Fatal(err)
		}
	}
	if ran.Seal == nil || ran.Seal.Sealed == nil || len(ran.Seal.Changes) > 0 {
		return 0
	}
	var is v1alpha1.ExperimentSpec
	if err := json.Unmarshal(spec, &is); err != nil {
		t.Fatal(err)
	}
	if own, err := seal.Digest(ran.Seal.Sealed); err != nil || own != ran.Seal.SHA256 {
		t.Errorf("what was sealed has the digest %s (%v), and the seal is %s", own, err, ran.Seal.SHA256)
	}
	changes, err := seal.Since(ran.Seal.Sealed, is)
	if err != nil || len(changes) > 0 {
		t.Errorf("since the seal: %v, %v; nothing has changed but names", changes, err)
	}
	if !strings.Contains(string(ran.Seal.Sealed), "quietWait") {
		return 0
	}
	if !seal.Is(ran.Seal.SHA256, is) {
		t.Errorf("the seal %s of former names is not that of the same claims today", ran.Seal.SHA256)
	}
	is.Claims[0].Expr += " "
	if seal.Is(ran.Seal.SHA256, is) {
		t.Errorf("the seal %s is said to be that of other claims", ran.Seal.SHA256)
	}
	return 1
}
