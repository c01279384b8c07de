package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/manager/controller/trial/chaos"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testcluster"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// chaosPlay is a trial with one fault of Chaos Mesh. The test plays the controller of Chaos Mesh.
type chaosPlay struct {
	*play
	kind, name string
}

// split returns a partition by Chaos Mesh of replica 0 from replica 1, from 2 s to 5 s.
func split() v1alpha1.Fault {
	return objectOf("NetworkChaos", "3s", `{"action": "partition", "direction": "both"}`, func(c *v1alpha1.ChaosMesh) { c.Peers = &v1alpha1.Target{Replicas: []int32{1}} })
}

// objectOf returns a fault of replica 0 at 2 s.
func objectOf(kind, lasts, spec string, change ...func(*v1alpha1.ChaosMesh)) v1alpha1.Fault {
	f := v1alpha1.Fault{Name: "cm", At: "2s", EveryPoint: true, ChaosMesh: &v1alpha1.ChaosMesh{
		Kind: kind, Target: v1alpha1.Target{Replicas: []int32{0}}, Spec: runtime.RawExtension{Raw: []byte(spec)},
	}}
	if lasts != "" {
		f.For = new(v1alpha1.Duration(lasts))
	}
	for _, c := range change {
		c(f.ChaosMesh)
	}
	return f
}

func newChaosPlay(t *testing.T, f v1alpha1.Fault) *chaosPlay {
	t.Helper()
	return newChaosPlayIn(t, testcluster.InProcess(t).WithOthers(t, chaosmesh.GroupVersion.Group), f)
}

// newServedChaosPlay uses an API server with the real kinds of Chaos Mesh, for tests about these.
func newServedChaosPlay(t *testing.T, f v1alpha1.Fault) *chaosPlay {
	t.Helper()
	server := testenv.Get(t)
	server.ChaosMesh(t)
	return newChaosPlayIn(t, &server.Env, f)
}

func newChaosPlayIn(t *testing.T, env *testcluster.Env, f v1alpha1.Fault) *chaosPlay {
	t.Helper()
	p := newPlayIn(t, env, nil, func(s *v1alpha1.ExperimentSpec) { s.Faults = []v1alpha1.Fault{f} })
	return &chaosPlay{play: p, kind: f.ChaosMesh.Kind, name: "trial-0-cm-1"}
}

