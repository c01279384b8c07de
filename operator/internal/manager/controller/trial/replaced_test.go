package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// killAt is when the planned fault deletes pods.
const killAt = 2 * time.Second

// replacedPlay is a trial with faults of Chaos Mesh that replace replica 2's pod or restart its
// containers. The test itself plays these faults.
type replacedPlay struct {
	*play
	target   string
	n        int // pods made so far
	instants []time.Duration
	chaos    chaosDouble
}

// chaosFault returns a fault of Chaos Mesh that hits replica 2.
func chaosFault(name, at, lasts, spec string) v1alpha1.Fault {
	f := v1alpha1.Fault{Name: name, At: v1alpha1.Duration(at), EveryPoint: true, ChaosMesh: &v1alpha1.ChaosMesh{
		Kind: "PodChaos", Target: v1alpha1.Target{Replicas: []int32{2}}, Spec: runtime.RawExtension{Raw: []byte(spec)},
	}}
	if lasts != "" {
		f.For = new(v1alpha1.Duration(lasts))
	}
	return f
}

func podKill(at time.Duration) v1alpha1.Fault {
	return chaosFault("kill-"+at.String(), at.String(), "", `{"action":"pod-kill"}`)
}

func newReplacedPlay(t *testing.T, faults ...v1alpha1.Fault) *replacedPlay {
	t.Helper()
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Faults = faults })
	m := &replacedPlay{play: p}
	for _, f := range faults {
		m.instants = append(m.instants, f.At.OrZero())
		if f.For != nil {
			m.instants = append(m.instants, f.At.OrZero()+f.For.OrZero())
		}
	}
	m.chaos = chaosDouble{Client: p.env.Client, objects: map[string]*unstructured.Unstructured{}}
	m.takeOver()
	p.released()
	m.target = p.layout().Servers[2].Name
	return m
}

// takeOver starts a new manager.
func (m *replacedPlay) takeOver() {
	m.newReconciler()
	m.r.Client, m.r.Reader = m.chaos, m.chaos
}

// at moves the clock to d after t = 0. It stops at each instant of a fault on the way, and looks at
// the trial.
func (m *replacedPlay) at(d time.Duration) {
	m.t.Helper()
	for _, then := range append(slices.Sorted(slices.Values(m.instants)), d) {
		if t := time.Unix(0, m.trial().Status.ZeroUnixNanos).Add(then); then <= d && !t.Before(m.clock.Now()) {
			m.clock.SetTime(t)
			m.settle(true)
		}
	}
}

// chaosDouble is an API server with Chaos Mesh's kinds. It claims at once that every selected pod
// has the fault, and does nothing to them.
type chaosDouble struct {
	client.Client
	objects map[string]*unstructured.Unstructured
}

func ofChaosMesh(o runtime.Object) bool {
	return o.GetObjectKind().GroupVersionKind().Group == chaosmesh.GroupVersion.Group
}

func (c chaosDouble) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if !ofChaosMesh(o) {
		return c.Client.Create(ctx, o, options...)
	}
	u := o.(*unstructured.Unstructured).DeepCopy()
	expressions, _, err := unstructured.NestedSlice(u.Object, "spec", "selector", "expressionSelectors")
	if err != nil {
		return err
	}
	var records []any
	for _, pod := range expressions[0].(map[string]any)["values"].([]any) {
		records = append(records, map[string]any{"id": u.GetNamespace() + "/" + pod.(string), "selectorKey": ".", "phase": "Injected"})
	}
	u.Object["status"] = map[string]any{"experiment": map[string]any{"containerRecords": records}, "conditions": []any{
		map[string]any{"type": "Selected", "status": "True"}, map[string]any{"type": "AllInjected", "status": "True"}, map[string]any{"type": "AllRecovered", "status": "False"},
	}}
	c.objects[u.GetName()] = u
	return nil
}

func (c chaosDouble) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if !ofChaosMesh(o) {
		return c.Client.Get(ctx, key, o, options...)
	}
	u := c.objects[key.Name]
	if u == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: chaosmesh.GroupVersion.Group}, key.Name)
	}
	u.DeepCopyInto(o.(*unstructured.Unstructured))
	return nil
}

