package validity

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

func TestReplacedPods(t *testing.T) {
	replaced := func(o *Observation) *Pod {
		p := &o.Pods[0]
		p.Incarnations = []Incarnation{{UID: "a", DeletedAt: 2 * time.Second}, {UID: "b", CreatedAt: 3 * time.Second}}
		return p
	}
	for name, tc := range map[string]struct {
		change  func(*Observation)
		message string
	}{
		"none":           {change: func(*Observation) {}},
		"replaced":       {change: func(o *Observation) { replaced(o) }},
		"never replaced": {change: func(o *Observation) { replaced(o).Incarnations = []Incarnation{{UID: "a"}} }},
		"not back":       {change: func(o *Observation) { replaced(o).Terminating = true }, message: "did not come back"},
		"not back, after the last request": {change: func(o *Observation) {
			p := replaced(o)
			p.Terminating, p.Incarnations[0].DeletedAt = true, time.Minute
		}},
		"no report": {change: func(o *Observation) { replaced(o).Report = nil }, message: "took its place did not report"},
		"not started": {change: func(o *Observation) {
			p := replaced(o)
			p.Report.WaitingFor, p.Report.Containers[0].Starts = "its peers", 0
		}, message: "were not started; it waited for its peers"},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			tc.change(o)
			if f := successors(o); f.OK() != (tc.message == "") || !strings.Contains(f.Message, tc.message) {
				t.Errorf("%q: %q, want %q", f.Reason, f.Message, tc.message)
			}
		})
	}
}

func TestPartitionsOfChaosMesh(t *testing.T) {
	at := func(d time.Duration) *time.Duration { return &d }
	for name, tc := range map[string]struct {
		change func(*Observation, *Injection)
		refute bool
	}{
		"probes were lost":         {change: func(o *Observation, _ *Injection) { o.Pairs[0].ByA.CanaryLost, o.Pairs[0].ByB.CanaryLost = 4, 4 }},
		"probes passed":            {change: func(*Observation, *Injection) {}, refute: true},
		"of other pods":            {change: func(_ *Observation, i *Injection) { i.Peers = []string{"c-0"} }},
		"from the other side":      {change: func(_ *Observation, i *Injection) { i.Pods, i.Peers = []string{"r-1"}, []string{"r-0"} }, refute: true},
		"of which one end is shut": {change: func(_ *Observation, i *Injection) { i.Pods = []string{"r-1"} }, refute: true},
		"an agent's own faults":    {change: func(o *Observation, _ *Injection) { o.Actions = []timeline.Action{{Pod: "r-0", Kind: timeline.Pause}} }},
		"no partition":             {change: func(_ *Observation, i *Injection) { i.Fault.ChaosMesh.Kind = "PodChaos" }},
	} {
		t.Run(name, func(t *testing.T) {
			o := linked()
			o.Injections = []Injection{{
				Fault: &v1alpha1.Fault{Name: "split", ChaosMesh: &v1alpha1.ChaosMesh{Kind: "NetworkChaos", Spec: runtime.RawExtension{Raw: []byte(`{"action":"partition","direction":"both"}`)}}},
				Time:  1, Pods: []string{"r-0"}, Confirmed: at(2 * time.Second), Ended: at(9 * time.Second),
			}}
			tc.change(o, &o.Injections[0])
			if f := partitions(o); f.OK() == tc.refute {
				t.Errorf("%q: %q, want a failure: %t", f.Reason, f.Message, tc.refute)
			}
		})
	}
}

func TestFaultsOfARun(t *testing.T) {
	o := running()
	o.Pods[0].Shard = 2
	o.Result.Faults = []results.FaultRecord{{ID: "x", Fault: "f", Pod: "r-0", Kind: "Kill", PlannedMillis: 6000, Error: "the process had ended"}}
	if f := faults(o); f.Reason != v1alpha1.ReasonFaultNotConfirmed {
		t.Errorf("%q: %q; want %s", f.Reason, f.Message, v1alpha1.ReasonFaultNotConfirmed)
	}
	exited(&o.Pods[0], 5*time.Second) // which replicas judges, as the system's own doing
	if f := faults(o); !f.OK() {
		t.Errorf("a fault of a replica that had ended before is judged: %q: %q", f.Reason, f.Message)
	}
}

