package trial

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, testenv.Options{})) }

// agents plays the coordinator and the agents behind it. It keeps directives, and answers with the
// reports that a test sets.
type agents struct {
	mu         sync.Mutex
	registered map[string]coordinator.Pod
	directives map[string]protocol.Directive
	files      map[string][]protocol.File
	reports    map[string]*protocol.Report
	clock      *clocktesting.FakeClock
	// network changes the measurements that obey makes for a pod's agent.
	network func(pod string, n *protocol.NetworkReport)
}

func newAgents(clock *clocktesting.FakeClock) *agents {
	return &agents{clock: clock, registered: map[string]coordinator.Pod{}, directives: map[string]protocol.Directive{}, files: map[string][]protocol.File{}, reports: map[string]*protocol.Report{}}
}

func (a *agents) Register(_ types.NamespacedName, pods []coordinator.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.registered)
	for _, p := range pods {
		a.registered[p.Name] = p
	}
}

// Direct keeps a directive as the agent would receive it.
func (a *agents) Direct(_ types.NamespacedName, pod string, d protocol.Directive, files []protocol.File) {
	sent, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	var got protocol.Directive
	if err := json.Unmarshal(sent, &got); err != nil {
		panic(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.directives[pod], a.files[pod] = got, files
}

func (a *agents) Report(_ types.NamespacedName, pod string) (*protocol.Report, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reports[pod], a.clock.Now()
}

func (a *agents) Forget(types.NamespacedName) {}

// obey makes every agent carry out its directive at once.
func (a *agents) obey() {
	for name, r := range a.reports {
		d := a.directives[name]
		r.FilesDigest, r.NamesResolved = d.FilesDigest, d.FilesDigest != ""
		r.Network = a.measure(name, d.Network)
		r.Ready = d.Start
		r.AtBarrier = d.Start && d.Client != nil
		if d.SampleLoad && r.Load == nil { // a test may set another load itself
			r.Load = &protocol.Load{CPUs: 4, Seconds: 1}
		}
		if d.Start && r.Containers == nil { // a test may set other containers itself
			for _, c := range d.Containers {
				r.Containers = append(r.Containers, protocol.ContainerState{Name: c.Name, State: protocol.StateRunning, Starts: 1})
			}
		}
		r.Commands = nil
		for _, c := range d.Commands {
			r.Commands = append(r.Commands, protocol.CommandResult{ID: c.ID})
		}
		if d.Run != nil {
			r.Resources, r.ResetsCounted = usedResources(d), true
			if r.Network != nil { // the agent of a machine has no network
				r.Network.Watched = true
			}
			r.Actions = nil
			for _, x := range d.Run.Actions {
				record := protocol.ActionRecord{ID: x.ID, Planned: x.At, Started: x.At, Confirmed: x.At + time.Millisecond}
				if x.Kind == timeline.Heal {
					record.Packets = 12
				}
				r.Actions = append(r.Actions, record)
			}
		}
		r.Finished = d.Finish
		if d.Collect != nil && !d.HandOver {
			r.HandedOver = true
		}
	}
}

// undelayed is the round trip between any two pods without a delay.
const undelayed = 200 * time.Microsecond

// measure plays an agent on links that are exactly as the directive asks. It knows the one-way
// times.
func (a *agents) measure(pod string, d *protocol.Network) *protocol.NetworkReport {
	if d == nil {
		return nil
	}
	n := &protocol.NetworkReport{Tried: true, Backends: shaping.Backends, Baseline: true}
	if d.Shape {
		n.Proven, n.Rounds, n.ApplyTook, n.ProveTook = true, 1, 20*time.Millisecond, 300*time.Millisecond
		for _, p := range d.Peers {
			n.Links = append(n.Links, protocol.LinkReport{
				Peer: p.Name, BaselineRTT: undelayed, RTT: p.Out.Delay + p.In.Delay + undelayed + 50*time.Microsecond,
				OutDelay: p.Out.Delay + undelayed/2, InDelay: p.In.Delay + undelayed/2,
			})
			l := &n.Links[len(n.Links)-1]
			l.CanarySent, l.CanaryMin, l.CanaryMedian, l.CanaryMax = 20, l.RTT, l.RTT, l.RTT
		}
	}
	if a.network != nil {
		a.network(pod, n)
	}
	return n
}

// play is one trial on a stage: an API server, a fake clock, and agents that the test plays. The
// API server normally runs in the test's process. It is a real one if a test needs a feature that
// only a real server has.
type play struct {
	t      *testing.T
	env    *testcluster.Env
	ns     string
	clock  *clocktesting.FakeClock
	agents *agents
	r      *Reconciler
	admits *admission.Reconciler
	key    types.NamespacedName
	system v1alpha1.SystemSpec
	// withoutResults: the trial's results cannot be written.
	withoutResults bool
	// change changes the trial's experiment. Set it before the trial is made.
	change func(*v1alpha1.ExperimentSpec)
	// changeTrial changes the part of the trial's spec that the experiment controller adds.
	changeTrial func(*v1alpha1.TrialSpec)
}

// newPlay makes a trial of a small system with one fault and two client pods, and everything that
// it refers to.
func newPlay(t *testing.T, change func(*v1alpha1.SystemSpec)) *play {
	t.Helper()
	return newPlayOf(t, change, nil)
}

// newPlayOf also changes the experiment.
func newPlayOf(t *testing.T, change func(*v1alpha1.SystemSpec), changeExperiment func(*v1alpha1.ExperimentSpec)) *play {
	t.Helper()
	return newPlayIn(t, testcluster.InProcess(t), change, changeExperiment)
}

// newPlayIn is like newPlayOf, on the given API server.
func newPlayIn(t *testing.T, env *testcluster.Env, change func(*v1alpha1.SystemSpec), changeExperiment func(*v1alpha1.ExperimentSpec)) *play {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	p := &play{t: t, env: env, ns: env.Namespace(t), agents: newAgents(clock), clock: clock}
	p.system = builders.System("echo").Count("2*f+1").Set(func(s *v1alpha1.SystemSpec) {
		s.Replicas.ReadyTimeout = "60s"
		if change != nil {
			change(s)
		}
	}).Obj().Spec
	p.change = changeExperiment
	p.newReconciler()
	ensureNode(t, env, "stage", "", "64")
	p.key = p.newTrial("trial-0")
	return p
}

// newReconciler starts a new manager, which remembers nothing.
func (p *play) newReconciler() {
	p.admits = &admission.Reconciler{
		Client: p.env.Client, Reader: p.env.Client, Clock: p.clock, Recorder: events.NewFakeRecorder(1000), Environment: render.Environment{AgentImage: "agent"},
		Grants: types.NamespacedName{Namespace: "default", Name: admission.GrantsName},
	}
	p.r = &Reconciler{
		Client: p.env.Client, Reader: p.env.Client, Clock: p.clock, Recorder: events.NewFakeRecorder(1000), Coordinator: p.agents,
		Environment: render.Environment{AgentImage: "agent", CoordinatorAddress: "coordinator:7443"}, Trusted: func() string { return "ca" },
	}
}

func (p *play) newTrial(name string) types.NamespacedName {
	p.t.Helper()
	exp := builders.Experiment("exp").Namespace(p.ns).System("echo").NodeKill("crash", "-1s", 2).
		Set(func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Nodes, s.Clients.Count = 2, 4
			s.Faults[0].EveryPoint = true
			if p.change != nil {
				p.change(s)
			}
		}).Obj()
	pl, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": p.system})
	if len(errs) > 0 {
		p.t.Fatal(errs.ToAggregate())
	}
	raw, err := json.Marshal(p.system)
	if err != nil {
		p.t.Fatal(err)
	}
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "exp-echo"}, Data: runtime.RawExtension{Raw: raw}}
	spec := pl.Points[0].Template
	spec.System.Revision, spec.Seed = revision.Name, 1
	if p.changeTrial != nil {
		p.changeTrial(&spec)
	}
	trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: name, Labels: map[string]string{v1alpha1.LabelExperiment: "exp"}}, Spec: spec}
	for _, o := range []client.Object{revision, exp, trial} {
		if err := p.env.Client.Create(p.t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			p.t.Fatalf("create %T: %v", o, err)
		}
	}
	p.t.Cleanup(func() { p.discard(client.ObjectKeyFromObject(trial)) })
	return client.ObjectKeyFromObject(trial)
}

