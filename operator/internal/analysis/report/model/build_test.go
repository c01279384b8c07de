package model_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/reports"
)

func TestBuild(t *testing.T) {
	e := reports.Build()
	if e.Planned != 18 || len(e.Points) != 6 || e.Points[5].Valid != 1 || e.Points[5].Failed != 1 || e.Points[2].Invalid != 1 {
		t.Errorf("planned %d, points %+v", e.Planned, e.Points)
	}
	var verdicts []string
	for _, c := range e.Claims {
		verdicts = append(verdicts, c.Name+" "+c.Verdict)
	}
	want := []string{"order-at-low-load Replicated", "one-timeout Consistent", "peaks NotEvaluated", "peak-order Inconclusive"}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if got := e.Claims[2].Message; got != "profile smoke skips it: two cores do not reach the peak" {
		t.Errorf("message of the skipped claim: %q", got)
	}
	if len(e.LeftOut) != 1 || !strings.Contains(e.LeftOut[0], `"about 12" is not a number`) {
		t.Errorf("left out: %q", e.LeftOut)
	}
}

// Results of an experiment that has not started still list every point and judge every claim.
func TestBuildWithoutTrials(t *testing.T) {
	exp := reports.Experiment()
	exp.Status = v1alpha1.ExperimentStatus{}
	e := model.Build(exp, nil, reports.Axes, nil, reports.Start)
	if len(e.Points) != 6 || e.Points[4].Coordinates["clients"] != "50" || e.Points[4].Coordinates["variant"] != "failure-nofp" {
		t.Errorf("points: %+v", e.Points)
	}
	for _, c := range e.Claims {
		if c.Verdict != "NotEvaluated" {
			t.Errorf("%s is %s without a trial", c.Name, c.Verdict)
		}
	}
	var text bytes.Buffer
	if err := format.Text(&text, e, format.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Not complete: 0 of 18 planned trials valid, over 6 points; as of 2026-03-04T10:00:00Z.", "n=0 at 6 points: no valid trial."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, text.String())
		}
	}
}

func TestSpecHashIgnoresWhatMayChange(t *testing.T) {
	a, b, c := reports.Experiment().Spec, reports.Experiment().Spec, reports.Experiment().Spec
	b.Suspend, b.Priority, b.AdditionalRepetitions, b.Debug = true, 7, 2, &v1alpha1.Debug{KeepFailed: "30m"}
	c.Repetitions.Min = 4
	if model.SpecSHA256(a) != model.SpecSHA256(b) {
		t.Error("suspending an experiment, another priority or additional repetitions change its hash")
	}
	if model.SpecSHA256(a) == model.SpecSHA256(c) {
		t.Error("another number of repetitions does not change the hash")
	}
}

func TestFitLeavesTrialsOut(t *testing.T) {
	e := reports.Build()
	whole, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	empty := reports.Build()
	empty.Trials = nil
	without, err := json.Marshal(empty)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ limit, trials, leftOut int }{
		"all fits":          {len(whole) + 100, 18, 1},
		"not the succeeded": {len(whole) - 500, 2, 2},
		"no trials":         {len(without) + 100, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := model.Fit(e, atMost(tc.limit))
			if err != nil {
				t.Fatal(err)
			}
			got, err := results.DecodeExperiment(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > tc.limit || len(got.Trials) != tc.trials || len(got.LeftOut) != tc.leftOut || len(got.Points) != 6 || len(got.Claims) != 4 {
				t.Errorf("%d bytes of %d, %d trials, left out %q", len(b), tc.limit, len(got.Trials), got.LeftOut)
			}
		})
	}
	if _, err := model.Fit(e, atMost(100)); err == nil {
		t.Error("100 bytes hold no results, and Fit does not say so")
	}
	if len(e.Trials) != 18 || len(e.LeftOut) != 1 {
		t.Error("Fit changed its argument")
	}
}

func atMost(limit int) func([]byte) bool { return func(b []byte) bool { return len(b) <= limit } }
