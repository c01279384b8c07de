package trial

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

// ensureNode makes a node if it does not exist. No other pods run on it.
func ensureNode(t *testing.T, env *testcluster.Env, name, pool, cpu string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if pool != "" {
		node.Labels = map[string]string{v1alpha1.LabelPool: pool}
	}
	if err := env.Client.Create(t.Context(), node); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	// Some clusters taint nodes without a reporting kubelet. The test removes the taints, since it
	// says that the node is well.
	node.Spec.Taints = nil
	if err := env.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("500"),
	}
	node.Status.Capacity = node.Status.Allocatable
	if err := env.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

func (p *play) dropNode(name string) {
	p.t.Cleanup(func() {
		if err := p.env.Client.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); client.IgnoreNotFound(err) != nil {
			p.t.Errorf("delete node %s: %v", name, err)
		}
	})
}

// in puts the trials of an experiment into pools.
func in(replicas, clients string) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Placement.Replicas, s.Placement.Clients = replicas, clients
	}
}

// asking makes every replica request so much CPU.
func asking(cpu string) func(*v1alpha1.SystemSpec) {
	return func(s *v1alpha1.SystemSpec) {
		s.Replicas.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func (p *play) wantAdmitted(status metav1.ConditionStatus, reason, message string) {
	p.t.Helper()
	p.settle(false)
	if c := p.condition(v1alpha1.TrialAdmitted); c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		p.t.Errorf("%s: admitted is %s, %s: %s; want %s, %s with %q", p.key, c.Status, c.Reason, c.Message, status, reason, message)
	}
}

// A trial whose pods do not all have room does not start, and says what is missing. It does not
// keep other trials from starting.
func TestATrialWithoutRoomWaitsAndLetsOthersPass(t *testing.T) {
	p := newPlay(t, asking("32"))
	p.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonUnschedulable, "finds no node (each asks for cpu 32)")
	sets := &corev1.PodList{}
	if err := p.env.Client.List(t.Context(), sets, client.InNamespace(p.ns)); err != nil || len(sets.Items) > 0 {
		t.Errorf("a trial that was not admitted has %d pods, %v", len(sets.Items), err)
	}
	other := newPlay(t, nil)
	other.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "all nodes to itself")
	p.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonQueued, "Waiting for trial "+other.key.String())
	other.discard(other.key)
	p.dropNode("more")
	ensureNode(t, p.env, "more", "", "64")
	p.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "")
}

// A trial whose System's snapshot was deleted once stopped the decisions about every trial behind
// it.
func TestATrialWithoutSnapshotLetsOthersPass(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Priority = 1 })
	snapshot := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.trial().Spec.System.Revision}}
	if err := p.env.Client.Get(t.Context(), client.ObjectKeyFromObject(snapshot), snapshot); err != nil {
		t.Fatal(err)
	}
	if err := p.env.Client.Delete(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	other := newPlay(t, nil)
	other.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "all nodes to itself")
	other.discard(other.key)
	p.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonInsufficientResources, `read the System's snapshot exp-echo: controllerrevisions.apps "exp-echo" not found`)
	snapshot.ResourceVersion, snapshot.UID = "", ""
	if err := p.env.Client.Create(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	p.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "")
}

// A trial waits while pods of other users take its room.
func TestATrialWaitsForRoomBesideOthers(t *testing.T) {
	p := newPlay(t, asking("10"))
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "theirs"}, Spec: corev1.PodSpec{NodeName: "stage",
		TerminationGracePeriodSeconds: new(int64), Containers: []corev1.Container{{Name: "c", Image: "i",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("60")}}}}}}
	if err := p.env.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonInsufficientResources, "with too little cpu")
	if err := p.env.Client.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "")
}

// Trials on different pools run at the same time. A trial that needs both waits for both, even
// after the manager restarts.
func TestPools(t *testing.T) {
	a := newPlayOf(t, nil, in("pool-a", "pool-a"))
	for _, pool := range []string{"pool-a", "pool-b"} {
		a.dropNode(pool)
		ensureNode(t, a.env, pool, pool, "64")
	}
	b := newPlayOf(t, nil, in("pool-b", "pool-b"))
	a.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "pool pool-a to itself")
	b.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "pool pool-b to itself")
	both := newPlayOf(t, nil, in("pool-a", "pool-b"))
	nowhere := newPlayOf(t, nil, in("pool-c", "pool-c"))
	both.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonQueued, "which has pool pool-")
	both.newReconciler() // a manager that has just started: the trials' status has the lock
	both.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonQueued, "which has pool pool-")
	nowhere.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonUnschedulable, "without the label assay.dev/pool=pool-c")
	a.discard(a.key)
	both.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonQueued, b.key.String())
	b.discard(b.key)
	both.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "pools pool-a, pool-b to itself")
	for name, want := range map[string]string{both.layout().Sets[0].Name: "pool-a"} {
		if got := both.statefulSetPool(name); got != want {
			t.Errorf("StatefulSet %s is for pool %q, want %q", name, got, want)
		}
	}
}

