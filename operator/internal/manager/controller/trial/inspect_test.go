package trial

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/trial/inspect"
	"assay.dev/assay/operator/internal/node/protocol"
)

// failed returns a trial that was judged because a replica exited in the middle of its run.
func failed(t *testing.T, keep v1alpha1.Duration) *play {
	t.Helper()
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Debug = &v1alpha1.Debug{KeepFailed: keep} })
	p.released()
	p.agents.reports[p.layout().Servers[0].Name].Containers = []protocol.ContainerState{
		{Name: "replica", State: protocol.StateExited, ExitCode: 139, Exited: time.Second, Tail: "segfault"}}
	p.measured(10, 0)
	return p
}

func (p *play) debug(d *v1alpha1.Debug) {
	p.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"debug": d}})
	if err != nil {
		p.t.Fatal(err)
	}
	exp := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "exp"}}
	if err := p.env.Client.Patch(p.t.Context(), exp, client.RawPatch(types.MergePatchType, patch)); err != nil {
		p.t.Fatal(err)
	}
}

// wantKept checks three things: every pod of the trial is there, no pod is told to end its
// processes, and the trial's results are stored.
func (p *play) wantKept() {
	p.t.Helper()
	if c := p.condition(v1alpha1.TrialCleanedUp); c.Reason != v1alpha1.ReasonKept || !strings.Contains(c.Message, "kubectl get pods -l assay.dev/trial="+p.key.Name) {
		p.t.Fatalf("the clean-up is %s: %s; want the pods to be kept", c.Reason, c.Message)
	}
	pods := &corev1.PodList{}
	if err := p.env.Client.List(p.t.Context(), pods, client.InNamespace(p.ns), client.MatchingLabels{v1alpha1.LabelTrial: p.key.Name}); err != nil {
		p.t.Fatal(err)
	}
	if n := len(p.layout().Replicas()) + len(p.layout().Clients); len(pods.Items) != n {
		p.t.Errorf("%d of %d pods are there", len(pods.Items), n)
	}
	for name, d := range p.agents.directives {
		if d.Finish {
			p.t.Errorf("%s is told to end its processes", name)
		}
	}
	if p.trial().Status.ResultsConfigMap == "" {
		p.t.Error("what is known of the trial is not stored while its pods are kept")
	}
}

// The pods of a failed trial stay until the deadline, even if managers change, and the next trial
// waits for its pools.
func TestPodsOfFailedTrialsAreKept(t *testing.T) {
	p := failed(t, "30m")
	p.settle(false)
	p.wantKept()
	first := p.key
	p.key = p.newTrial("trial-1")
	p.settle(false)
	if c := p.condition(v1alpha1.TrialAdmitted); c.Reason != v1alpha1.ReasonQueued || !strings.Contains(c.Message, "trial-0") {
		t.Errorf("the next trial is %s: %s; want it queued behind the one that holds the pools", c.Reason, c.Message)
	}
	p.key = first
	p.newReconciler()
	p.clock.Step(29 * time.Minute)
	p.settle(false)
	p.wantKept()
	p.clock.Step(time.Minute)
	p.settle(false)
	p.clock.Step(time.Minute)
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonReplicaExited)
	kept, judged := p.trial().Status.Times.Kept, p.condition(v1alpha1.TrialValid).LastTransitionTime
	if kept == nil || kept.Sub(judged.Time) < 30*time.Minute {
		t.Errorf("the pods were kept until %v, the trial was judged at %v", kept, judged)
	}
}

// A user who has seen enough can remove the setting at any time.
func TestKeptPodsAreLetGo(t *testing.T) {
	p := failed(t, "24h")
	p.settle(false)
	p.wantKept()
	exp := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "exp"}}
	if got := inspect.Of(p.env.Client)(t.Context(), exp); len(got) != 1 || got[0].NamespacedName != p.key {
		t.Errorf("a change of the experiment brings back %v, want %v", got, p.key)
	}
	p.debug(nil)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonReplicaExited)
	if got := inspect.Of(p.env.Client)(t.Context(), exp); len(got) != 0 {
		t.Errorf("a change of the experiment brings back %v, which is over", got)
	}
}

// The pods of a trial that counts go at once, and so do pods that are in deletion already.
func TestPodsAreNotKept(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(t *testing.T) *play
		end  string
	}{
		"of a trial that counts": {func(t *testing.T) *play {
			p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Debug = &v1alpha1.Debug{KeepFailed: "30m"} })
			p.released()
			p.measured(10, 0)
			return p
		}, v1alpha1.ReasonSucceeded},
		"without the setting": {func(t *testing.T) *play { return failed(t, "0s") }, v1alpha1.ReasonInvalid},
		"when they go already": {func(t *testing.T) *play {
			p := failed(t, "0s")
			p.settle(false)
			if c := p.condition(v1alpha1.TrialCleanedUp); c.Reason != v1alpha1.ReasonDeleting {
				t.Fatalf("the clean-up is %s: %s", c.Reason, c.Message)
			}
			p.debug(&v1alpha1.Debug{KeepFailed: "30m"})
			return p
		}, v1alpha1.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.play(t)
			p.settle(true)
			if c := p.condition(v1alpha1.TrialComplete); c.Status != metav1.ConditionTrue || c.Reason != tc.end {
				t.Errorf("the trial ended as %s %s, want %s:\n%s", c.Status, c.Reason, tc.end, p.conditions())
			}
			if kept := p.trial().Status.Times.Kept; kept != nil {
				t.Errorf("its pods were kept until %v", kept)
			}
		})
	}
}