func TestWhatTheClusterSaysOfAPod(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u", Labels: map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeReplica}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "a"}, {
			Name: "b", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, PodIP: "10.0.0.1", Reason: "Evicted", Message: "of memory",
			InitContainerStatuses: []corev1.ContainerStatus{{ImageID: "agent", RestartCount: 1}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "a", ImageID: "a", RestartCount: 2},
				{Name: "b", ImageID: "b", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled"}}},
			},
		},
	}
	p := Pod{Name: "p"}
	p.Read(pod)
	if !p.Exists || !p.HasAddress || !p.Failed || p.FailedWhy != "Evicted of memory" || p.Restarts != 3 || p.OutOfMemory != "b" || p.Images != "a,b" || p.AgentImage != "agent" || p.Node != "n" {
		t.Errorf("the pod is %+v", p)
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"a container ended": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
				{Name: "b", Image: "load:1", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}},
			}
		}, "container b (image load:1) ended with exit code 137 (signal 9, killed) (Error)."},
		"nothing is known": {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, "the cluster does not say why."},
		"it runs":          {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, ""},
	} {
		other := pod.DeepCopy()
		other.Status.Reason, other.Status.Message = "", ""
		tc.change(other)
		if got := FailedWhy(other); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if p.Evicted != "Evicted: of memory" {
		t.Errorf("the kubelet evicted it, and what is known is %q", p.Evicted)
	}
	if p.Restarted != "container a (image )" {
		t.Errorf("the container that was restarted most is %q", p.Restarted)
	}
	pod.Spec.Containers[1].Resources.Limits = nil
	if p.Read(pod); p.OutOfMemory != "" {
		t.Errorf("container %s has no memory limit, and is said to have exceeded it", p.OutOfMemory)
	}
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: "proxy", Image: "example.org/mesh:1", RestartCount: 3,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}},
	})
	p.Read(pod)
	if f := containersRestarted(&Observation{Pods: []Pod{p}}); !strings.Contains(f.Message, "container proxy (image example.org/mesh:1), which ended with exit code 137 (signal 9, killed) (Error)") {
		t.Errorf("a container that a webhook put into the pod crashed, and the message is %q", f.Message)
	}
	now := metav1.Now()
	pods := map[string]*corev1.Pod{"p": pod}
	if PodsEnding(pods) || PodEnded(pod) {
		t.Error("a pod that nobody deletes ends")
	}
	pod.DeletionTimestamp = &now
	if !PodEnded(pod) || PodsEnding(pods) {
		t.Error("a pod that has ended still ends")
	}
	pod.Status.Phase = corev1.PodRunning
	if PodEnded(pod) || !PodsEnding(pods) {
		t.Error("a pod that is deleted and runs does not end")
	}
	other := map[string]*corev1.Pod{"p": {ObjectMeta: metav1.ObjectMeta{UID: "v"}}}
	if a, b := PodsDigest([]string{"p", "q"}, pods), PodsDigest([]string{"p", "q"}, other); a == b || len(a) != 16 || a != PodsDigest([]string{"p"}, pods) {
		t.Errorf("the digests of two pods are %q and %q", a, b)
	}
}

// A program that ends a pod for the cluster's sake announces it before.
func TestEvictionsAreKnown(t *testing.T) {
	disrupted := func(status corev1.ConditionStatus) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.DisruptionTarget, Status: status, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"},
		}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"runs":               {corev1.PodStatus{Phase: corev1.PodRunning}, ""},
		"drained":            {disrupted(corev1.ConditionTrue), "EvictionByEvictionAPI: Eviction API: evicting"},
		"no more":            {disrupted(corev1.ConditionFalse), ""},
		"node without disk":  {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on disk."}, "Evicted: The node was low on disk"},
		"node shut down":     {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Terminated", Message: "node shutdown"}, "Terminated: node shutdown"},
		"container failed":   {corev1.PodStatus{Phase: corev1.PodFailed}, ""},
		"of another reason":  {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}, ""},
		"waits for its node": {corev1.PodStatus{Phase: corev1.PodPending, Reason: "Evicted"}, ""},
	} {
		p := Pod{}
		if p.Read(&corev1.Pod{Status: tc.status}); p.Evicted != tc.want {
			t.Errorf("%s: %q, want %q", name, p.Evicted, tc.want)
		}
	}
}

