package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// People may keep the pods of a failed trial to look at them. These hours do not count against the
// time for repetitions.
func TestTookLeavesOutWhatPeopleKept(t *testing.T) {
	start := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: start.Add(d)} }
	trial := &v1alpha1.Trial{Status: v1alpha1.TrialStatus{
		Times:      v1alpha1.TrialTimes{Admitted: at(0), Done: at(3 * time.Hour)},
		Conditions: []metav1.Condition{{Type: v1alpha1.TrialValid, LastTransitionTime: metav1.NewTime(start.Add(time.Minute))}},
	}}
	if got := took(trial); got != 3*time.Hour {
		t.Errorf("not kept: %v, want 3h", got)
	}
	trial.Status.Times.Kept = at(2*time.Hour + time.Minute)
	if got := took(trial); got != time.Hour {
		t.Errorf("kept for 2h: %v, want 1h", got)
	}
	trial.Status.Times.Done = nil
	if got := took(trial); got != 0 {
		t.Errorf("not done: %v, want 0", got)
	}
}

// If a repetition has two valid trials, the first one counts, in any order of the list.
func TestTheFirstValidTrialCounts(t *testing.T) {
	valid := func(number int32) v1alpha1.Trial {
		return v1alpha1.Trial{
			Spec: v1alpha1.TrialSpec{Number: number},
			Status: v1alpha1.TrialStatus{Conditions: []metav1.Condition{
				{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded},
				{Type: v1alpha1.TrialValid, Status: metav1.ConditionTrue},
			}},
		}
	}
	for _, order := range [][]int32{{3, 5}, {5, 3}} {
		o := observe([]v1alpha1.Trial{valid(order[0]), valid(order[1])})
		if got := o.valid[Slot{}]; got == nil || got.Spec.Number != 3 {
			t.Errorf("listed as %v: %+v counts, want trial 3", order, got)
		}
	}
}