// The experiment with the higher priority goes first, although it came later and its next trial is
// only about to be made.
func TestPriority(t *testing.T) {
	low := newPlay(t, nil)
	high := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Priority = 10 })
	high.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "")
	low.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonQueued, high.key.String()+", which has all nodes")
	high.discard(high.key)
	exp := &v1alpha1.Experiment{}
	key := types.NamespacedName{Namespace: high.ns, Name: "exp"}
	if err := high.env.Client.Get(t.Context(), key, exp); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := high.env.Client.Delete(context.Background(), exp); err != nil {
			t.Error(err)
		}
	})
	exp.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid,
		Message: "It is.", LastTransitionTime: metav1.NewTime(low.clock.Now())}}
	if err := high.env.Client.Status().Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	low.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonQueued, "the next trial of experiment "+high.ns+"/exp")
	low.clock.Step(time.Minute) // its next trial does not come
	low.wantAdmitted(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "")
}

func TestASuspendedExperimentStartsNoTrial(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Suspend = true })
	p.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonSuspended, "spec.suspend")
}

// A trial reports a quota that is too small before it makes anything.
func TestQuotaIsAskedFirst(t *testing.T) {
	p := newPlay(t, nil)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	if err := p.env.Client.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	if err := p.env.Client.Status().Update(t.Context(), quota); err != nil { // no controller counts in this cluster
		t.Fatal(err)
	}
	p.wantAdmitted(metav1.ConditionFalse, v1alpha1.ReasonQuotaExceeded, "ResourceQuota small allows pods 2, of which 0 is in use, and the trial needs 5")
}

// If the API server refuses pods, the trial ends at once, with the API server's message.
// StatefulSets and Jobs would try for ever.
func TestForbiddenPodsEndTheTrial(t *testing.T) {
	p := newPlay(t, nil)
	p.settle(false)
	tell := func(message string) {
		set := p.layout().Sets[0].Name
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, GenerateName: "e-"}, Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Namespace: p.ns, Name: set}}
		if err := p.env.Client.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	tell(`create Pod x in StatefulSet x failed error: pods "x" is forbidden: error looking up service account default: serviceaccount "default" not found`)
	p.clock.Step(engine.RetryPoll)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialDeployed); c.Reason != v1alpha1.ReasonPodsPending {
		t.Fatalf("after a refusal that passes, Deployed is %s: %s", c.Reason, c.Message)
	}
	tell(`create Pod x in StatefulSet x failed error: pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`)
	p.reconcile() // the agents have no manager yet, and no time has passed
	p.settle(false)
	p.clock.Step(engine.RetryPoll)
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonPodsForbidden)
	if c := p.condition(v1alpha1.TrialValid); !strings.Contains(c.Message, "exceeded quota: small") {
		t.Errorf("the reason is %s", c.Message)
	}
}

// The profile of the namespace becomes stricter after the experiment was accepted.
func TestAStricterNamespaceEndsTheTrial(t *testing.T) {
	p := newPlay(t, nil)
	ns := &corev1.Namespace{}
	if err := p.env.Client.Get(t.Context(), types.NamespacedName{Name: p.ns}, ns); err != nil {
		t.Fatal(err)
	}
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
	if err := p.env.Client.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonPodsForbidden)
	if c := p.condition(v1alpha1.TrialValid); !strings.Contains(c.Message, "enforces the Pod Security profile baseline") || !strings.Contains(c.Message, "NET_ADMIN") {
		t.Errorf("the reason is %s", c.Message)
	}
}

// Every fault gives an event on the Experiment.
func TestFaultsAreAudited(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		fail   string
		want   string
	}{
		"confirmed": {want: "Normal FaultCarriedOut Trial trial-0, fault crash: Kill of %s, planned for -1.000 s, begun at -1.000 s, confirmed at -0.999 s. Times"},
		"failed":    {fail: "no launcher", want: "Warning FaultFailed Trial trial-0, fault crash: Kill of %s, planned for -1.000 s, failed: no launcher."},
		"without silence": {change: func(s *v1alpha1.ExperimentSpec) { s.Network.Shaping = v1alpha1.ShapingNone },
			want: "Normal FaultCarriedOut Trial trial-0, fault crash: Kill of %s, planned for -1.000 s, begun at -1.000 s, confirmed at -0.999 s, without silence."},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayOf(t, nil, tc.change)
			p.released()
			p.newReconciler() // a manager that takes over sends events twice at most, but misses none
			victim := p.layout().Servers[2].Name
			if tc.fail != "" {
				p.agents.reports[victim].Actions[0].Error = tc.fail
			}
			p.reconcile()
			p.reconcile()
			want, found := fmt.Sprintf(tc.want, victim), 0
			for _, e := range p.events() {
				if strings.HasPrefix(e, want) {
					found++
				} else if strings.Contains(e, "Fault") {
					t.Errorf("event %q", e)
				}
			}
			if found != 1 {
				t.Errorf("%d events say %q, want 1", found, want)
			}
		})
	}
}

// events returns the events since its last call.
func (p *play) events() []string {
	var out []string
	recorder := p.r.Recorder.(*events.FakeRecorder)
	for {
		select {
		case e := <-recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func (p *play) statefulSetPool(name string) string {
	p.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := p.env.Client.Get(p.t.Context(), types.NamespacedName{Namespace: p.ns, Name: name}, set); err != nil {
		p.t.Fatal(err)
	}
	return set.Spec.Template.Spec.NodeSelector[v1alpha1.LabelPool]
}