func (c chaosDouble) List(ctx context.Context, l client.ObjectList, options ...client.ListOption) error {
	if !ofChaosMesh(l) {
		return c.Client.List(ctx, l, options...)
	}
	for _, u := range c.objects {
		l.(*unstructured.UnstructuredList).Items = append(l.(*unstructured.UnstructuredList).Items, *u.DeepCopy())
	}
	return nil
}

func (c chaosDouble) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if !ofChaosMesh(o) {
		return c.Client.Delete(ctx, o, options...)
	}
	delete(c.objects, o.GetName())
	return nil
}

// deletePod deletes a pod, as the first act of pod-kill.
func (m *replacedPlay) deletePod(name string) {
	m.t.Helper()
	if err := m.env.Client.Delete(m.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: name}}, client.GracePeriodSeconds(0)); err != nil {
		m.t.Fatal(err)
	}
	delete(m.agents.reports, name)
}

// makePod makes the next pod, as the StatefulSet would, and returns its UID.
func (m *replacedPlay) makePod(name string, change func(*corev1.Pod)) types.UID {
	m.t.Helper()
	sets := &appsv1.StatefulSetList{}
	if err := m.env.Client.List(m.t.Context(), sets, client.InNamespace(m.ns)); err != nil || len(sets.Items) == 0 {
		m.t.Fatalf("%d StatefulSets: %v", len(sets.Items), err)
	}
	set := sets.Items[0]
	yes := true
	m.n++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: name,
			Labels:          map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeReplica, v1alpha1.LabelTrial: m.key.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: &yes}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: new(int64)},
	}
	if change != nil {
		change(p)
	}
	if err := m.env.Client.Create(m.t.Context(), p); err != nil {
		m.t.Fatal(err)
	}
	ip := fmt.Sprintf("10.0.9.%d", m.n)
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	if err := m.env.Client.Status().Update(m.t.Context(), p); err != nil {
		m.t.Fatal(err)
	}
	return p.UID
}

// replace deletes the pod and makes the next one, whose agent then reports.
func (m *replacedPlay) replace(name string) types.UID {
	m.t.Helper()
	m.deletePod(name)
	uid := m.makePod(name, nil)
	m.settle(true)
	m.agents.reports[name] = &protocol.Report{Incarnation: "2", Containers: []protocol.ContainerState{{Name: "replica", State: protocol.StateRunning, Starts: 1}}}
	m.settle(true)
	return uid
}

func (m *replacedPlay) goesOn() {
	m.t.Helper()
	if c := m.condition(v1alpha1.TrialValid); c.Status != metav1.ConditionUnknown {
		m.t.Fatalf("the trial is given up: %s: %s", c.Reason, c.Message)
	}
}

// ends lets the run end without further events.
func (m *replacedPlay) ends(outcome, reason string) results.Trial {
	m.t.Helper()
	m.measured(1000, 0)
	for range 4 { // several waits at the end of a trial
		m.settle(true)
		m.clock.Step(30 * time.Second)
	}
	m.settle(true)
	return m.wantEnd(outcome, reason)
}

