package trial

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/trial/machines"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testcluster"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// resetAt is when replica 2's machine is reset.
const resetAt = 2 * time.Second

// machinePlay is a trial that resets the machine of replica 2, on a stage with one node for each
// pod. The trial's namespace is also the manager's, and goes with the test.
type machinePlay struct {
	*play
	node string // the node that is reset
}

func newMachinePlay(t *testing.T) *machinePlay {
	t.Helper()
	return newMachinePlayIn(t, testcluster.InProcess(t))
}

// newMachinePlayIn is like newMachinePlay, on another API server.
func newMachinePlayIn(t *testing.T, env *testcluster.Env) *machinePlay {
	t.Helper()
	p := newPlayIn(t, env, nil, func(s *v1alpha1.ExperimentSpec) {
		s.Faults[0].At = v1alpha1.Duration(resetAt.String())
		s.Faults[0].NodeKill.Mode = v1alpha1.KillMachine
	})
	m := &machinePlay{play: p, node: p.ns + "-r2"}
	m.r.Environment.Namespace = p.ns
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node, Annotations: map[string]string{v1alpha1.AnnotationAllowMachineFaults: "true"}}}
	if err := p.env.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	ensureNode(t, p.env, m.node, "", "64")
	t.Cleanup(func() {
		if err := p.env.Client.Delete(context.Background(), node); err != nil {
			t.Errorf("delete the node: %v", err)
		}
	})
	p.settle(false)
	for i, r := range p.layout().Servers {
		node := p.ns + "-other"
		if i == 2 {
			node = m.node
		}
		m.place(r.Name, node, i, map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeReplica})
		p.agents.reports[r.Name] = &protocol.Report{Incarnation: "1"}
	}
	for i, c := range p.layout().Clients {
		m.place(c.Name+"-x", p.ns+"-other", 100+i, map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeClient, "batch.kubernetes.io/job-completion-index": fmt.Sprint(c.Index)})
		p.agents.reports[c.Name] = &protocol.Report{Incarnation: "1"}
	}
	return m
}

// place makes a pod of the trial that runs on a node.
func (m *machinePlay) place(name, node string, n int, labels map[string]string) {
	m.t.Helper()
	m.pod(name, n, labels)
	bound := &corev1.Pod{}
	if err := m.env.Client.Get(m.t.Context(), client.ObjectKey{Namespace: m.ns, Name: name}, bound); err != nil {
		m.t.Fatal(err)
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := m.env.Client.SubResource("binding").Create(m.t.Context(), bound, binding); err != nil {
		m.t.Fatalf("bind pod %s: %v", name, err)
	}
}

// wantEnd also plays the kubelet: it confirms the end of each pod that is in deletion.
func (m *machinePlay) wantEnd(outcome, reason string) results.Trial {
	m.t.Helper()
	m.settle(true)
	list, err := m.r.resetter().Pods(m.t.Context(), m.env.Client, m.key)
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			m.t.Errorf("pod %s, which resets the machine, was not told to end", p.Name)
		} else if err := m.env.Client.Delete(m.t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
			m.t.Fatal(err)
		}
	}
	m.settle(true)
	return m.play.wantEnd(outcome, reason)
}

// stranger makes another user's pod on the node.
func (m *machinePlay) stranger(name string, change func(*corev1.Pod)) {
	m.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: name},
		Spec:       corev1.PodSpec{NodeName: m.node, Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: new(int64)},
	}
	if change != nil {
		change(p)
	}
	if err := m.env.Client.Create(m.t.Context(), p); err != nil {
		m.t.Fatal(err)
	}
}

// machine makes the machine's agent report, once its pod exists.
func (m *machinePlay) machine() *corev1.Pod {
	m.t.Helper()
	for range 30 {
		m.reconcile()
		m.agents.obey()
		list, err := m.r.resetter().Pods(m.t.Context(), m.env.Client, m.key)
		if err != nil {
			m.t.Fatal(err)
		}
		if len(list.Items) == 1 {
			m.agents.reports[render.MachineAgent(m.node)] = &protocol.Report{Incarnation: "1"}
			return &list.Items[0]
		}
	}
	m.t.Fatalf("no pod was made that resets the machine: %s", m.conditions())
	return nil
}

