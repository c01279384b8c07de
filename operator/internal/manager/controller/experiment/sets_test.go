package experiment_test

import (
	"fmt"
	"slices"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// finishOn ends the active trial on a set of nodes as valid.
func (s *stage) finishOn(set string) {
	s.t.Helper()
	for _, trial := range s.trials() {
		if plan.Outcome(&trial) != v1alpha1.ReasonInProgress || trial.Spec.NodeSet != set {
			continue
		}
		end(&trial, v1alpha1.ReasonSucceeded, s.clock.Now())
		if err := s.c.Status().Update(s.t.Context(), &trial); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Fatalf("no trial is active on %s", set)
}

// running lists the active trials with their set, pools, point and repetition.
func (s *stage) running() (all []string) {
	s.t.Helper()
	for _, t := range s.trials() {
		if plan.Outcome(&t) == v1alpha1.ReasonInProgress {
			all = append(all, fmt.Sprintf("%d on %s %v: p%d r%d", t.Spec.Number, t.Spec.NodeSet, t.Spec.Placement.Pools(), t.Spec.Point.Index, t.Spec.Repetition))
		}
	}
	return all
}

// Two trials run at once, each on its set of nodes. The experiment is over when both sets are done.
// Its results say on which set each trial ran.
func TestTrialsRunAtOnceOnTheirSets(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Repetitions(2).Set(func(e *v1alpha1.ExperimentSpec) {
		e.Placement.Sets = []v1alpha1.NodeSet{{Name: "a", Replicas: "ra", Clients: "ca"}, {Name: "b", Replicas: "rb", Clients: "cb"}}
	}).Obj())
	expect := func(want ...string) *v1alpha1.Experiment {
		t.Helper()
		exp := s.settle()
		if got := s.running(); !slices.Equal(got, want) {
			t.Errorf("running: %q, want %q", got, want)
		}
		if int(exp.Status.Trials.Active) != len(want) {
			t.Errorf("status has %d active trials, want %d", exp.Status.Trials.Active, len(want))
		}
		return exp
	}
	exp := expect("0 on a [ca ra]: p0 r0", "1 on b [cb rb]: p0 r1")
	s.expect(exp, v1alpha1.ExperimentComplete, "False TrialsRunning",
		"These run: trial 0 on a (point 0, repetition 0, attempt 0), trial 1 on b (point 0, repetition 1, attempt 0). 0 of 4 trials are valid.")
	s.finishOn("b")
	expect("0 on a [ca ra]: p0 r0", "2 on b [cb rb]: p1 r1")
	s.finishOn("b")
	exp = expect("0 on a [ca ra]: p0 r0")
	s.expect(exp, v1alpha1.ExperimentComplete, "False TrialsRunning", "2 of 4 trials are valid")
	s.finishOn("a")
	expect("3 on a [ca ra]: p1 r0")
	s.finishOn("a")
	exp = expect()
	s.expect(exp, v1alpha1.ExperimentComplete, "True AllTrialsValid")
	var on []string
	for _, l := range s.results(exp.Status.ResultsConfigMap).Trials {
		on = append(on, l.NodeSet)
	}
	if !slices.Equal(on, []string{"a", "b", "b", "a"}) {
		t.Errorf("the results have the sets %q", on)
	}
}