// discard removes a trial from the stage, so that no trial of the next test waits behind it.
func (p *play) discard(key types.NamespacedName) {
	trial := &v1alpha1.Trial{}
	if err := p.env.Client.Get(context.Background(), key, trial); err != nil {
		return
	}
	trial.Finalizers = nil
	if err := p.env.Client.Update(context.Background(), trial); err != nil {
		p.t.Errorf("drop the finalizers: %v", err)
	}
	if err := p.env.Client.Delete(context.Background(), trial); client.IgnoreNotFound(err) != nil {
		p.t.Errorf("delete the trial: %v", err)
	}
}

func (p *play) reconcile() ctrl.Result {
	p.t.Helper()
	result, err := p.r.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: p.key})
	if err != nil {
		p.t.Fatalf("reconcile: %v", err)
	}
	if trial := (&v1alpha1.Trial{}); p.env.Client.Get(p.t.Context(), p.key, trial) == nil && !isTrue(trial, v1alpha1.TrialAdmitted) {
		if _, err := p.admits.Reconcile(p.t.Context(), ctrl.Request{}); err != nil {
			p.t.Fatalf("admit: %v", err)
		}
	}
	return result
}

// settle reconciles until nothing changes any more. If obedient, the agents carry out their
// directives in between.
func (p *play) settle(obedient bool) {
	p.t.Helper()
	last := ""
	for range 30 {
		p.reconcile()
		if obedient {
			p.agents.obey()
		}
		directives, err := json.Marshal(p.agents.directives)
		if err != nil {
			p.t.Fatal(err)
		}
		now := p.trial().ResourceVersion + string(directives)
		if now == last {
			return
		}
		last = now
	}
	p.t.Fatal("the trial does not settle")
}