// settleAll lets everyone follow their directives for a while. The machine's agent is ready once it
// knows its node.
func (m *machinePlay) settleAll() {
	m.t.Helper()
	for range 12 {
		m.reconcile()
		m.agents.obey()
		if r := m.agents.reports[render.MachineAgent(m.node)]; r != nil {
			r.Ready = m.agents.directives[render.MachineAgent(m.node)].Machine != nil
		}
	}
}

func TestAMachineIsResetAndTheTrialGoesOn(t *testing.T) {
	m := newMachinePlay(t)
	pod := m.machine()
	if !pod.Spec.HostPID || pod.Spec.NodeName != m.node || pod.Spec.HostNetwork || len(pod.Spec.Containers[0].SecurityContext.Capabilities.Add) != 1 {
		t.Errorf("the pod that resets the machine is %+v", pod.Spec)
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			t.Errorf("the pod has the host path %s", v.HostPath.Path)
		}
	}
	m.settleAll()
	if m.trial().Status.ZeroUnixNanos == 0 {
		t.Fatalf("the run was not released: %s", m.conditions())
	}
	d := m.agents.directives[render.MachineAgent(m.node)]
	if d.Run == nil || len(d.Run.Actions) != 1 || d.Run.Actions[0].Pod != m.layout().Servers[2].Name || d.Machine.Node != m.node {
		t.Fatalf("the machine's directive is %+v, want a run with its reset", d)
	}
	target := m.layout().Servers[2].Name
	before := m.agents.directives[m.layout().Servers[0].Name]
	if got := m.agents.directives[target]; len(got.Run.Actions) != 0 || len(got.Commands) != 0 {
		t.Errorf("the replica's own directive has actions %v and commands %v, want none", got.Run.Actions, got.Commands)
	}

	// The machine comes back: its pod's containers were restarted, and the pod has another address.
	m.clock.SetTime(time.Unix(0, m.trial().Status.ZeroUnixNanos).Add(resetAt + 10*time.Second))
	m.comesBack(target, 1)
	m.newReconciler() // a new manager must know the old addresses
	m.r.Environment.Namespace = m.ns
	m.settleAll()
	if c := m.condition(v1alpha1.TrialValid); c.Status != metav1.ConditionUnknown {
		t.Fatalf("after the reset the trial is given up: %s", c.Message)
	}
	if now := m.agents.directives[m.layout().Servers[0].Name]; now.FilesDigest != before.FilesDigest || now.Network.Peers[1].Address != before.Network.Peers[1].Address {
		t.Errorf("another pod's directive changed with the address of the one that came back:\n%+v\n%+v", before, now)
	}
	m.measured(1000, 0)
	r := m.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	if len(r.Faults) != 1 || r.Faults[0].Kind != "Reset" || r.Faults[0].Error != "" || r.Faults[0].StartedMillis != 2000 {
		t.Errorf("the faults are %+v, want one reset at 2000 ms", r.Faults)
	}
	left := &corev1.Pod{}
	if err := m.env.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), left); !apierrors.IsNotFound(err) {
		t.Errorf("the pod that reset the machine is still there: %v", err)
	}
}

// comesBack gives the pod another address, and counts the given number of restarts of its
// container.
func (m *machinePlay) comesBack(name string, times int32) {
	m.t.Helper()
	p := &corev1.Pod{}
	if err := m.env.Client.Get(m.t.Context(), client.ObjectKey{Namespace: m.ns, Name: name}, p); err != nil {
		m.t.Fatal(err)
	}
	p.Status.PodIP, p.Status.PodIPs = "10.0.9.9", []corev1.PodIP{{IP: "10.0.9.9"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: times}}
	if err := m.env.Client.Status().Update(m.t.Context(), p); err != nil {
		m.t.Fatal(err)
	}
}