// resultsPod returns the entry of a pod in the results.
func resultsPod(t *testing.T, r results.Trial, name string) results.Pod {
	t.Helper()
	for _, p := range r.Pods {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("the results have no pod %s", name)
	return results.Pod{}
}

// After a fault has deleted a pod, the next pod gets its files with its own address and starts at
// once. No other files change, and none of the first pod's reports count for the second.
func TestAPodIsReplacedAndTheTrialGoesOn(t *testing.T) {
	m := newReplacedPlay(t, podKill(killAt))
	first, other := m.agents.registered[m.target], m.layout().Servers[0].Name
	before, ofOther := m.agents.directives[m.target], m.agents.directives[other]
	m.agents.reports[m.target].TCPResets = 7
	m.agents.reports[m.target].Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateRunning, Starts: 1, Tail: "served 100 requests"}}
	m.at(killAt)
	m.goesOn()
	last := m.agents.reports[m.target]
	if err := m.env.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: m.target}}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	m.agents.reports[m.target] = last // the coordinator still has it
	m.clock.Step(100 * time.Millisecond)
	m.reconcile()
	if _, known := m.agents.registered[m.target]; known {
		t.Error("the coordinator still talks to the pod that is gone")
	}
	delete(m.agents.reports, m.target)
	m.goesOn()

	m.clock.Step(time.Second)
	uid := m.makePod(m.target, nil)
	m.takeOver() // another manager must know the earlier pods
	m.settle(true)
	m.goesOn()
	now := m.agents.registered[m.target]
	if now.UID != uid || now.UID == first.UID {
		t.Fatalf("the coordinator knows pod %s as %s; want %s, which took the place of %s", m.target, now.UID, uid, first.UID)
	}
	d := m.agents.directives[m.target]
	if d.Run == nil || !d.Start || len(d.Commands) != 0 || len(d.Containers) != len(before.Containers) || d.Run.ZeroUnixNanos != before.Run.ZeroUnixNanos {
		t.Errorf("the successor's directive is %+v; want that it starts its processes in the run that is on, without steps", d)
	}
	if got := m.agents.directives[other]; got.FilesDigest != ofOther.FilesDigest || got.Version != ofOther.Version {
		t.Errorf("the directive of a pod that lives on changed:\n%+v\n%+v", ofOther, got)
	}
	m.clock.Step(time.Second)
	m.agents.reports[m.target] = &protocol.Report{Incarnation: "2", TCPResets: 1, Containers: []protocol.ContainerState{{Name: "replica", State: protocol.StateRunning, Starts: 1}}}
	m.settle(true)
	r := m.ends(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	p := resultsPod(t, r, m.target)
	if p.UID != string(uid) || p.TCPResets != 1 || len(p.Predecessors) != 1 || p.CreatedMillis < 3000 || p.ReadyMillis < 4000 {
		t.Fatalf("the results say of the pod %+v; want the successor's account, with one predecessor", p)
	}
	if was := p.Predecessors[0]; was.UID != string(first.UID) || !was.Reported || was.TCPResets != 7 || was.DeletedMillis < 2000 || was.DeletedMillis > p.CreatedMillis {
		t.Errorf("the predecessor is %+v; want what its agent said last", was)
	}
	if got := r.Logs[m.target+"@"+string(first.UID)+"/replica"]; got != "served 100 requests" {
		t.Errorf("of the predecessor's output the results have %q", got)
	}
}

