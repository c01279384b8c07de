package plan_test

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// BenchmarkValidate measures the greatest cost of one kubectl apply: 1024 points, all templates
// rendered. Admission gives up after ten seconds.
func BenchmarkValidate(b *testing.B) {
	s := systems(builders.System("basil"))
	exp := builders.Experiment("e").System("basil").Values("clients", anyValues(32)...).Values("batch", anyValues(32)...).
		Set(func(s *v1alpha1.ExperimentSpec) { s.Topology.F = 5 }).Obj()
	for b.Loop() {
		if _, errs := plan.Validate(exp, s, plan.Checks{Templates: render.Check}); len(errs) > 0 {
			b.Fatal(errs.ToAggregate())
		}
	}
}

// BenchmarkNext measures a decision of the controller when nearly all of 10 000 trials are done.
func BenchmarkNext(b *testing.B) {
	p, errs := plan.Expand(builders.Experiment("e").System("basil").Values("clients", anyValues(64)...).Points("kind", v1alpha1.AxisPoint{Name: "a"}).
		Repetitions(100).Obj(), systems(builders.System("basil")))
	if len(errs) > 0 {
		b.Fatal(errs.ToAggregate())
	}
	var trials []v1alpha1.Trial
	for _, round := range plan.Rounds(p, 7) {
		for _, slot := range round {
			spec := v1alpha1.TrialSpec{Number: int32(len(trials)), Repetition: slot.Repetition, Point: v1alpha1.Point{Index: slot.Point}}
			trials = append(trials, *builders.Trial("t").Spec(spec).Complete(v1alpha1.ReasonSucceeded).Obj())
		}
	}
	for b.Loop() {
		if plan.Next(p, 7, trials[:len(trials)-1]).Create == nil {
			b.Fatal("nothing is left to create")
		}
	}
}

func anyValues(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = i + 1
	}
	return out
}