func TestRestartsThatNoResetExplains(t *testing.T) {
	for name, tc := range map[string]struct {
		after    time.Duration // since t = 0
		replica  int
		restarts int32
	}{
		"before the reset":        {time.Second, 2, 1},
		"more often than resets":  {10 * time.Second, 2, 2},
		"on a machine that lives": {10 * time.Second, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachinePlay(t)
			m.machine()
			m.settleAll()
			m.clock.SetTime(time.Unix(0, m.trial().Status.ZeroUnixNanos).Add(tc.after))
			m.comesBack(m.layout().Servers[tc.replica].Name, tc.restarts)
			m.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonPodRestarted)
		})
	}
}

func TestMachinesThatAreNotReset(t *testing.T) {
	daemon := func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cni", UID: "1", Controller: &yes}}
	}
	annotate := func(m *machinePlay, change func(*corev1.Node)) {
		n := &corev1.Node{}
		if err := m.env.Client.Get(m.t.Context(), client.ObjectKey{Name: m.node}, n); err != nil {
			m.t.Fatal(err)
		}
		change(n)
		if err := m.env.Client.Update(m.t.Context(), n); err != nil {
			m.t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		happens func(m *machinePlay)
		want    []string
	}{
		"no annotation": {func(m *machinePlay) { annotate(m, func(n *corev1.Node) { n.Annotations = nil }) },
			[]string{"does not allow it", "kubectl annotate node", "-r2"}},
		"another value": {func(m *machinePlay) {
			annotate(m, func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationAllowMachineFaults] = "false" })
		}, []string{"does not allow it"}},
		"the control plane": {func(m *machinePlay) {
			annotate(m, func(n *corev1.Node) { n.Labels = map[string]string{machines.LabelControlPlane: ""} })
		}, []string{"control plane"}},
		"a pod of another user": {func(m *machinePlay) { m.stranger("cni", daemon); m.stranger("shop", nil) }, []string{"/shop runs", "no part of the trial"}},
		"a client of the trial": {func(m *machinePlay) {
			m.stranger("client", func(p *corev1.Pod) {
				p.Labels = map[string]string{v1alpha1.LabelTrial: m.key.Name, v1alpha1.LabelPodType: v1alpha1.PodTypeClient, "batch.kubernetes.io/job-completion-index": "9"}
			})
		}, []string{"the trial's client client runs"}},
		"a manager that does not know where it is": {func(m *machinePlay) { m.r.Environment.Namespace = "" }, []string{"--namespace"}},
		"a pod that came while data was loaded": {func(m *machinePlay) {
			m.machine()
			m.stranger("late", nil)
		}, []string{"/late runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachinePlay(t)
			tc.happens(m)
			m.wantRefused(tc.want...)
		})
	}
}

// wantRefused checks that the machine is not reset, and that the message has the given words.
func (m *machinePlay) wantRefused(words ...string) {
	m.t.Helper()
	m.settleAll()
	m.settle(true)
	c := m.condition(v1alpha1.TrialValid)
	for _, want := range words {
		if c.Reason != v1alpha1.ReasonMachineRefused || !strings.Contains(c.Message, want) {
			m.t.Errorf("Valid is %s: %s; want %s with %q", c.Reason, c.Message, v1alpha1.ReasonMachineRefused, want)
		}
	}
	if m.trial().Status.ZeroUnixNanos != 0 {
		m.t.Error("the run was released all the same")
	}
}

func TestResetsNeedANamespaceForPrivilegedPods(t *testing.T) {
	m := newMachinePlayIn(t, &testenv.Get(t).Env)
	ns := &corev1.Namespace{}
	if err := m.env.Client.Get(t.Context(), client.ObjectKey{Name: m.ns}, ns); err != nil {
		t.Fatal(err)
	}
	ns.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
	if err := m.env.Client.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	m.wantRefused("refuses the pod", "PodSecurity", "hostPID")
}

func TestAMachineWithoutAnAgentTimesOut(t *testing.T) {
	m := newMachinePlay(t)
	m.machine()
	delete(m.agents.reports, render.MachineAgent(m.node))
	m.settleAll()
	if c := m.condition(v1alpha1.TrialStarted); c.Reason != v1alpha1.ReasonMachinesPending {
		t.Fatalf("Started is %s: %s, want that it waits for the machine's agent", c.Reason, c.Message)
	}
	m.clock.Step(engine.ResettersTimeout + time.Second)
	m.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonDeadlineExceeded)
}