// The agent of a pod whose node was restarted reports a lost process before the kubelet counts the
// restart. Once, that was called an exit of the system.
func TestALostProcessIsNotTheSystemsFault(t *testing.T) {
	o := &Observation{Trial: &v1alpha1.Trial{}, Pods: []Pod{{Name: "r-0", Report: &protocol.Report{
		Containers: []protocol.ContainerState{{Name: "server", State: protocol.StateLost, ExitCode: 137, Starts: 1}},
	}}}}
	if f := restarts(o); f.Reason != v1alpha1.ReasonPodRestarted || !strings.Contains(f.Message, "Container server of r-0") {
		t.Errorf("restarts: %+v", f)
	}
	if f := replicas(o); !f.OK() {
		t.Errorf("replicas: %+v", f)
	}
	o.Pods[0].Interrupted = true
	if f := restarts(o); !f.OK() {
		t.Errorf("as planned: %+v", f)
	}
}

// A runtime reports OOMKilled for a container with a limit even if other pods used up its node's
// memory. Once, the system was blamed for that.
func TestANodeOutOfMemoryIsNotTheSystemsFault(t *testing.T) {
	for name, tc := range map[string]struct {
		left   *protocol.MemoryLeft
		reason string
		says   string
	}{
		"the node had less left":      {&protocol.MemoryLeft{Container: 900 << 20, Node: 40 << 20}, v1alpha1.ReasonPodRestarted, "could take 900 MiB more by its limit, and the node had 40 MiB left"},
		"the container had less left": {&protocol.MemoryLeft{Container: 3 << 20, Node: 40 << 20}, v1alpha1.ReasonOutOfMemory, "exceeded its memory limit"},
		"it is not known":             {nil, v1alpha1.ReasonOutOfMemory, "exceeded its memory limit"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observation{Trial: &v1alpha1.Trial{}, Pods: []Pod{{Name: "r-0", Restarts: 1, OutOfMemory: "server", Report: &protocol.Report{
				Containers: []protocol.ContainerState{{Name: "beside"}, {Name: "server", State: protocol.StateLost, ExitCode: 137, Starts: 1, MemoryLeft: tc.left}},
			}}}}
			for when, f := range map[string]Failure{"in the run": containersRestarted(o), "after the run": restarts(o)} {
				if f.Reason != tc.reason || !strings.Contains(f.Message, tc.says) {
					t.Errorf("%s: %+v, want %s", when, f, tc.reason)
				}
			}
		})
	}
}

