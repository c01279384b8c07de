package experiment

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

func TestSupportedSumsTheVerdictsUp(t *testing.T) {
	yes, no, open := v1alpha1.VerdictReplicated, v1alpha1.VerdictContradicted, v1alpha1.VerdictInconclusive
	for name, tc := range map[string]struct {
		running  bool
		verdicts map[string]v1alpha1.Verdict
		want     string
	}{
		"all":                 {verdicts: map[string]v1alpha1.Verdict{"a": yes, "b": yes}, want: "True Supported: The trials support all 2 claims that are judged."},
		"one is not":          {verdicts: map[string]v1alpha1.Verdict{"a": yes, "b": no, "c": open}, want: "False Refuted: Refuted: b."},
		"one is open":         {verdicts: map[string]v1alpha1.Verdict{"a": yes, "c": open}, want: "Unknown Undecided: Undecided: c."},
		"the profile skips b": {verdicts: map[string]v1alpha1.Verdict{"a": yes, "skipped": no}, want: "True Supported: The trials support all 1 claims that are judged. The profile skips 1 claim."},
		"none":                {want: "Unknown NoClaims: No claim is judged."},
		"still running":       {running: true, verdicts: map[string]v1alpha1.Verdict{"a": yes}, want: "Unknown TrialsRunning: Trials are to run."},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("exp").Set(func(e *v1alpha1.ExperimentSpec) {
				e.Profile, e.Profiles = "smoke", []v1alpha1.Profile{{Name: "smoke", Claims: []v1alpha1.ProfileClaim{{Name: "skipped", Skip: "Two cores are too few."}}}}
			}).Obj()
			s := &scope{exp: exp, now: metav1.Now()}
			for _, claim := range []string{"a", "b", "c", "skipped"} {
				if v, ok := tc.verdicts[claim]; ok {
					exp.Status.Claims = append(exp.Status.Claims, v1alpha1.ClaimStatus{Name: claim, Verdict: v})
				}
			}
			status := metav1.ConditionTrue
			if tc.running {
				status = metav1.ConditionFalse
			}
			s.set(v1alpha1.ExperimentComplete, status, v1alpha1.ReasonAllTrialsValid, "So it is.")
			setSupported(s)
			c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentSupported)
			if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); got != tc.want {
				t.Errorf("the condition is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEstimatedCompletion(t *testing.T) {
	now := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	done := []v1alpha1.Trial{*builders.Trial("a").Took(time.Minute).Obj(), *builders.Trial("b").Took(3 * time.Minute).Obj(), *builders.Trial("runs").Obj()}
	if got := estimated(done, v1alpha1.TrialCounts{Planned: 5, Succeeded: 2}, 1, now); got == nil || !got.Time.Equal(now.Add(6*time.Minute)) {
		t.Errorf("three trials of 2 min on average end at %v, want in 6 min", got)
	}
	if got := estimated(done, v1alpha1.TrialCounts{Planned: 5, Succeeded: 2}, 2, now); got == nil || !got.Time.Equal(now.Add(4*time.Minute)) {
		t.Errorf("three trials of 2 min, two at a time, end at %v, want in 4 min", got)
	}
	for name, counts := range map[string]v1alpha1.TrialCounts{"nothing is left": {Planned: 2, Succeeded: 2}, "more than planned": {Planned: 1, Succeeded: 2}} {
		if got := estimated(done, counts, 1, now); got != nil {
			t.Errorf("%s: it ends at %v", name, got)
		}
	}
	if got := estimated(done[2:], v1alpha1.TrialCounts{Planned: 5}, 1, now); got != nil {
		t.Errorf("before a trial is done, the end is %v", got)
	}
}
