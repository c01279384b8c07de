package experiment_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// spend ends the active trial as valid after it held nodes for some time.
func (s *stage) spend(nodes int32, took time.Duration) {
	s.t.Helper()
	trial := s.finish(v1alpha1.ReasonSucceeded)
	from, to := metav1.NewMicroTime(s.clock.Now()), metav1.NewMicroTime(s.clock.Now().Add(took))
	trial.Status.Times.Admitted, trial.Status.Times.Done, trial.Status.Nodes = &from, &to, nodes
	if err := s.c.Status().Update(s.t.Context(), &trial); err != nil {
		s.t.Fatal(err)
	}
	s.clock.SetTime(to.Time)
}

// An experiment ends, with a condition, if its next trial would exceed the node-hours. It goes on
// when it gets more.
func TestNodeHoursEndAnExperiment(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) {
		e.Budget = &v1alpha1.Budget{NodeHours: new(resource.MustParse("1"))}
	}).Obj())
	s.expect(s.settle(), v1alpha1.ExperimentWithinBudget, "True WithinBudget", "Trials have taken 0 node-hours of 1.")
	s.spend(3, 15*time.Minute)
	exp := s.settle()
	s.expect(exp, v1alpha1.ExperimentComplete, "True BudgetExhausted", "1 of 2 trials are valid, and are judged.", "spec.budget.nodeHours")
	s.expect(exp, v1alpha1.ExperimentWithinBudget, "False NodeHoursExhausted", "takes about 0.75 node-hours, and of the 1 of spec.budget.nodeHours 0.75 are used")
	s.expect(exp, v1alpha1.ExperimentStalled, "True BudgetExhausted")
	if exp.Status.NodeSeconds != 45*60 || exp.Status.CompletionTime == nil {
		t.Errorf("%d node-seconds, completed at %v", exp.Status.NodeSeconds, exp.Status.CompletionTime)
	}
	if stopped := s.results(exp.Status.ResultsConfigMap).Stopped; stopped == "" {
		t.Error("the results do not say that the budget ended it")
	}
	exp.Spec.Budget.NodeHours = new(resource.MustParse("2"))
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	s.expect(s.settle(), v1alpha1.ExperimentComplete, "False TrialsRunning")
	s.spend(3, 15*time.Minute)
	exp = s.settle()
	s.expect(exp, v1alpha1.ExperimentComplete, "True AllTrialsValid")
	s.expect(exp, v1alpha1.ExperimentWithinBudget, "True WithinBudget", "1.5 node-hours of 2")
	if stopped := s.results(exp.Status.ResultsConfigMap).Stopped; stopped != "" {
		t.Errorf("the results still say %q", stopped)
	}
}

// A trial that waits too long for its pools is withdrawn, and no other trial starts.
func TestTheDeadlineWithdrawsATrial(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) {
		e.Budget = &v1alpha1.Budget{Until: new(metav1.NewTime(s.clock.Now().Add(time.Hour)))}
	}).Obj())
	s.settle()
	if n := len(s.trials()); n != 1 {
		t.Fatalf("%d trials", n)
	}
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	exp := s.settle()
	s.expect(exp, v1alpha1.ExperimentComplete, "True BudgetExhausted", "0 of 2 trials are valid")
	s.expect(exp, v1alpha1.ExperimentWithinBudget, "False DeadlineReached", "would not be over at spec.budget.until, 2026-11-20T13:00:00Z")
	if n := len(s.trials()); n != 0 {
		t.Errorf("%d trials are left", n)
	}
}

// Without a budget there is no such condition.
func TestNoBudget(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	if c := meta.FindStatusCondition(s.settle().Status.Conditions, v1alpha1.ExperimentWithinBudget); c != nil {
		t.Errorf("there is %+v", c)
	}
}