// runs brings the trial to t = 0 less the warm-up. Pods have the label that Kubernetes gives to
// pods of StatefulSets.
func (c *chaosPlay) runs() {
	c.t.Helper()
	c.released()
	for _, r := range c.layout().Servers {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"statefulset.kubernetes.io/pod-name":"`+r.Name+`"}}}`))
		if err := c.env.Client.Patch(c.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: r.Name}}, patch); err != nil {
			c.t.Fatal(err)
		}
	}
}

// at sets the clock to an instant relative to t = 0, and reconciles.
func (c *chaosPlay) at(d time.Duration) {
	c.t.Helper()
	c.clock.SetTime(time.Unix(0, c.trial().Status.ZeroUnixNanos).Add(d))
	c.settle(true)
}

func (c *chaosPlay) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(chaosmesh.GroupVersion.WithKind(c.kind))
	err := c.env.Client.Get(c.t.Context(), client.ObjectKey{Namespace: c.ns, Name: c.name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return u
}

func (c *chaosPlay) must() *unstructured.Unstructured {
	c.t.Helper()
	u := c.object()
	if u == nil {
		c.t.Fatalf("there is no %s %s: %s", c.kind, c.name, c.conditions())
	}
	return u
}

// selects returns the pods that a selector of the object means to Chaos Mesh.
func (c *chaosPlay) selects(u *unstructured.Unstructured, at ...string) []string {
	c.t.Helper()
	spec := struct {
		Namespaces          []string                          `json:"namespaces"`
		LabelSelectors      map[string]string                 `json:"labelSelectors"`
		ExpressionSelectors []metav1.LabelSelectorRequirement `json:"expressionSelectors"`
	}{}
	raw, found, err := unstructured.NestedMap(u.Object, at...)
	if err != nil || !found {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec); err != nil {
		c.t.Fatal(err)
	}
	if len(spec.Namespaces) != 1 || spec.Namespaces[0] != c.ns || spec.LabelSelectors[v1alpha1.LabelTrial] != c.key.Name {
		c.t.Errorf("the selector looks beyond the trial: %v", raw)
	}
	sel := labels.SelectorFromSet(spec.LabelSelectors)
	for _, e := range spec.ExpressionSelectors {
		r, err := labels.NewRequirement(e.Key, selection.In, e.Values)
		if err != nil || e.Operator != metav1.LabelSelectorOpIn {
			c.t.Fatalf("%v: %v", e, err)
		}
		sel = sel.Add(*r)
	}
	list := &corev1.PodList{}
	if err := c.env.Client.List(c.t.Context(), list, client.InNamespace(c.ns), client.MatchingLabelsSelector{Selector: sel}); err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

// says plays the controller: it holds the object, chooses pods, and reports a phase. Without a
// phase it chooses no pods.
func (c *chaosPlay) says(phase, message string, others ...string) {
	c.t.Helper()
	u := c.must()
	u.SetFinalizers([]string{"chaos-mesh/records"})
	var records []any
	add := func(key string, pods []string) {
		for _, pod := range pods {
			r := map[string]any{"id": c.ns + "/" + pod, "selectorKey": key, "phase": phase, "injectedCount": int64(0), "recoveredCount": int64(0)}
			if message != "" {
				r["events"] = []any{map[string]any{"type": "Failed", "operation": "Apply", "message": message, "timestamp": "2026-01-01T00:00:00Z"}}
			}
			records = append(records, r)
		}
	}
	if phase != "" {
		add(".", append(c.selects(u, "spec", "selector"), others...))
		add(".Target", c.selects(u, "spec", "target", "selector"))
	}
	is := func(yes bool) string { return map[bool]string{true: "True", false: "False"}[yes] }
	u.Object["status"] = map[string]any{"experiment": map[string]any{"desiredPhase": "Run", "containerRecords": records}, "conditions": []any{
		map[string]any{"type": "Selected", "status": is(len(records) > 0)}, map[string]any{"type": "AllInjected", "status": is(phase == "Injected")},
		map[string]any{"type": "AllRecovered", "status": is(phase == "Not Injected")},
	}}
	if err := c.env.Client.Update(c.t.Context(), u); err != nil {
		c.t.Fatal(err)
	}
}

// letsGo plays the end of a recovery.
func (c *chaosPlay) letsGo() {
	c.t.Helper()
	u := c.must()
	if u.GetDeletionTimestamp() == nil {
		c.t.Fatal("nobody has deleted the object")
	}
	u.SetFinalizers(nil)
	if err := c.env.Client.Update(c.t.Context(), u); err != nil {
		c.t.Fatal(err)
	}
}

// ends lets the clients end, and then the trial.
func (c *chaosPlay) ends(outcome, reason string) results.Trial {
	c.t.Helper()
	c.measured(10, 0)
	c.settle(true)
	return c.wantEnd(outcome, reason)
}

func TestChaosMeshSplitsReplicas(t *testing.T) {
	c := newServedChaosPlay(t, split())
	c.runs()
	c.at(1900 * time.Millisecond)
	if c.object() != nil {
		t.Fatal("the object is there before its instant")
	}
	if after := c.reconcile().RequeueAfter; after <= 0 || after > 100*time.Millisecond {
		t.Errorf("100 ms before the instant the trial is looked at again after %v", after)
	}
	c.at(2 * time.Second)
	u := c.must()
	selector := func(pod string) map[string]any {
		return map[string]any{
			"namespaces": []any{c.ns}, "labelSelectors": map[string]any{"assay.dev/trial": "trial-0", "assay.dev/pod-type": "replica"},
			"expressionSelectors": []any{map[string]any{"key": "statefulset.kubernetes.io/pod-name", "operator": "In", "values": []any{pod}}},
		}
	}
	r := c.layout().Replicas()
	want := map[string]any{
		"action": "partition", "direction": "both", "duration": "4.25s", "mode": "all", "selector": selector(r[0].Name), "partitionBehavior": "drop",
		"target": map[string]any{"mode": "all", "selector": selector(r[1].Name)},
	}
	if diff := cmp.Diff(want, u.Object["spec"]); diff != "" {
		t.Errorf("the spec (-want +got):\n%s", diff)
	}
	if owners := u.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != c.trial().UID {
		t.Errorf("the object's owners are %v, want the trial", owners)
	}
	if after := c.reconcile().RequeueAfter; after != chaos.Poll {
		t.Errorf("what Chaos Mesh says is looked for after %v, want %v", after, chaos.Poll)
	}
	c.says("Not Injected/Wait", "")
	c.at(2200 * time.Millisecond)
	c.says("Injected", "")
	c.at(2700 * time.Millisecond)
	c.at(4900 * time.Millisecond)
	if u := c.must(); u.GetDeletionTimestamp() != nil {
		t.Fatal("the object is deleted before the fault is over")
	}
	c.at(5 * time.Second)
	if u := c.must(); u.GetDeletionTimestamp() == nil {
		t.Fatal("the object is not deleted though the fault is over")
	}
	c.at(5100 * time.Millisecond)
	c.letsGo()
	c.at(5400 * time.Millisecond)
	got := c.ends(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded).Faults
	wantFaults := []results.FaultRecord{
		{ID: "cm/1/inject/" + r[0].Name, Fault: "cm", Time: 1, Pod: r[0].Name, Kind: "Inject", Object: "NetworkChaos partition", Peers: 1, PlannedMillis: 2000, StartedMillis: 2000, ConfirmedMillis: 2700},
		{ID: "cm/1/recover/" + r[0].Name, Fault: "cm", Time: 1, Pod: r[0].Name, Kind: "Recover", Object: "NetworkChaos partition", Ends: "cm/1/inject/" + r[0].Name,
			PlannedMillis: 5000, StartedMillis: 5000, ConfirmedMillis: 5400},
	}
	if diff := cmp.Diff(wantFaults, got); diff != "" {
		t.Errorf("the faults of the results (-want +got):\n%s", diff)
	}
	if told := c.told(); !strings.Contains(told, "FaultCarriedOut Trial trial-0, fault cm: Inject (NetworkChaos partition) of "+r[0].Name+", planned for 2.000 s, begun at 2.000 s, confirmed at 2.700 s") {
		t.Errorf("the events do not tell of the fault: %s", told)
	}
}

// told returns the events so far.
func (c *chaosPlay) told() string {
	var all []string
	for {
		select {
		case e := <-c.r.Recorder.(*events.FakeRecorder).Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

func TestWhyFaultsOfChaosMeshFail(t *testing.T) {
	tests := map[string]struct {
		fault   v1alpha1.Fault
		happens func(c *chaosPlay)
		reason  string
		says    string
		served  bool // by an API server with the kind's schema
	}{
		"no controller acts on the object": {
			fault: split(), happens: func(c *chaosPlay) { c.at(2 * time.Second); c.at(5100 * time.Millisecond) },
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "when it was to end, nothing had acted on NetworkChaos trial-0-cm-1; see whether Chaos Mesh's controller runs.",
		},
		"no controller acts on the object for as long as is tolerated": {
			fault:   objectOf("TimeChaos", "14s", `{"timeOffset": "-1h"}`),
			happens: func(c *chaosPlay) { c.at(2 * time.Second); c.at(12500 * time.Millisecond) },
			reason:  v1alpha1.ReasonFaultNotConfirmed, says: "11s after the planned instant, nothing had acted on TimeChaos",
		},
		"no pod is chosen": {
			fault: split(), happens: func(c *chaosPlay) { c.at(2 * time.Second); c.says("", ""); c.at(13 * time.Second) },
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "chosen no pod",
		},
		"another pod is chosen, too": {
			fault: split(), happens: func(c *chaosPlay) {
				c.at(2 * time.Second)
				c.says("Injected", "", c.layout().Servers[2].Name)
				c.at(2100 * time.Millisecond)
			},
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "for the target, which is",
		},
		"the daemon fails": {
			fault: objectOf("NetworkChaos", "3s", `{"action": "delay", "delay": {"latency": "10ms"}}`), happens: func(c *chaosPlay) {
				c.at(2 * time.Second)
				c.says("Not Injected/Wait", "failed to apply for pod x/y: unable to set tcs for pod y")
				c.at(13 * time.Second)
			},
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "unable to set tcs for pod y (the nodes' kernels must have what this needs: sch_netem",
		},
		"the kind refuses the spec": {
			fault: objectOf("NetworkChaos", "3s", `{"action": "nonsense"}`), happens: func(c *chaosPlay) { c.at(2 * time.Second) },
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "the NetworkChaos was refused: ", served: true,
		},
		"a user deletes the object": {
			fault: split(), happens: func(c *chaosPlay) {
				c.at(2 * time.Second)
				if err := c.env.Client.Delete(c.t.Context(), c.must()); err != nil {
					c.t.Fatal(err)
				}
				c.at(2100 * time.Millisecond)
			},
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "somebody else has deleted it",
		},
		"no manager is there at the instant": {
			fault: split(), happens: func(c *chaosPlay) { c.at(time.Second); c.at(4100 * time.Millisecond) },
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "no manager was there to make the NetworkChaos at the planned instant; 2.1s later is too late",
		},
		"it is not undone": {
			fault: split(), happens: func(c *chaosPlay) {
				c.at(2 * time.Second)
				c.says("Injected", "")
				c.at(2100 * time.Millisecond)
				c.at(5 * time.Second)
				c.at(36 * time.Second)
			},
			reason: v1alpha1.ReasonFaultNotEnded, says: "NetworkChaos trial-0-cm-1 is still there 31s after its deletion",
		},
		"its end is late": {
			fault: split(), happens: func(c *chaosPlay) {
				c.at(2 * time.Second)
				c.says("Injected", "")
				c.at(2100 * time.Millisecond)
				c.at(7200 * time.Millisecond)
				c.letsGo()
			},
			reason: v1alpha1.ReasonFaultLate, says: "was begun 2200.000 ms after its planned instant; the manager has to ask Chaos Mesh for an end within 2s, which is Assay's own bound",
		},
		"a pod that is said to be killed lives": {
			fault: objectOf("PodChaos", "", `{"action": "pod-kill"}`), happens: func(c *chaosPlay) {
				c.at(2 * time.Second)
				c.says("Injected", "")
				c.at(13 * time.Second)
			},
			reason: v1alpha1.ReasonFaultNotConfirmed, says: "Chaos Mesh said that PodChaos pod-kill was done, and pod",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			play := newChaosPlay
			if tc.served {
				play = newServedChaosPlay
			}
			c := play(t, tc.fault)
			c.runs()
			tc.happens(c)
			c.measured(10, 0)
			c.settle(true)
			for range 4 { // a stuck object is released in the end
				c.clock.Step(35 * time.Second)
				c.settle(true)
			}
			c.wantEnd(v1alpha1.ReasonInvalid, tc.reason)
			if m := c.condition(v1alpha1.TrialValid).Message; !strings.Contains(m, tc.says) {
				t.Errorf("the trial says %q, want %q in it", m, tc.says)
			}
			if c.object() != nil {
				t.Errorf("the object is left over")
			}
		})
	}
}

// The pods' probes of each other show whether a partition took effect.
func TestProbesThatPassAPartition(t *testing.T) {
	for name, tc := range map[string]struct {
		peers bool
		lost  int
		says  string // none: the trial is valid
	}{
		"all lost":                    {peers: true, lost: 6},
		"some passed at its ends":     {peers: true, lost: 2},
		"none lost":                   {peers: true, says: "Chaos Mesh said that fault cm (NetworkChaos partition, time 1) was in force, and of 4 probes that "},
		"none lost, from everybody":   {says: "were lost in all"},
		"all lost, cut off everybody": {lost: 6},
	} {
		t.Run(name, func(t *testing.T) {
			f := objectOf("NetworkChaos", "6s", `{"action": "partition"}`)
			if tc.peers {
				f.ChaosMesh.Peers = &v1alpha1.Target{Replicas: []int32{1}}
			}
			c := newChaosPlay(t, f)
			c.runs()
			cut := map[string]bool{c.layout().Servers[0].Name: true}
			c.agents.network = func(pod string, n *protocol.NetworkReport) {
				for i := range n.Links {
					if n.Links[i].CanarySent = 20; cut[pod] || cut[n.Links[i].Peer] {
						n.Links[i].CanaryLost = tc.lost
					}
				}
			}
			c.at(2 * time.Second)
			c.says("Injected", "")
			c.at(2100 * time.Millisecond)
			c.at(8100 * time.Millisecond)
			c.letsGo()
			c.at(8200 * time.Millisecond)
			if tc.says == "" {
				c.ends(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
				return
			}
			c.ends(v1alpha1.ReasonInvalid, v1alpha1.ReasonFaultNotConfirmed)
			if m := c.condition(v1alpha1.TrialValid).Message; !strings.Contains(m, tc.says) {
				t.Errorf("the trial says %q, want %q in it", m, tc.says)
			}
		})
	}
}

func TestATrialWithoutChaosMeshIsGivenUpBeforeAnythingIsMade(t *testing.T) {
	c := newServedChaosPlay(t, objectOf("JVMChaos", "3s", `{"action": "stress", "cpuCount": 1}`))
	c.settle(false)
	c.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonChaosMeshMissing)
	if m := c.condition(v1alpha1.TrialValid).Message; !strings.Contains(m, "the cluster has no kind JVMChaos (chaos-mesh.org/v1alpha1): install Chaos Mesh") {
		t.Errorf("the trial says %q", m)
	}
}

// A manager that takes over knows the earlier actions, deletes overdue objects, and makes nothing
// twice.
func TestATakeOverGoesOnWithObjectsOfChaosMesh(t *testing.T) {
	c := newChaosPlay(t, split())
	c.runs()
	c.at(2 * time.Second)
	c.newReconciler()
	c.says("Injected", "")
	c.at(2500 * time.Millisecond)
	c.newReconciler()
	c.at(6 * time.Second) // a second too late
	c.newReconciler()
	c.letsGo()
	c.at(6500 * time.Millisecond)
	c.newReconciler()
	c.at(7 * time.Second)
	if c.object() != nil {
		t.Fatal("the object was made again")
	}
	got := c.ends(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded).Faults
	var told []string
	for _, f := range got {
		told = append(told, fmt.Sprintf("%s %v %v %v", f.Kind, f.PlannedMillis, f.StartedMillis, f.ConfirmedMillis))
	}
	if diff := cmp.Diff([]string{"Inject 2000 2000 2500", "Recover 5000 6000 6500"}, told); diff != "" {
		t.Errorf("the faults of the results (-want +got):\n%s", diff)
	}
}

// A manager may die after it made an object and before it saved that. The next manager finds the
// object, however late it comes.
func TestATakeOverAdoptsWhatIsNotWrittenDown(t *testing.T) {
	c := newChaosPlay(t, split())
	c.runs()
	c.at(2 * time.Second)
	uid := c.must().GetUID()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: c.layout().ChaosConfigMap()}}
	if err := c.env.Client.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	c.newReconciler()
	c.says("Injected", "")
	c.at(4500 * time.Millisecond)
	c.at(5 * time.Second)
	if c.must().GetUID() != uid {
		t.Error("the object is another one")
	}
	c.letsGo()
	c.at(5200 * time.Millisecond)
	if f := c.ends(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded).Faults[0]; f.StartedMillis != 2000 || f.ConfirmedMillis != 4500 {
		t.Errorf("the fault began at %v ms and was confirmed at %v ms, want 2000 and 4500", f.StartedMillis, f.ConfirmedMillis)
	}
}

// If no manager is there, Chaos Mesh ends a fault by itself. The next manager takes that as the
// fault's end, and the trial is not lost.
func TestATakeOverAfterAFaultThatEndedByItself(t *testing.T) {
	for name, tc := range map[string]struct {
		since   time.Duration // from the second of the planned end to the second of the real end
		outcome string
		reason  string
	}{
		"in the same second": {0, v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded},
		"in the next second": {time.Second, v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded},
		"far too late":       {4 * time.Second, v1alpha1.ReasonInvalid, v1alpha1.ReasonFaultLate},
		"far too early":      {-4 * time.Second, v1alpha1.ReasonInvalid, v1alpha1.ReasonFaultLate},
	} {
		t.Run(name, func(t *testing.T) { endedByItself(t, tc.since, tc.outcome, tc.reason) })
	}
}

func endedByItself(t *testing.T, since time.Duration, outcome, reason string) {
	t.Helper()
	c := newChaosPlay(t, split())
	c.runs()
	c.at(2 * time.Second)
	c.says("Injected", "")
	c.at(2500 * time.Millisecond)
	c.newReconciler()
	c.says("Not Injected", "")
	zero := time.Unix(0, c.trial().Status.ZeroUnixNanos)
	planned := zero.Add(5 * time.Second)
	ended := planned.Truncate(time.Second).Add(since)
	u := c.must()
	records, _, err := unstructured.NestedSlice(u.Object, "status", "experiment", "containerRecords")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		r.(map[string]any)["events"] = []any{map[string]any{"type": "Succeeded", "operation": "Recover", "timestamp": ended.UTC().Format(time.RFC3339)}}
	}
	if err := unstructured.SetNestedSlice(u.Object, records, "status", "experiment", "containerRecords"); err != nil {
		t.Fatal(err)
	}
	if err := c.env.Client.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	c.at(18 * time.Second)
	c.letsGo()
	c.at(18500 * time.Millisecond)
	f := c.ends(outcome, reason).Faults[1]
	if since == 0 {
		ended = planned
	}
	if want := results.Millis(ended.Sub(zero)); f.StartedMillis != want || f.ConfirmedMillis != 18500 {
		t.Errorf("the fault's end began at %v ms and was confirmed at %v ms, want %v and 18500", f.StartedMillis, f.ConfirmedMillis, want)
	}
}

// If webhooks of Chaos Mesh do not answer for a moment, the manager asks again, but not for ever.
func TestWebhooksOfChaosMeshThatDoNotAnswer(t *testing.T) {
	const down = "failed calling webhook: no route to host"
	for name, tc := range map[string]struct {
		failures int
		reason   string
		says     string
	}{
		"for a moment": {failures: 1, reason: v1alpha1.ReasonSucceeded},
		"for long":     {failures: 1000, reason: v1alpha1.ReasonFaultNotConfirmed, says: "the NetworkChaos could not be made in time: Internal error occurred: " + down},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChaosPlay(t, split())
			failed := 0
			c.r.Client = interceptor.NewClient(c.env.Client, interceptor.Funcs{Create: func(ctx context.Context, real client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if o.GetObjectKind().GroupVersionKind().Kind == c.kind && failed < tc.failures {
					failed++
					return apierrors.NewInternalError(errors.New(down))
				}
				return real.Create(ctx, o, options...)
			}})
			c.runs()
			c.at(2 * time.Second)
			if tc.says == "" {
				c.at(2100 * time.Millisecond)
				c.says("Injected", "")
				c.at(2500 * time.Millisecond)
				c.at(5 * time.Second)
				c.letsGo()
				c.at(5200 * time.Millisecond)
				c.ends(v1alpha1.ReasonSucceeded, tc.reason)
				return
			}
			c.at(3960 * time.Millisecond)
			c.ends(v1alpha1.ReasonInvalid, tc.reason)
			if m := c.condition(v1alpha1.TrialValid).Message; !strings.Contains(m, tc.says) {
				t.Errorf("the trial says %q, want %q in it", m, tc.says)
			}
		})
	}
}

// Nothing of Chaos Mesh outlives a trial, and no trial hangs because of it.
func TestWhatChaosMeshDoesNotLetGoOf(t *testing.T) {
	for name, tc := range map[string]struct {
		message  string        // about a failure
		patience time.Duration // how long pods are kept
		deleted  bool          // the trial, by its user
	}{
		"a recovery that hangs":                 {patience: chaos.Recovery},
		"a fault that never began":              {patience: chaos.Stuck, message: "the daemon does not answer"},
		"a recovery in a trial that is deleted": {patience: chaos.Recovery, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChaosPlay(t, split())
			c.runs()
			c.at(2 * time.Second)
			phase := "Injected"
			if tc.message != "" {
				phase = "Not Injected/Wait"
			}
			c.says(phase, tc.message)
			if tc.deleted {
				if err := c.env.Client.Delete(t.Context(), c.trial()); err != nil {
					t.Fatal(err)
				}
			} else {
				c.clientEnds(2*time.Second, 0)
				c.agents.reports[c.layout().Clients[0].Name].Failure = "the client has left no report at /assay/out/ops.log"
			}
			look := func(d time.Duration) (pods int) {
				c.clock.Step(d)
				for range 6 {
					c.reconcile()
					c.agents.obey()
				}
				list := &corev1.PodList{}
				if err := c.env.Client.List(t.Context(), list, client.InNamespace(c.ns)); err != nil {
					t.Fatal(err)
				}
				return len(list.Items)
			}
			if pods := look(time.Second); pods == 0 || c.must().GetDeletionTimestamp() == nil {
				t.Fatalf("there are %d pods, and the object is deleted at %v; want pods in which it can be undone", pods, c.must().GetDeletionTimestamp())
			}
			if pods := look(tc.patience); pods != 0 {
				t.Errorf("there are %d pods after %v", pods, tc.patience)
			}
			look(2*chaos.Recovery - tc.patience)
			if got := c.must().GetAnnotations()[chaos.AnnotationCleanFinalizer]; got != "forced" {
				t.Errorf("Chaos Mesh is not told to let go: %q", got)
			}
			look(chaos.Forced)
			if c.object() != nil {
				t.Error("the object is left over")
			}
			told := c.told()
			for _, want := range []string{"ChaosMeshForced", "Chaos Mesh is told to let go of it", "its finalizers are removed"} {
				if !strings.Contains(told, want) {
					t.Errorf("the events do not tell of it (%s): %s", want, told)
				}
			}
			if tc.message != "" && !strings.Contains(told, tc.message) {
				t.Errorf("the events do not say what Chaos Mesh said: %s", told)
			}
			if tc.deleted {
				if err := c.env.Client.Get(t.Context(), c.key, &v1alpha1.Trial{}); !apierrors.IsNotFound(err) {
					t.Errorf("the trial is still there: %v", err)
				}
				return
			}
			c.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonLoadEndedEarly)
		})
	}
}