func (p *play) trial() *v1alpha1.Trial {
	p.t.Helper()
	trial := &v1alpha1.Trial{}
	if err := p.env.Client.Get(p.t.Context(), p.key, trial); err != nil {
		p.t.Fatal(err)
	}
	return trial
}

// subject returns a trial in the form that the engine passes to its ports.
func (p *play) subject(trial *v1alpha1.Trial) *engine.Subject {
	return &engine.Subject{Trial: trial, System: &p.system, Layout: p.layout()}
}

func (p *play) layout() *placement.Layout {
	trial := p.trial()
	return placement.NewLayout(p.ns, trial.Name, &trial.Spec, &p.system)
}

// schedule plays the controllers and kubelets: it makes the pods of the trial's StatefulSets and
// Jobs, gives them addresses, and lets their agents report.
func (p *play) schedule() {
	p.t.Helper()
	l := p.layout()
	for i, r := range l.Servers {
		p.pod(r.Name, i, map[string]string{v1alpha1.LabelPodType: r.Part, v1alpha1.LabelComponent: r.Component})
		p.agents.reports[r.Name] = &protocol.Report{Incarnation: "1"}
	}
	for _, set := range l.ClientSets {
		for index, i := range set.Clients {
			name := l.Clients[i].Name
			p.pod(name+"-x", 100+i, map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeClient, "batch.kubernetes.io/job-completion-index": fmt.Sprint(index)})
			p.agents.reports[name] = &protocol.Report{Incarnation: "1"}
		}
	}
	if p.system.Prepare != nil {
		p.pod(l.PrepareJob(), 200, map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypePrepare})
		p.agents.reports[l.PrepareJob()] = &protocol.Report{Incarnation: "1"}
	}
}

func (p *play) pod(name string, n int, labels map[string]string) {
	p.t.Helper()
	labels[v1alpha1.LabelTrial] = p.key.Name
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: name, Labels: labels, OwnerReferences: p.maker(name, labels[v1alpha1.LabelPodType])},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}, TerminationGracePeriodSeconds: new(int64)},
	}
	if err := p.env.Client.Create(p.t.Context(), pod); err != nil {
		p.t.Fatalf("create pod %s: %v", name, err)
	}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.0.%d", n+1)
	if err := p.env.Client.Status().Update(p.t.Context(), pod); err != nil {
		p.t.Fatalf("run pod %s: %v", name, err)
	}
}

// maker returns the StatefulSet or Job of the trial that makes the pod. Nil: there is none yet.
func (p *play) maker(pod, part string) []metav1.OwnerReference {
	p.t.Helper()
	var owner client.Object = &batchv1.Job{}
	kind, version := "Job", "batch/v1"
	name := p.layout().ClientSets[0].Name
	switch part {
	case v1alpha1.PodTypeClient:
		name = pod[:strings.LastIndex(strings.TrimSuffix(pod, "-x"), "-")]
	case v1alpha1.PodTypeReplica, v1alpha1.PodTypeComponent:
		owner, kind, version = &appsv1.StatefulSet{}, "StatefulSet", "apps/v1"
		name = pod[:strings.LastIndex(pod, "-")]
	case v1alpha1.PodTypePrepare:
		name = p.layout().PrepareJob()
	}
	if err := p.env.Client.Get(p.t.Context(), client.ObjectKey{Namespace: p.ns, Name: name}, owner); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		p.t.Fatalf("read what makes pod %s: %v", pod, err)
	}
	yes := true
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: owner.GetUID(), Controller: &yes}}
}

// deployed moves the trial forward until all pods run.
func (p *play) deployed() {
	p.t.Helper()
	p.settle(false)
	p.schedule()
}

