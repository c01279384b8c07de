package trial

import (
	"context"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// byRegion places two replicas and a client in the east, and a replica and a client in the west.
func byRegion(label string) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 1}}
		s.Placement.ByRegion = &v1alpha1.RegionNodes{Label: label}
	}
}

// onStage labels the node that all trials of these tests run on.
func (p *play) onStage(labels map[string]string) {
	p.t.Helper()
	ctx := context.WithoutCancel(p.t.Context()) // the labels are removed after the test's end
	node := &corev1.Node{}
	if err := p.env.Client.Get(ctx, client.ObjectKey{Name: "stage"}, node); err != nil {
		p.t.Fatal(err)
	}
	before := node.DeepCopy()
	node.Labels = labels
	if err := p.env.Client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		p.t.Fatal(err)
	}
}

// A trial whose region has no node does not start. It starts once there is one.
func TestARegionWithoutANodeUnschedulable(t *testing.T) {
	p := newPlayOf(t, nil, byRegion("example.org/rack"))
	p.onStage(map[string]string{"example.org/rack": "east"})
	t.Cleanup(func() { p.onStage(nil) })
	p.settle(false)
	c := p.condition(v1alpha1.TrialAdmitted)
	if c.Reason != v1alpha1.ReasonUnschedulable || !strings.Contains(c.Message, "1 replica pod finds no node") || !strings.Contains(c.Message, "without the label example.org/rack=west") {
		t.Errorf("the trial waits with %s: %s", c.Reason, c.Message)
	}
}

// Three replicas that must not share a node wait for three nodes.
func TestTooFewNodesForOneReplicaEach(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
		s.Placement = v1alpha1.Placement{Replicas: "alone", Clients: "alone", Spread: v1alpha1.SpreadRequired}
	})
	ensureNode(t, p.env, "alone", "alone", "64")
	p.settle(false)
	c := p.condition(v1alpha1.TrialAdmitted)
	if c.Reason != v1alpha1.ReasonUnschedulable || !strings.Contains(c.Message, "2 replica pods find no node") || !strings.Contains(c.Message, "full with other pods of the trial, or to be kept free of them") {
		t.Errorf("the trial waits with %s: %s", c.Reason, c.Message)
	}
}

// The clients of each region are a Job of their own. The results still tell them apart.
func TestATrialByRegion(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
		byRegion("example.org/rack")(s)
		s.Placement.ByRegion.Values = []v1alpha1.RegionValue{{Region: "east", Value: "here"}, {Region: "west", Value: "here"}}
	})
	p.onStage(map[string]string{"example.org/rack": "here"})
	t.Cleanup(func() { p.onStage(nil) })
	p.released()
	var jobs batchv1.JobList
	if err := p.env.Client.List(t.Context(), &jobs, client.InNamespace(p.ns)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, job := range jobs.Items {
		names = append(names, job.Name+" on "+job.Spec.Template.Spec.NodeSelector["example.org/rack"])
	}
	slices.Sort(names)
	if want := []string{"trial-0-c-east on here", "trial-0-c-west on here"}; !slices.Equal(names, want) {
		t.Errorf("Jobs %q, want %q", names, want)
	}
	for i, name := range []string{"trial-0-c-east-0", "trial-0-c-west-0"} {
		if got := p.agents.registered[name]; got.Index != i || got.UID == "" {
			t.Errorf("%s is client %d, pod %q; want client %d", name, got.Index, got.UID, i)
		}
	}
	p.measured(1000, 0)
	p.settle(true)
	trial := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	if trial.Summary.Committed != 2000 {
		t.Errorf("%d transactions committed, want those of both clients, 2000", trial.Summary.Committed)
	}
}

// The cluster's owner may withdraw a capability that an accepted experiment wants.
func TestACapabilityThatIsAllowedNoMore(t *testing.T) {
	withLock := func(s *v1alpha1.SystemSpec) {
		s.Replicas.Containers[0].RunAsUser, s.Replicas.Containers[0].Capabilities = new(int64), []string{"IPC_LOCK"}
	}
	p := newPlay(t, withLock)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialValid); c.Reason != v1alpha1.ReasonRenderFailed || !strings.Contains(c.Message, "spec.replicas.containers[0].capabilities[0]: IPC_LOCK") {
		t.Errorf("the trial ended with %s: %s", c.Reason, c.Message)
	}
	p = newPlay(t, withLock)
	p.r.Environment.Capabilities = []string{"IPC_LOCK"}
	p.released()
}