// A pod is lost although no fault was to end it, or sooner or more often than planned. The trial
// ends, even if another pod takes its place.
func TestPodsThatNoFaultReplaces(t *testing.T) {
	for name, tc := range map[string]struct {
		faults  []v1alpha1.Fault
		happens func(m *replacedPlay)
		want    string
	}{
		"before its instant": {[]v1alpha1.Fault{podKill(killAt)}, func(m *replacedPlay) {
			m.at(killAt - time.Second)
			m.replace(m.target)
		}, "before a fault was to replace it"},
		"gone before its instant": {[]v1alpha1.Fault{podKill(killAt)}, func(m *replacedPlay) {
			m.at(killAt - time.Second)
			m.deletePod(m.target)
		}, "is gone in the middle of the run"},
		"another replica": {[]v1alpha1.Fault{podKill(killAt)}, func(m *replacedPlay) {
			m.at(killAt + time.Second)
			m.replace(m.layout().Servers[0].Name)
		}, "no fault is to replace it"},
		"once too often": {[]v1alpha1.Fault{podKill(killAt)}, func(m *replacedPlay) {
			m.at(killAt + time.Second)
			m.replace(m.target)
			m.goesOn()
			m.replace(m.target)
		}, "once more than faults were to replace it (1)"},
		"once too often, and another manager sees it": {[]v1alpha1.Fault{podKill(killAt)}, func(m *replacedPlay) {
			m.at(killAt + time.Second)
			m.replace(m.target)
			m.takeOver()
			m.replace(m.target)
		}, "once more than faults were to replace it (1)"},
		"the second time too early": {[]v1alpha1.Fault{podKill(killAt), podKill(3 * killAt)}, func(m *replacedPlay) {
			m.at(killAt + time.Second)
			m.replace(m.target)
			m.goesOn()
			m.replace(m.target)
		}, "before a fault was to replace it"},
		"a pod that no StatefulSet made": {[]v1alpha1.Fault{podKill(killAt)}, func(m *replacedPlay) {
			m.at(killAt + time.Second)
			m.deletePod(m.target)
			m.makePod(m.target, func(p *corev1.Pod) { p.OwnerReferences = nil })
		}, "no StatefulSet has made it"},
		"a pod of another StatefulSet": {[]v1alpha1.Fault{podKill(killAt)}, func(m *replacedPlay) {
			m.at(killAt + time.Second)
			m.deletePod(m.target)
			m.makePod(m.target, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "somebody-else" })
		}, "its StatefulSet is none of the trial"},
		"a fault that only restarts containers": {[]v1alpha1.Fault{chaosFault("again", "2s", "", `{"action":"container-kill"}`)}, func(m *replacedPlay) {
			m.at(killAt + time.Second)
			m.replace(m.target)
		}, "made again in the middle of the run"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newReplacedPlay(t, tc.faults...)
			m.agents.reports[m.target].Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateRunning, Starts: 1}}
			tc.happens(m)
			m.settle(true)
			if c := m.condition(v1alpha1.TrialValid); c.Reason != v1alpha1.ReasonRunLost || !strings.Contains(c.Message, tc.want) {
				t.Fatalf("Valid is %s: %s; want %s with %q", c.Reason, c.Message, v1alpha1.ReasonRunLost, tc.want)
			}
			m.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonRunLost)
		})
	}
}

// The trial waits for a deleted pod that does not come back until the results are due. It does not
// count.
func TestAPodThatIsDeletedAndDoesNotComeBack(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(m *replacedPlay)
		want    string
	}{
		"no pod":              {func(*replacedPlay) {}, "did not come back"},
		"a pod with no agent": {func(m *replacedPlay) { m.makePod(m.target, nil) }, "did not report"},
		"an agent that does not start the processes": {func(m *replacedPlay) {
			m.makePod(m.target, nil)
			m.settle(true)
			m.agents.reports[m.target] = &protocol.Report{WaitingFor: "names to resolve", Containers: []protocol.ContainerState{{Name: "replica"}}}
		}, "it waited for names to resolve"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newReplacedPlay(t, podKill(killAt))
			m.at(killAt + 100*time.Millisecond)
			m.deletePod(m.target)
			m.settle(true)
			m.goesOn()
			tc.happens(m)
			m.ends(v1alpha1.ReasonInvalid, v1alpha1.ReasonRunLost)
			if c := m.condition(v1alpha1.TrialValid); !strings.Contains(c.Message, tc.want) {
				t.Errorf("the message is %q, want %q in it", c.Message, tc.want)
			}
		})
	}
}

// A pod that a fault replaces twice has two predecessors. The files of its successors once stayed
// in the manager's memory after the trial.
func TestAPodIsReplacedTwice(t *testing.T) {
	m := newReplacedPlay(t, podKill(killAt), podKill(3*killAt))
	m.at(killAt + 100*time.Millisecond)
	m.replace(m.target)
	m.at(3*killAt + 100*time.Millisecond)
	m.replace(m.target)
	m.goesOn()
	if p := resultsPod(t, m.ends(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded), m.target); len(p.Predecessors) != 2 {
		t.Errorf("the predecessors are %+v, want two", p.Predecessors)
	}
	if n := m.r.engine.Cached(); n != 0 {
		t.Errorf("%d trials are remembered", n)
	}
}