// starting moves the trial forward until replicas are started and none is ready.
func (p *play) starting() {
	p.t.Helper()
	p.deployed()
	for range 7 {
		p.reconcile()
		p.agents.obey()
		for _, r := range p.agents.reports {
			r.Ready = false
		}
	}
}

// released moves the trial forward to the middle of its run.
func (p *play) released() {
	p.t.Helper()
	p.deployed()
	p.settle(true)
	if p.trial().Status.ZeroUnixNanos == 0 {
		p.t.Fatalf("the run was not released: %s", p.conditions())
	}
}

// measured ends the run. After the length of a run, every client reports the given number of
// commits.
func (p *play) measured(commits int64, startSpread time.Duration) {
	p.t.Helper()
	p.clock.Step(40 * time.Second)
	store := &storage.Store{Client: p.env.Client, Reader: p.env.Client}
	for i, c := range p.layout().Clients {
		packed := p.clientResults(c, commits, time.Duration(i)*startSpread)
		if err := store.StoreResults(p.t.Context(), p.agents.registered[c.Name], packed, func() {}); err != nil {
			p.t.Fatal(err)
		}
		r := p.agents.reports[c.Name]
		r.Over, r.Sent = true, true
		r.Client = &protocol.ClientRun{Released: -6 * time.Second, Ended: 23 * time.Second}
	}
}

// clientResults returns the results that a client's agent sends after so many commits, each of
// which took 5 ms.
func (p *play) clientResults(c placement.Client, commits int64, started time.Duration) []byte {
	p.t.Helper()
	h := results.NewHistogram()
	for range commits {
		h.Record(5 * time.Millisecond)
	}
	latency, err := h.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	line := results.NewTimeline(-5000, 270)
	for i := range commits { // spread evenly over the 200 bins of the window
		bin := 50 + i%200
		line.Committed[bin]++
		line.LatencySumMicros[bin] += 5000
	}
	b, err := results.EncodeClient(results.Client{
		Index: int32(c.Index), FirstClient: int32(c.First), Clients: int32(c.Count), StartedNanos: started.Nanoseconds(),
		MeasureNanos: (20 * time.Second).Nanoseconds(), Counters: results.Counters{Offered: commits, Committed: commits}, Latency: latency,
		Timeline: line, Driver: map[string]int64{"fastPathCommits": 90, "slowPathCommits": 10},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write(b); err != nil {
		p.t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		p.t.Fatal(err)
	}
	return packed.Bytes()
}

// clientEnds makes the first client end at the given time after t = 0, and its agent report that.
func (p *play) clientEnds(after time.Duration, code int) {
	p.t.Helper()
	if at := time.Unix(0, p.trial().Status.ZeroUnixNanos).Add(after); at.After(p.clock.Now()) {
		p.clock.SetTime(at)
	}
	r := p.agents.reports[p.layout().Clients[0].Name]
	r.Over, r.Client = true, &protocol.ClientRun{Released: -6 * time.Second, Ended: after, ExitCode: code}
}

func (p *play) condition(name string) *metav1.Condition {
	p.t.Helper()
	c := meta.FindStatusCondition(p.trial().Status.Conditions, name)
	if c == nil {
		return &metav1.Condition{Status: metav1.ConditionUnknown}
	}
	return c
}

func (p *play) conditions() string {
	b, err := json.MarshalIndent(p.trial().Status.Conditions, "", " ")
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// wantEnd checks how the trial ended, and that only its results are left.
func (p *play) wantEnd(outcome, reason string) results.Trial {
	p.t.Helper()
	if c := p.condition(v1alpha1.TrialComplete); c.Status != metav1.ConditionTrue || c.Reason != outcome {
		p.t.Fatalf("the trial ended as %s %s, want %s:\n%s", c.Status, c.Reason, outcome, p.conditions())
	}
	if c := p.condition(v1alpha1.TrialValid); c.Reason != reason {
		p.t.Fatalf("the reason is %s (%s), want %s", c.Reason, c.Message, reason)
	}
	p.wantNothingLeft()
	if p.withoutResults {
		return results.Trial{}
	}
	cm := &corev1.ConfigMap{}
	if err := p.env.Client.Get(p.t.Context(), types.NamespacedName{Namespace: p.ns, Name: p.trial().Status.ResultsConfigMap}, cm); err != nil {
		p.t.Fatalf("read the results: %v", err)
	}
	trial, err := results.DecodeStored(cm.Data, cm.BinaryData)
	if err != nil {
		p.t.Fatal(err)
	}
	if trial.Outcome != outcome {
		p.t.Errorf("the results say %s, want %s", trial.Outcome, outcome)
	}
	return trial
}
