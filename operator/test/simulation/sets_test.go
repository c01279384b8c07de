package simulation

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// onMachines runs an experiment of two points and eight repetitions in a history without
// disturbances, and returns how long it took. A batch of 2 has a quarter more throughput than one
// of 1. The machines of the pool right are a third slower than those of left.
func onMachines(t *testing.T, place func(p *v1alpha1.Placement)) (*v1alpha1.Experiment, *world, time.Duration) {
	t.Helper()
	w := newWorld(1, false)
	for i := range 3 {
		w.addNode(fmt.Sprintf("l%d", i), "left")
		w.addNode(fmt.Sprintf("r%d", i), "right")
	}
	w.boot("a")
	w.boot("b")
	key := types.NamespacedName{Namespace: "lab", Name: "exp0"}
	w.experiments = []types.NamespacedName{key}
	w.pace = func(a *agent) time.Duration {
		trial := w.trialNamed(types.NamespacedName{Namespace: a.key.Namespace, Name: a.trial})
		every := 100 * time.Millisecond
		if trial.Spec.Point.Index == 1 {
			every = 80 * time.Millisecond
		}
		every += time.Duration(trial.Spec.Repetition*7%5+trial.Spec.Point.Index*3%4) * 200 * time.Microsecond // trials differ by up to 2%
		if a.node.pool == "right" {
			every = every * 4 / 3
		}
		return every
	}
	exp := builders.Experiment(key.Name).Namespace(key.Namespace).System(key.Name).Values("batch", 1, 2).Repetitions(8).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Schedule = v1alpha1.Schedule{WarmUp: "2s", Measure: "10s", CoolDown: "1s", Drain: "3s"}
		s.Clients.Nodes, s.Clients.Count = 2, 4
		place(&s.Placement)
		s.Claims = []v1alpha1.Claim{
			{Name: "batches-help", Statement: "Batches of 2 carry more.", Expr: "throughput(batch=2) > 1.1 * throughput(batch=1)"},
			{Name: "by-half", Statement: "Batches of 2 carry half more.", Expr: "throughput(batch=2) > 1.5 * throughput(batch=1)"},
		}
	}).Obj()
	system := builders.System(key.Name).Namespace(key.Namespace).Count("2*f+1").Set(func(s *v1alpha1.SystemSpec) { s.Replicas.ReadyTimeout = "60s" }).Obj()
	for _, err := range []error{w.create(system), w.create(exp)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.play()
	if len(w.violations) > 0 {
		t.Fatalf("violations:\n  %s", strings.Join(w.violations, "\n  "))
	}
	e := w.find("Experiment", key).(*v1alpha1.Experiment)
	if e.Status.Trials.Succeeded != 16 || e.Status.CompletionTime == nil {
		t.Fatalf("%+v", e.Status.Trials)
	}
	return e, w, e.Status.CompletionTime.Sub(e.Status.StartTime.Time)
}

// verdictsOf an experiment, by claim.
func verdictsOf(e *v1alpha1.Experiment) map[string]v1alpha1.Verdict {
	of := map[string]v1alpha1.Verdict{}
	for _, c := range e.Status.Claims {
		of[c.Name] = c.Verdict
	}
	return of
}

// Two sets of nodes on separate machines take half of the time, though one of them is slower. The
// verdicts equal those of one set, since compared trials ran on the same machines.
func TestTwoSetsOfNodesAreTwiceAsFast(t *testing.T) {
	one, _, alone := onMachines(t, func(p *v1alpha1.Placement) { p.Replicas, p.Clients = "left", "left" })
	two, w, atOnce := onMachines(t, func(p *v1alpha1.Placement) {
		p.Sets = []v1alpha1.NodeSet{{Name: "fast", Replicas: "left", Clients: "left"}, {Name: "slow", Replicas: "right", Clients: "right"}}
	})
	ratio := alone.Seconds() / atOnce.Seconds()
	t.Logf("16 trials took %v one at a time and %v on two sets of nodes: %.2f times sooner", alone, atOnce, ratio)
	if ratio < 1.8 {
		t.Errorf("%.2f times sooner, want 1.8 at least", ratio)
	}
	is, was := verdictsOf(two), verdictsOf(one)
	if !maps.Equal(is, was) {
		t.Errorf("verdicts %v, and one at a time %v", is, was)
	}
	if !is["batches-help"].Supports() || !is["by-half"].Refutes() {
		t.Errorf("verdicts %v", is)
	}
	on := map[string]int{}
	var ran [][2]time.Time
	for _, trial := range w.eachTrial() {
		if plan.Outcome(trial) == v1alpha1.ReasonSucceeded {
			on[trial.Spec.NodeSet]++
			ran = append(ran, [2]time.Time{trial.Status.Times.Released.Time, trial.Status.Times.Drained.Time})
		}
	}
	if on["fast"] != 8 || on["slow"] != 8 {
		t.Errorf("trials by set: %v", on)
	}
	if most := mostAtOnce(ran); most != 2 {
		t.Errorf("%d trials ran at once, want 2", most)
	}
}

// mostAtOnce is how many of the spans overlap at most.
func mostAtOnce(spans [][2]time.Time) int {
	most := 0
	for _, s := range spans {
		n := 0
		for _, o := range spans {
			if !o[0].After(s[0]) && o[1].After(s[0]) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
