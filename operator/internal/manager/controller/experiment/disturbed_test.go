package experiment_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// Trials that the environment disturbs are repeated until their own budget is used up. They do not
// count against spec.retries. The status reports both budgets.
func TestDisturbedTrialsAreRepeated(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), builders.Experiment("exp").System("basil").Repetitions(1).Retries(0).RetryFor("30s").Obj())
	for attempt := range 3 { // each counts as ten seconds, since it has no instants
		exp := s.settle()
		s.expect(exp, v1alpha1.ExperimentComplete, "False TrialsRunning", "0 of 1 trials are valid")
		if got := exp.Status.Trials; got.Disturbed != int32(attempt) || exp.Status.DisturbedSeconds != int64(10*attempt) {
			t.Errorf("after %d trials: %+v, %d s", attempt, got, exp.Status.DisturbedSeconds)
		}
		s.disturb()
	}
	exp := s.settle()
	s.expect(exp, v1alpha1.ExperimentComplete, "True RetriesExhausted", "disturbed trials have used up spec.disturbances.retryFor, 30s")
	if got := exp.Status.Trials; got.Invalid != 3 || got.Disturbed != 3 || exp.Status.DisturbedSeconds != 30 {
		t.Errorf("in the end: %+v, %d s", got, exp.Status.DisturbedSeconds)
	}
}

// disturb ends the active trial as invalid, since a hypervisor took its processors.
func (s *stage) disturb() {
	s.t.Helper()
	trial := s.finish(v1alpha1.ReasonInvalid)
	meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{
		Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCPUStolen, Message: "Half of it."})
	if err := s.c.Status().Update(s.t.Context(), &trial); err != nil {
		s.t.Fatal(err)
	}
}