// If a fault plans restarts, they are expected in the fault's containers and from its instant on.
// One restart more is not.
func TestRestartsThatChaosMeshExplains(t *testing.T) {
	once, failure := chaosFault("again", "2s", "", `{"action":"container-kill"}`), chaosFault("failing", "2s", "4s", `{"action":"pod-failure"}`)
	for name, tc := range map[string]struct {
		fault    v1alpha1.Fault
		after    time.Duration
		replica  int
		restarts int32
		valid    bool
	}{
		"the container that is killed":            {once, 3 * time.Second, 2, 1, true},
		"more often":                              {once, 3 * time.Second, 2, 2, false},
		"before the instant":                      {once, time.Second, 2, 1, false},
		"another replica":                         {once, 3 * time.Second, 0, 1, false},
		"images replaced and put back":            {failure, 8 * time.Second, 2, 3, true},
		"restarted more often than that explains": {failure, 8 * time.Second, 2, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newReplacedPlay(t, tc.fault)
			if d := m.agents.directives[m.target]; len(d.Run.Restarts) != 1 || d.Run.Restarts[0].From != killAt || d.Run.Restarts[0].Until <= killAt {
				t.Errorf("the agent is told of the restarts %+v, want one from %v on", d.Run.Restarts, killAt)
			}
			if d := m.agents.directives[m.layout().Servers[0].Name]; len(d.Run.Restarts) != 0 {
				t.Errorf("an agent whose containers are not restarted is told of %+v", d.Run.Restarts)
			}
			if tc.after > killAt {
				m.at(killAt)
				m.fails(tc.fault)
			}
			m.at(tc.after)
			m.restarted(m.layout().Servers[tc.replica].Name, tc.restarts)
			m.settle(true)
			if !tc.valid {
				m.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonPodRestarted)
				return
			}
			m.goesOn()
			m.ends(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
		})
	}
}

// fails replaces the target's image, if the fault does that.
func (m *replacedPlay) fails(f v1alpha1.Fault) {
	m.t.Helper()
	if !chaosmesh.RestartsAgent(&f) {
		return
	}
	p := &corev1.Pod{}
	if err := m.env.Client.Get(m.t.Context(), client.ObjectKey{Namespace: m.ns, Name: m.target}, p); err != nil {
		m.t.Fatal(err)
	}
	p.Spec.Containers[0].Image = "pause"
	if err := m.env.Client.Update(m.t.Context(), p); err != nil {
		m.t.Fatal(err)
	}
	m.settle(true)
}

// restarted sets the restarts that the kubelet counts.
func (m *replacedPlay) restarted(name string, times int32) {
	m.t.Helper()
	p := &corev1.Pod{}
	if err := m.env.Client.Get(m.t.Context(), client.ObjectKey{Namespace: m.ns, Name: name}, p); err != nil {
		m.t.Fatal(err)
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: times}}
	if err := m.env.Client.Status().Update(m.t.Context(), p); err != nil {
		m.t.Fatal(err)
	}
}

// Chaos Mesh reports a fault only after clients have felt it for a while. The phase before the
// fault must not contain part of it.
func TestRecoveryBeginsWhenChaosMeshIsAsked(t *testing.T) {
	line := results.NewTimeline(-5000, 270)
	for i := range line.Committed {
		line.Committed[i] = 100
		if at := line.FirstMillis + int64(i)*line.IntervalMillis; at >= 5100 && at < 5900 {
			line.Committed[i] = 0
		}
	}
	got := validity.Recoveries(&results.Trial{MeasureNanos: (20 * time.Second).Nanoseconds(), Timeline: &line, Faults: []results.FaultRecord{
		{ID: "gone/1/inject/a", Fault: "gone", Kind: "Inject", Object: "PodChaos container-kill", PlannedMillis: 5000, StartedMillis: 5001, ConfirmedMillis: 6000},
	}})
	if len(got) != 1 || got[0].ConfirmedMillis != 5001 || got[0].ThroughputBefore != 1000 || !got[0].Dipped || !got[0].Recovered || got[0].RecoverMillis != 899 {
		t.Errorf("the recoveries are %+v, want one, of a dip from 5100 to 5900 ms, after 1000 transactions a second", got)
	}
}