func TestPodsThatDoNotComeUp(t *testing.T) {
	status := func(s corev1.ContainerState, last *corev1.ContainerStateTerminated) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: s, LastTerminationState: corev1.ContainerState{Terminated: last}}}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"none":          {nil, ""},
		"nothing known": {&corev1.Pod{}, ""},
		"not scheduled": {&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node"}}}}, "no node"},
		"no image":      {status(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: "no such image"}}, nil), "no such image"},
	} {
		if got := PodWaiting(tc.pod); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestPredecessorsInResults(t *testing.T) {
	o := running()
	o.Pods[0].Incarnations = []Incarnation{
		{UID: "a", Node: "n", CreatedAt: 1, DeletedAt: 2 * time.Second, Last: &protocol.Report{TCPResets: 7, Containers: []protocol.ContainerState{{Name: "server", Tail: "bye"}}}},
		{UID: "b", CreatedAt: 3 * time.Second, DeletedAt: 4 * time.Second},
		{UID: "c", CreatedAt: 5 * time.Second, ReadyAt: 6 * time.Second},
	}
	o.Pods[1].Incarnations = []Incarnation{{UID: "only"}}
	r := o.Describe()
	p := r.Pods[0]
	if p.UID != "c" || p.CreatedMillis != 5000 || p.ReadyMillis != 6000 || len(p.Predecessors) != 2 || r.Pods[1].UID != "" {
		t.Fatalf("the pod is %+v", p)
	}
	if a, b := p.Predecessors[0], p.Predecessors[1]; a.CreatedMillis != 0 || a.DeletedMillis != 2000 || !a.Reported || a.TCPResets != 7 || b.CreatedMillis != 3000 || b.Reported {
		t.Errorf("the predecessors are %+v and %+v", a, b)
	}
	if r.Logs["r-0@a/server"] != "bye" {
		t.Errorf("the logs are %v", r.Logs)
	}
}

func TestWhatATrialBeganWith(t *testing.T) {
	o := running()
	begun, deployed := metav1.NewMicroTime(time.Unix(10, 0)), metav1.NewMicroTime(time.Unix(12, 0))
	spec, status := &o.Trial.Spec, &o.Trial.Status
	status.Times.Admitted, status.Times.Deployed = &begun, &deployed
	status.IdleGate = &v1alpha1.IdleGate{Idle: true, WaitedMilliseconds: 1500}
	status.Checks = []v1alpha1.CheckStatus{{Name: "safe", Verdict: v1alpha1.SafetyHolds}}
	spec.Datasets = []v1alpha1.TrialDataset{{Name: "rows", Digest: "d", PrepareMilliseconds: 2000}, {Name: "keys"}}
	status.Datasets = []v1alpha1.DatasetCopies{{Name: "rows", Copies: 3, SlowestMilliseconds: 500}}
	spec.Parameters, spec.MisbehavingClients = map[string]v1alpha1.Value{"f": {}}, []int32{1}
	r := o.Describe()
	if r.PhaseSeconds["deployed"] != 2 || r.IdleGate.WaitedSeconds != 1.5 || r.Checks[0].Name != "safe" || r.CorrectClients != 3 || r.ClosedLoop == nil {
		t.Errorf("the results are %+v", r)
	}
	if len(r.Datasets) != 2 || r.Datasets[0].Copies != 3 || r.Datasets[0].SlowestSeconds != 0.5 || r.Datasets[0].PrepareSeconds != 2 || r.Datasets[1].Copies != 0 {
		t.Errorf("the data sets are %+v", r.Datasets)
	}
	if o.Pod("r-1") != &o.Pods[1] || o.Pod("x") != nil {
		t.Error("pods are not found by their names")
	}
}

func TestNumbersThatSpeakAgainstARun(t *testing.T) {
	value := 1.0
	for name, tc := range map[string]struct {
		change func(*Observation)
		check  func(*Observation) Failure
		reason string
	}{
		"all latencies are counted": {func(*Observation) {}, histogram, ""},
		"latencies out of range":    {func(o *Observation) { o.Result.Summary.OutOfRange = 1 }, histogram, v1alpha1.ReasonHistogramOverflow},
		"a number that was had":     {func(o *Observation) { o.Measured = []results.Measurement{{Value: &value}} }, measurements, ""},
		"a number that was not had": {func(o *Observation) { o.Measured = []results.Measurement{{}} }, measurements, v1alpha1.ReasonNotMeasured},
		"a number that need not be": {func(o *Observation) {
			o.Measured, o.Trial.Spec.Measurements[0].Required = []results.Measurement{{}}, false
		}, measurements, ""},
		"one manager's clock":  {func(*Observation) {}, judgeBase, ""},
		"a clock that was set": {func(o *Observation) { o.Pods[2].Report.ClockStepped = time.Second }, judgeBase, v1alpha1.ReasonClockStepped},
		"two managers' clocks": {func(o *Observation) { o.Pods[2].Report.ClockManager = "other" }, judgeBase, v1alpha1.ReasonClockStepped},
		"two managers' clocks, of which one agent was interrupted": {func(o *Observation) { o.Pods[2].Report.ClockManager, o.Pods[2].AgentInterrupted = "other", true }, judgeBase, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			o.Trial.Spec.Measurements = []v1alpha1.Measurement{{Name: "m", Required: true}}
			tc.change(o)
			if f := tc.check(o); f.Reason != tc.reason {
				t.Errorf("%q: %q, want %q", f.Reason, f.Message, tc.reason)
			}
		})
	}
}

func TestRecoveriesThatCannotBeMeasured(t *testing.T) {
	trial := &results.Trial{MeasureNanos: (20 * time.Second).Nanoseconds()}
	for i := range maxRecoveries + 1 {
		trial.Faults = append(trial.Faults, results.FaultRecord{Fault: "f", Time: i, Kind: "Kill", ConfirmedMillis: float64(1000 + i)})
	}
	got := Recoveries(trial)
	if len(got) != maxRecoveries || got[0].Error == "" || len(trial.LeftOut) != 1 {
		t.Errorf("%d recoveries, the first with error %q; left out is %q", len(got), got[0].Error, trial.LeftOut)
	}
	empty := results.NewTimeline(0, 1)
	trial.Timeline = &empty
	if got := Recoveries(trial); got[0].Error == "" {
		t.Errorf("of a timeline of 100 ms the recovery is %+v", got[0])
	}
}
