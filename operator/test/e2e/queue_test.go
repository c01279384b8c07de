package e2e

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	cliqueue "assay.dev/assay/operator/internal/cli/queue"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/queue"
)

// The pools that the test makes, each from one of two workers.
const (
	leftPool  = "e2e-left"
	rightPool = "e2e-right"
)

// Experiments that are applied together never share a pool, use different pools at the same time,
// and all end. An experiment that can never fit reports it and blocks no other.
func TestQueue(t *testing.T) {
	e := newEnv(t)
	e.makePools(t, leftPool, rightPool)
	e.apply(t, filepath.Join(root, "experiments", "systems", "etcd.yaml"), nil)
	short := func(name, replicas, clients string) *v1alpha1.Experiment {
		return e.apply(t, filepath.Join("testdata", "machine.yaml"), func(o client.Object) {
			exp := o.(*v1alpha1.Experiment)
			exp.Name = name
			exp.Spec.Faults = nil
			exp.Spec.Schedule = v1alpha1.Schedule{WarmUp: "1s", Measure: "1s", CoolDown: "100ms", Drain: "1s"}
			exp.Spec.Placement = v1alpha1.Placement{Replicas: replicas, Clients: clients}
			// The test checks which trials run at the same time. The machine may be busy with
			// several trials and builds.
			onceOnly(&exp.Spec)
		})
	}
	// The queue orders experiments of the same second by their names. The one that needs both pools
	// is the last of them, or "right" would wait behind it and nothing would run beside "left".
	never := short("never", "e2e-nowhere", "e2e-nowhere")
	all := []*v1alpha1.Experiment{short("left", leftPool, leftPool), short("left-too", leftPool, leftPool), short("right", rightPool, rightPool), short("two-pools", leftPool, rightPool)}
	e.eventually(t, time.Minute, "the one that can never fit says so", func(ctx context.Context) (bool, error) {
		err := e.Get(ctx, client.ObjectKeyFromObject(never), never)
		c := meta.FindStatusCondition(never.Status.Conditions, v1alpha1.ExperimentComplete)
		return c != nil && c.Reason == v1alpha1.ReasonUnschedulable && strings.Contains(c.Message, "assay.dev/pool=e2e-nowhere"), err
	})
	shown := e.showQueue(t)
	t.Log(shown)
	for _, want := range []string{leftPool, rightPool, "Unschedulable: It can never start"} {
		if !strings.Contains(shown, want) {
			t.Errorf("kubectl assay queue does not show %q", want)
		}
	}
	var trials []v1alpha1.Trial
	for _, exp := range all {
		e.eventually(t, 3*time.Minute, "experiment "+exp.Name+" is complete", func(ctx context.Context) (bool, error) {
			err := e.Get(ctx, client.ObjectKeyFromObject(exp), exp)
			return meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete), err
		})
		for _, trial := range e.trials(t, exp) {
			at := trial.Status.Times
			t.Logf("%s on %v: admitted %s, done %s", trial.Name, trial.Spec.Placement.Pools(), at.Admitted.Format("15:04:05.000"), at.Done.Format("15:04:05.000"))
			trials = append(trials, trial)
		}
	}
	if len(trials) < len(all) {
		t.Errorf("%d trials ran, want one of each of %d experiments", len(trials), len(all))
	}
	together := false
	for i := range trials {
		for j := range i {
			a, b := trials[i].Status.Times, trials[j].Status.Times
			overlap := a.Admitted.Before(b.Done) && b.Admitted.Before(a.Done)
			if overlap && queue.Overlap(trials[i].Spec.Placement.Pools(), trials[j].Spec.Placement.Pools()) {
				t.Errorf("%s and %s ran at the same time on one pool", trials[i].Name, trials[j].Name)
			}
			together = together || overlap
		}
	}
	if !together {
		t.Error("no two trials ran at the same time, though some had pools of their own")
	}
}

// makePools gives each pool a worker, for the time of the test.
func (e *env) makePools(t *testing.T, pools ...string) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := e.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	// A node that an interrupted run left in one of these pools counts as free.
	free := slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool {
		return len(n.Spec.Taints) > 0 || n.Labels[v1alpha1.LabelPool] != "" && !slices.Contains(pools, n.Labels[v1alpha1.LabelPool])
	})
	if len(free) < len(pools) {
		t.Fatalf("%d workers are in no pool, and the test needs %d (make cluster WORKERS=2)", len(free), len(pools))
	}
	for i, pool := range pools {
		e.label(t.Context(), t, &free[i], pool)
		t.Cleanup(func() { e.label(context.Background(), t, &free[i], "") })
	}
}

// label puts a node into a pool, or takes it out.
func (e *env) label(ctx context.Context, t *testing.T, n *corev1.Node, pool string) {
	t.Helper()
	before := n.DeepCopy()
	if n.Labels[v1alpha1.LabelPool] = pool; pool == "" {
		delete(n.Labels, v1alpha1.LabelPool)
	}
	if err := e.Patch(ctx, n, client.MergeFrom(before)); err != nil {
		t.Errorf("label node %s: %v", n.Name, err)
	}
}

// showQueue is the output of kubectl assay queue.
func (e *env) showQueue(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	s := &session.Session{Out: &out, Now: time.Now, Connect: func() (session.Cluster, error) {
		return session.Cluster{Client: e.Client, Namespace: e.namespace}, nil
	}}
	if err := cliqueue.Run(t.Context(), s, cliqueue.Options{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
