package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// crashingSeed is a seed of the experiment. With it, at the first point, only the trial of the
// third repetition has a seed that is a multiple of three.
func crashingSeed() int64 {
	for seed := int64(1); ; seed++ {
		of := func(repetition int32) int64 { return plan.TrialSeed(seed, 0, repetition, 0) % 3 }
		if of(0) != 0 && of(1) != 0 && of(2) == 0 {
			return seed
		}
	}
}

// A system that fails on its own is an outcome. The report shows it with the numbers until then.
// The trial is not repeated, and no claim is supported by the remaining trials alone.
func TestOutcomesOfTheSystemAreShown(t *testing.T) {
	e := newEnv(t)
	exp := e.apply(t, filepath.Join("testdata", "awkward-outcomes.yaml"), func(o client.Object) {
		if x, ok := o.(*v1alpha1.Experiment); ok {
			seed := crashingSeed()
			onceOnly(&x.Spec)
			x.Spec.Seed = &seed
		}
	})
	trials := e.complete(t, exp, 9*time.Minute)
	if len(trials) != 9 {
		t.Errorf("%d trials, want 9: an outcome is not repeated", len(trials))
	}
	for _, r := range trials {
		checkOutcome(t, r)
	}
	verdicts := map[string]string{}
	for _, c := range exp.Status.Claims {
		t.Logf("%s: %s: %s", c.Name, c.Verdict, c.Message)
		verdicts[c.Name] = c.Message
		if c.Verdict.Supports() {
			t.Errorf("%s is supported by survivors: %s", c.Name, c.Message)
		}
	}
	if m := verdicts["survivor"]; len(verdicts) != 3 || !strings.Contains(m, "2 of 3 attempts do not count (2 Invalid ReplicaExited)") {
		t.Errorf("the verdicts are %v; want three, the first of which tells of two crashes", verdicts)
	}
}

// checkOutcome checks that a trial ended as its variant does, and kept its numbers.
func checkOutcome(t *testing.T, r results.Trial) {
	t.Helper()
	reason, commits := map[string]string{
		"crash": v1alpha1.ReasonReplicaExited, "stall": v1alpha1.ReasonNothingMeasured, "death": v1alpha1.ReasonClientFailed,
	}[r.Coordinates["variant"]], true
	switch {
	case r.Coordinates["variant"] == "crash" && r.Seed%3 == 0:
		reason = ""
	case r.Coordinates["variant"] == "stall":
		commits = false
	}
	if r.Reason != reason || (r.Summary.Committed > 0) != commits {
		t.Errorf("%s %v: %s %s: %s; %d committed; want reason %q, and commits: %t", r.Name, r.Coordinates, r.Outcome, r.Reason, r.Message, r.Summary.Committed, reason, commits)
	}
	if r.Timeline == nil {
		t.Errorf("%s %v: there is no timeline", r.Name, r.Coordinates)
	}
}
