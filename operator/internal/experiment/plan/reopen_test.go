package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Reopen lists the trials because of which the manager gives up repetitions of an experiment, and
// no other trials.
func TestReopen(t *testing.T) {
	outcomes := []struct{ outcome, reason string }{
		{v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded}, {v1alpha1.ReasonFailed, v1alpha1.ReasonClientFailed},
		{v1alpha1.ReasonInvalid, v1alpha1.ReasonCPUStolen}, {v1alpha1.ReasonInvalid, v1alpha1.ReasonReplicaExited},
	}
	everything := func(Slot) bool { return true }
	reopened := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		spec := v1alpha1.ExperimentSpec{Retries: ptr(int32(random.IntN(3))), Disturbances: v1alpha1.Disturbances{RetryFor: v1alpha1.Duration(fmt.Sprintf("%ds", random.IntN(40)))}}
		p := &Plan{Spec: ApplyProfile(spec)}
		var trials []v1alpha1.Trial
		for slot := range int32(4) {
			for attempt := range int32(random.IntN(5)) {
				o := outcomes[random.IntN(len(outcomes))]
				trial := v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t-%d-%d", slot, attempt)}, Spec: v1alpha1.TrialSpec{Point: v1alpha1.Point{Index: slot}, Attempt: attempt}}
				trial.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: o.outcome}, {Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: o.reason}}
				trials = append(trials, trial)
			}
		}
		before := givenUpSlots(p, trials)
		dropped := Reopen(spec, trials, everything)
		isDropped := func(t v1alpha1.Trial) bool {
			return slices.ContainsFunc(dropped, func(d v1alpha1.Trial) bool { return d.Name == t.Name })
		}
		left := slices.DeleteFunc(slices.Clone(trials), isDropped)
		if still := givenUpSlots(p, left); len(still) > 0 {
			t.Errorf("seed %d: %v are given up all the same", seed, still)
		}
		for _, slot := range before {
			reopened++
			one := Reopen(spec, trials, func(s Slot) bool { return s == slot })
			if len(one) == 0 || slices.ContainsFunc(one, func(d v1alpha1.Trial) bool { return d.Spec.Point.Index != slot.Point }) {
				t.Errorf("seed %d: of %v alone it takes %d trials", seed, slot, len(one))
			}
			// Reopen lists no trial too many: with the first one put back, the repetition is given
			// up.
			back := slices.DeleteFunc(slices.Clone(trials), func(t v1alpha1.Trial) bool {
				return slices.ContainsFunc(one[1:], func(d v1alpha1.Trial) bool { return d.Name == t.Name })
			})
			if !slices.Contains(givenUpSlots(p, back), slot) {
				t.Errorf("seed %d: %v would be tried again with trial %s, too", seed, slot, one[0].Name)
			}
		}
		for _, d := range dropped {
			if !slices.Contains(before, Slot{Point: d.Spec.Point.Index, Repetition: d.Spec.Repetition}) {
				t.Errorf("seed %d: trial %s is of a repetition that is not given up", seed, d.Name)
			}
		}
	}
	if reopened < 50 {
		t.Errorf("only %d repetitions were given up: the test shows little", reopened)
	}
}
