package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// graph returns a flame graph of replica 0 at the points with these values.
func graph(name string, points map[string]v1alpha1.Value) v1alpha1.Fault {
	return v1alpha1.Fault{Name: name, At: "1s", For: duration("2s"), FlameGraph: &v1alpha1.FlameGraph{
		Target: v1alpha1.Target{Replicas: []int32{0}}, Tool: v1alpha1.ProfilerPerf, Points: points}}
}

func profiled(graphs ...v1alpha1.Fault) *builders.ExperimentBuilder {
	return builders.Experiment("e").System("basil").Values("clients", 1, 2).Repetitions(2).Order(v1alpha1.OrderSequential).
		NodeKill("crash", "1s", 0).Set(func(e *v1alpha1.ExperimentSpec) {
		e.Faults[0].EveryPoint = true
		e.Faults = append(e.Faults, graphs...)
	})
}

// Trials for flame graphs come last, one for each point, and are not repeated. None of them counts.
func TestFlameGraphsComeLast(t *testing.T) {
	two := map[string]v1alpha1.Value{"clients": builders.Value(2)}
	for name, tc := range map[string]struct {
		graphs  []v1alpha1.Fault
		outcome string
		want    []string // number, point and faults of the trials that never count
	}{
		"none":                         {},
		"every point":                  {graphs: []v1alpha1.Fault{graph("cpu", nil)}, outcome: v1alpha1.ReasonInvalid, want: []string{"4 0 crash cpu", "5 1 crash cpu"}},
		"one point":                    {graphs: []v1alpha1.Fault{graph("cpu", two)}, outcome: v1alpha1.ReasonInvalid, want: []string{"4 1 crash cpu"}},
		"several in one trial":         {graphs: []v1alpha1.Fault{graph("cpu", two), graph("again", nil)}, outcome: v1alpha1.ReasonInvalid, want: []string{"4 0 crash again", "5 1 crash cpu again"}},
		"failed ones are tried once":   {graphs: []v1alpha1.Fault{graph("cpu", two)}, outcome: v1alpha1.ReasonFailed, want: []string{"4 1 crash cpu"}},
		"not even success makes it so": {graphs: []v1alpha1.Fault{graph("cpu", two)}, outcome: v1alpha1.ReasonSucceeded, want: []string{"4 1 crash cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := expand(t, profiled(tc.graphs...))
			trials, step := run(t, p, 7, func(s v1alpha1.TrialSpec) string {
				if s.Measures() {
					return v1alpha1.ReasonSucceeded
				}
				return tc.outcome
			})
			var got []string
			for i := range trials {
				s := &trials[i].Spec
				var faults []string
				for _, f := range s.Faults {
					faults = append(faults, f.Name)
				}
				if !s.Measures() {
					got = append(got, fmt.Sprintf("%d %d %s", s.Number, s.Point.Index, strings.Join(faults, " ")))
				} else if i >= 4 || !slices.Equal(faults, []string{"crash"}) {
					t.Errorf("trial %d that may count has the faults %q", i, faults)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("trials for flame graphs are %q, want %q", got, tc.want)
			}
			if c := step.Counts; !step.Done || step.Reason != v1alpha1.ReasonAllTrialsValid || c.Succeeded != 4 || c.Planned != 4 || c.Invalid+c.Failed+c.Active != 0 {
				t.Errorf("the end is %+v", step)
			}
		})
	}
}

// While such a trial runs, or may not begin, the experiment is not complete, and says why.
func TestFlameGraphsHoldTheEnd(t *testing.T) {
	p := expand(t, profiled(graph("cpu", map[string]v1alpha1.Value{"clients": builders.Value(1)})))
	var trials []v1alpha1.Trial
	for range 4 {
		trials = append(trials, *builders.Trial("t").Spec(*plan.Next(p, 7, trials).Create).Complete(v1alpha1.ReasonSucceeded).Obj())
	}
	p.Spec.Suspend = true
	if step := plan.Next(p, 7, trials); step.Done || step.Create != nil || step.Reason != v1alpha1.ReasonSuspended || !strings.Contains(step.Message, "No trial for flame graphs is started") {
		t.Errorf("suspended: %+v", step)
	}
	p.Spec.Suspend = false
	step := plan.Next(p, 7, trials)
	if step.Create == nil || step.Done || step.Counts.Active != 0 {
		t.Fatalf("the next step is %+v", step)
	}
	trials = append(trials, *builders.Trial("t").Spec(*step.Create).Obj())
	running := plan.Next(p, 7, trials)
	if running.Create != nil || running.Done || running.Counts.Active != 1 || running.Message != step.Message {
		t.Errorf("while it runs: %+v", running)
	}
	// The user adds another flame graph when all trials are over. Only the new one is drawn.
	trials[4] = *builders.Trial("t").Spec(*step.Create).Complete(v1alpha1.ReasonInvalid).Obj()
	later := expand(t, profiled(graph("cpu", map[string]v1alpha1.Value{"clients": builders.Value(1)}), graph("later", nil)))
	if step := plan.Next(later, 7, trials); step.Create == nil || step.Create.Number != 5 || step.Create.Faults[1].Name != "later" || len(step.Create.Faults) != 2 {
		t.Errorf("a later flame graph: %+v", step.Create)
	}
	if dropped := plan.Reopen(later.Spec, trials, func(plan.Slot) bool { return true }); len(dropped) != 0 {
		t.Errorf("%d trials would be tried again", len(dropped))
	}
}

// Flame graphs may be added and removed after trials are planned. No other part of the spec may
// change with them.
func TestFlameGraphsMayChange(t *testing.T) {
	planned := func(e *v1alpha1.Experiment) *v1alpha1.Experiment { e.Status.Seed = 7; return e }
	before := planned(profiled(graph("cpu", nil)).Obj())
	for name, tc := range map[string]struct {
		after   *v1alpha1.Experiment
		anew    bool
		refused bool
	}{
		"another one":       {after: profiled(graph("cpu", nil), graph("more", nil)).Obj(), anew: true},
		"none":              {after: profiled().Obj(), anew: true},
		"the same":          {after: profiled(graph("cpu", nil)).Obj()},
		"suspended":         {after: profiled(graph("cpu", nil)).Set(func(e *v1alpha1.ExperimentSpec) { e.Suspend = true }).Obj()},
		"the fault, too":    {after: profiled(graph("more", nil)).Set(func(e *v1alpha1.ExperimentSpec) { e.Faults[0].At = "2s" }).Obj(), refused: true},
		"and the schedule":  {after: profiled(graph("more", nil)).Set(func(e *v1alpha1.ExperimentSpec) { e.Schedule.Measure = "9s" }).Obj(), refused: true},
		"a fault that acts": {after: profiled(graph("cpu", nil)).NodeKill("second", "2s", 1).Obj(), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			anew, wrong, err := plan.CheckChange(before, planned(tc.after))
			if err != nil || anew != tc.anew || (wrong != nil) != tc.refused {
				t.Errorf("to be checked anew %v, refused %v, %v", anew, wrong, err)
			}
		})
	}
}
