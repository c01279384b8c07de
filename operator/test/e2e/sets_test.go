package e2e

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// One experiment runs two trials at once on two pools, each repetition on one of them. Its verdicts
// equal those of one trial at a time. The test does not judge the saved time, since the workers of
// kind share processors. The simulation shows it for separate machines.
func TestTrialsOfOneExperimentAtOnce(t *testing.T) {
	e := newEnv(t)
	e.makePools(t, leftPool, rightPool)
	e.apply(t, filepath.Join(root, "experiments", "systems", "etcd.yaml"), nil)
	run := func(name string, place v1alpha1.Placement) (*v1alpha1.Experiment, []v1alpha1.Trial) {
		exp := e.apply(t, filepath.Join("testdata", "machine.yaml"), func(o client.Object) {
			exp := o.(*v1alpha1.Experiment)
			exp.Name = name
			exp.Spec.Faults = nil
			exp.Spec.Schedule = v1alpha1.Schedule{WarmUp: "1s", Measure: "5s", CoolDown: "100ms", Drain: "1s"}
			exp.Spec.Placement = place
			exp.Spec.Sweep = []v1alpha1.Axis{{Axis: "clients", Values: []v1alpha1.Value{v1alpha1.NewValue("1"), v1alpha1.NewValue("8")}}}
			bear(&exp.Spec.Tolerances)
			exp.Spec.Repetitions = v1alpha1.Repetitions{Min: 4}
			exp.Spec.Claims = []v1alpha1.Claim{{Name: "scales", Statement: "Eight clients get more done than one.", Expr: "throughput(clients=8) > throughput(clients=1)"}}
		})
		e.eventually(t, 10*time.Minute, "experiment "+name+" is complete", func(ctx context.Context) (bool, error) {
			err := e.Get(ctx, client.ObjectKeyFromObject(exp), exp)
			return meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete), err
		})
		t.Logf("%s: %v, %+v", name, exp.Status.CompletionTime.Sub(exp.Status.StartTime.Time), exp.Status.Trials)
		return exp, e.trials(t, exp)
	}
	one, _ := run("one", v1alpha1.Placement{Replicas: leftPool, Clients: leftPool})
	two, trials := run("two", v1alpha1.Placement{Sets: []v1alpha1.NodeSet{{Name: "left", Replicas: leftPool, Clients: leftPool}, {Name: "right", Replicas: rightPool, Clients: rightPool}}})
	verdicts := func(exp *v1alpha1.Experiment) map[string]v1alpha1.Verdict {
		of := map[string]v1alpha1.Verdict{}
		for _, c := range exp.Status.Claims {
			of[c.Name] = c.Verdict
		}
		return of
	}
	if is, was := verdicts(two), verdicts(one); !maps.Equal(is, was) {
		t.Errorf("verdicts on two sets: %v; one at a time: %v", is, was)
	}
	together, set := false, map[int32]string{}
	for i := range trials {
		s := trials[i].Spec
		if first, seen := set[s.Repetition]; seen && first != s.NodeSet {
			t.Errorf("repetition %d ran on %s and on %s", s.Repetition, first, s.NodeSet)
		}
		set[s.Repetition] = s.NodeSet
		for j := range i {
			a, b := trials[i].Status.Times, trials[j].Status.Times
			if a.Admitted == nil || a.Done == nil || b.Admitted == nil || b.Done == nil || !a.Admitted.Before(b.Done) || !b.Admitted.Before(a.Done) {
				continue
			}
			if together = true; s.NodeSet == trials[j].Spec.NodeSet {
				t.Errorf("trials %d and %d ran at the same time on %s", s.Number, trials[j].Spec.Number, s.NodeSet)
			}
		}
	}
	if !together {
		t.Error("no two trials ran at the same time")
	}
}
