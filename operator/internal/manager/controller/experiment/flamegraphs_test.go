package experiment_test

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// The trial of a flame graph is made when all others are over, and is in no result. If a user adds
// one later, it is made then.
func TestFlameGraphsAreInNoResult(t *testing.T) {
	s := newStage(t)
	graph := func(name string) v1alpha1.Fault {
		length := v1alpha1.Duration("2s")
		return v1alpha1.Fault{Name: name, At: "1s", For: &length, FlameGraph: &v1alpha1.FlameGraph{
			Target: v1alpha1.Target{Replicas: []int32{0}}, Tool: v1alpha1.ProfilerPprof, Port: 6060, Points: map[string]v1alpha1.Value{"clients": v1alpha1.NewValue("2")}}}
	}
	system, exp := builders.System("basil").Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) { e.Faults = []v1alpha1.Fault{graph("cpu")} }).Obj()
	s.create(system, exp)
	s.settle()
	for range 2 {
		s.finish(v1alpha1.ReasonSucceeded)
		exp = s.settle()
	}
	s.expect(exp, v1alpha1.ExperimentComplete, "False TrialsRunning", "Trial 2 draws flame graphs of point 1, and does not count.")
	all := s.trials()
	if spec := all[2].Spec; len(all) != 3 || spec.Measures() || len(spec.Faults) != 1 || spec.Faults[0].FlameGraph.Path != "/debug/pprof/profile" {
		t.Fatalf("%d trials, the last is %+v", len(all), spec)
	}
	before := s.results(exp.Status.ResultsConfigMap)
	s.finish(v1alpha1.ReasonInvalid)
	exp = s.settle()
	s.expect(exp, v1alpha1.ExperimentComplete, "True AllTrialsValid", "All 2 trials of 2 points are valid.")
	if c := exp.Status.Trials; c.Planned != 2 || c.Succeeded != 2 || c.Invalid != 0 {
		t.Errorf("the counts are %+v", c)
	}
	after := s.results(exp.Status.ResultsConfigMap)
	if len(before.NotMeasuring) != 0 || len(after.NotMeasuring) != 1 || after.NotMeasuring[0].Number != 2 || len(after.Trials) != 2 || after.Points[1].Invalid != 0 || after.SpecSHA256 != before.SpecSHA256 {
		t.Errorf("the results have %d trials and %+v besides, at point 1 %+v", len(after.Trials), after.NotMeasuring, after.Points[1])
	}
	exp.Spec.Faults = append(exp.Spec.Faults, graph("later"))
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	exp = s.settle()
	if all := s.trials(); len(all) != 4 || len(all[3].Spec.Faults) != 1 || all[3].Spec.Faults[0].Name != "later" || exp.Status.CompletionTime != nil {
		t.Errorf("after one more was asked for there are %d trials, complete at %v", len(all), exp.Status.CompletionTime)
	}
	s.finish(v1alpha1.ReasonFailed)
	exp = s.settle()
	s.expect(exp, v1alpha1.ExperimentComplete, "True AllTrialsValid")
	if again := s.results(exp.Status.ResultsConfigMap); again.SpecSHA256 != before.SpecSHA256 || len(again.NotMeasuring) != 2 {
		t.Errorf("%d trials besides, and the spec's hash %s was %s", len(again.NotMeasuring), again.SpecSHA256, before.SpecSHA256)
	}
}
