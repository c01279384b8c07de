package experiment_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// Why the next trial cannot start is shown on the experiment, told of once, and gone when it has
// started. That it waits for its turn is nothing to tell.
func TestATrialThatCannotStartIsShown(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	wait := func(status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		trial := s.trials()[0]
		meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialAdmitted, Status: status, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(s.clock.Now())})
		if err := s.c.Status().Update(t.Context(), &trial); err != nil {
			t.Fatal(err)
		}
	}
	wait(metav1.ConditionFalse, v1alpha1.ReasonQueued, "Waiting for trial x.")
	s.expect(s.settle(), complete, "False TrialsRunning")
	for _, reason := range []string{v1alpha1.ReasonUnschedulable, v1alpha1.ReasonInsufficientResources, v1alpha1.ReasonQuotaExceeded} {
		wait(metav1.ConditionFalse, reason, "It lacks a node.")
		s.expect(s.settle(), complete, "False "+reason, "The next trial has not started. It lacks a node.")
	}
	wait(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "It has all nodes.")
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 0 runs")
	want := []string{"Normal Valid", "Warning Unschedulable", "Warning InsufficientResources", "Warning QuotaExceeded"}
	if diff := cmp.Diff(want, firstWords(s.told())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
