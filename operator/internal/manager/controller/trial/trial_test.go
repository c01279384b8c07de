package trial

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/node/protocol"
)

func TestATrialLivesAndLeavesOnlyItsResults(t *testing.T) {
	p := newPlay(t, nil)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialDeployed); c.Reason != v1alpha1.ReasonPodsPending {
		t.Fatalf("without pods Deployed is %s: %s", c.Reason, c.Message)
	}
	p.schedule()
	p.settle(true)
	if d := p.agents.directives[p.layout().Servers[2].Name]; d.Run == nil || len(d.Run.Actions) != 1 {
		t.Fatalf("replica 2's directive is %+v, want a run with its kill", d)
	}
	if d := p.agents.directives[p.layout().Servers[0].Name]; len(d.Run.Actions) != 0 {
		t.Errorf("replica 0 gets actions %v, want none", d.Run.Actions)
	}
	p.measured(1000, 0)
	p.settle(true)
	trial := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	if trial.Summary.Committed != 2000 || trial.Summary.Throughput != 100 || len(trial.Faults) != 1 || trial.Faults[0].ConfirmedMillis != -999 {
		t.Errorf("results are %+v with faults %+v", trial.Summary, trial.Faults)
	}
	p.wantBeside(trial)
	if h := p.trial().Status.Headline; h.MeanLatencyMicroseconds < 4990 || h.MeanLatencyMicroseconds > 5010 {
		t.Errorf("the headline is %+v, want a mean latency of about 5000 us", h)
	}
}

func TestWhyTrialsEnd(t *testing.T) {
	first := func(p *play) *protocol.Report { return p.agents.reports[p.layout().Servers[0].Name] }
	tests := map[string]struct {
		system  func(*v1alpha1.SystemSpec)
		happens func(p *play)
		outcome string
		reason  string
		// committed is the clients' number of commits, which the results keep.
		committed int64
	}{
		"pods that never come": {
			happens: func(p *play) { p.settle(false); p.clock.Step(engine.DeployTimeout + time.Second) },
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonDeadlineExceeded,
		},
		"replicas that never get ready": {
			happens: func(p *play) { p.starting(); p.clock.Step(2 * time.Minute) },
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonDeadlineExceeded,
		},
		"a replica that exits before the run": {
			happens: func(p *play) {
				p.starting()
				first(p).Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateExited, ExitCode: 3, Tail: "no keys"}}
			},
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonReplicaExited,
		},
		"a replica that exits in the run": {
			happens: func(p *play) {
				p.released()
				first(p).Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateExited, ExitCode: 139, Exited: time.Second, Tail: "segfault"}}
				p.measured(10, 0)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonReplicaExited, committed: 20,
		},
		"a replica that exits in the run, and clients that wait for it for ever": {
			happens: func(p *play) {
				p.released()
				first(p).Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateExited, ExitCode: 139, Exited: time.Second, Tail: "segfault"}}
				p.settle(false)
				if known := p.condition(v1alpha1.TrialValid); known.Status == metav1.ConditionFalse {
					p.t.Fatalf("the trial is given up before its clients have told what they measured: %s", known.Message)
				}
				p.clock.Step(5 * time.Minute)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonReplicaExited,
		},
		// No further attempt is due: the system's own failure takes precedence over a fault that
		// could not be carried out.
		"a replica that exits before its fault": {
			happens: func(p *play) {
				p.released()
				rep := p.agents.reports[p.layout().Servers[2].Name]
				rep.Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateExited, ExitCode: 139, Exited: -2 * time.Second, Tail: "segfault"}}
				rep.Actions[0].Error = "there is no process"
				p.measured(10, 0)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonReplicaExited, committed: 20,
		},
		"an agent that cannot go on": {
			happens: func(p *play) { p.deployed(); first(p).Failure = "nftables is not usable" },
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonFailed,
		},
		"a prepare step that fails": {
			system: func(s *v1alpha1.SystemSpec) {
				s.Prepare = &v1alpha1.PrepareStep{
					Container: v1alpha1.Container{Name: "keys", Image: "example.org/echo:1", Command: []string{"/keys"}}, OutputPath: "/keys", Timeout: "60s",
				}
			},
			happens: func(p *play) {
				p.deployed()
				rep := p.agents.reports[p.layout().PrepareJob()]
				rep.Failure, rep.Unreadable = "the prepare step exited with 2", true
			},
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonPrepareFailed,
		},
		// The simulation found that the system was blamed for this.
		"a prepare step whose agent cannot go on": {
			system: func(s *v1alpha1.SystemSpec) {
				s.Prepare = &v1alpha1.PrepareStep{
					Container: v1alpha1.Container{Name: "keys", Image: "example.org/echo:1", Command: []string{"/keys"}}, OutputPath: "/keys", Timeout: "60s",
				}
			},
			happens: func(p *play) {
				p.deployed()
				p.agents.reports[p.layout().PrepareJob()].Failure = "write the journal: no space left on device"
			},
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonFailed,
		},
		"a step that fails": {
			system: func(s *v1alpha1.SystemSpec) {
				s.Steps = []v1alpha1.Step{{Name: "load", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/load"}, Until: "ExitZero", Timeout: "1s"}}
			},
			happens: func(p *play) {
				p.deployed()
				for range 8 {
					p.reconcile()
					p.agents.obey()
					for i := range first(p).Commands {
						first(p).Commands[i].ExitCode = 1
					}
				}
			},
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonStepFailed,
		},
		"a client that ends at the barrier": {
			happens: func(p *play) {
				p.starting()
				for range 3 { // replicas become ready, and clients start
					p.reconcile()
					p.agents.obey()
					p.agents.reports[p.layout().Clients[0].Name].AtBarrier = false
				}
				p.agents.reports[p.layout().Clients[0].Name].Over = true
			},
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonClientFailed,
		},
		"a client that ends in the window": {
			happens: func(p *play) {
				p.released()
				p.measured(10, 0)
				p.clientEnds(15*time.Second, 0)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonLoadEndedEarly, committed: 20,
		},
		// No manager led, and the successor comes after the end of the window.
		"a client that failed while no manager led": {
			happens: func(p *play) {
				p.released()
				p.newReconciler()
				p.settle(true)
				p.measured(10, 0)
				p.clientEnds(15*time.Second, 139)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonClientFailed, committed: 20,
		},
		"a client that fails and leaves nothing to read": {
			happens: func(p *play) {
				p.released()
				p.clientEnds(15*time.Second, 139)
				p.agents.reports[p.layout().Clients[0].Name].Failure = "the client has left no report at /assay/out/ops.log"
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonClientFailed,
		},
		"a replica that exits after the clients": {
			happens: func(p *play) {
				p.released()
				first(p).Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateExited, ExitCode: 141, Exited: 23500 * time.Millisecond}}
				p.measured(10, 0)
			},
			outcome: v1alpha1.ReasonSucceeded, reason: v1alpha1.ReasonSucceeded,
		},
		"clients that were all released late": {
			happens: func(p *play) {
				p.released()
				p.measured(10, 0)
				for _, c := range p.layout().Clients {
					p.agents.reports[c.Name].Client.Released = -time.Second
				}
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonStartLate,
		},
		"a pod that is made again before the run": {
			happens: func(p *play) {
				p.starting()
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.layout().Servers[1].Name}}
				if err := p.env.Client.Delete(p.t.Context(), pod); err != nil {
					p.t.Fatal(err)
				}
				p.pod(pod.Name, 7, map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeReplica})
				p.settle(true)
			},
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonRunLost,
		},
		"a replica that is not ready any more at the release": {
			happens: func(p *play) {
				p.deployed()
				for range 12 {
					p.reconcile()
					p.agents.obey()
					first(p).Ready = first(p).Ready && !isTrue(p.trial(), v1alpha1.TrialLoaded)
				}
				p.clock.Step(engine.BarrierTimeout + time.Second)
			},
			outcome: v1alpha1.ReasonFailed, reason: v1alpha1.ReasonDeadlineExceeded,
		},
		"a container that exceeds its memory": {
			happens: func(p *play) {
				p.released()
				pod := &corev1.Pod{}
				if err := p.env.Client.Get(p.t.Context(), types.NamespacedName{Namespace: p.ns, Name: p.layout().Servers[1].Name}, pod); err != nil {
					p.t.Fatal(err)
				}
				killed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 1, LastTerminationState: killed}}
				if err := p.env.Client.Status().Update(p.t.Context(), pod); err != nil {
					p.t.Fatal(err)
				}
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonOutOfMemory,
		},
		"results that never arrive": {
			happens: func(p *play) { p.released(); p.clock.Step(5 * time.Minute) },
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonClientLost,
		},
		"a pod that is gone in the run": {
			happens: func(p *play) {
				p.released()
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.layout().Servers[1].Name}}
				if err := p.env.Client.Delete(p.t.Context(), pod); err != nil {
					p.t.Fatal(err)
				}
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonRunLost,
		},
		"a pod that is made again in the run": {
			happens: func(p *play) {
				p.released()
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.layout().Servers[1].Name}}
				if err := p.env.Client.Delete(p.t.Context(), pod); err != nil {
					p.t.Fatal(err)
				}
				p.pod(pod.Name, 1, map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeReplica})
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonRunLost,
		},
		"a container that the kubelet restarts": {
			happens: func(p *play) {
				p.released()
				pod := &corev1.Pod{}
				if err := p.env.Client.Get(p.t.Context(), types.NamespacedName{Namespace: p.ns, Name: p.layout().Servers[1].Name}, pod); err != nil {
					p.t.Fatal(err)
				}
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 1}}
				if err := p.env.Client.Status().Update(p.t.Context(), pod); err != nil {
					p.t.Fatal(err)
				}
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonPodRestarted,
		},
		"a fault that is late": {
			happens: func(p *play) {
				p.released()
				p.agents.reports[p.layout().Servers[2].Name].Actions[0].Confirmed += time.Second
				p.measured(10, 0)
				p.settle(false)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonFaultLate,
		},
		"a fault that is not confirmed": {
			happens: func(p *play) {
				p.released()
				p.agents.reports[p.layout().Servers[2].Name].Actions = nil
				p.measured(10, 0)
				p.settle(false)
				p.clock.Step(engine.ResultsGrace) // the manager waits for its report as long as for results
				p.settle(false)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonFaultNotConfirmed,
		},
		"the System's snapshot is gone": {
			happens: func(p *play) {
				p.released()
				p.newReconciler()
				if err := p.env.Client.Delete(p.t.Context(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "exp-echo"}}); err != nil {
					p.t.Fatal(err)
				}
				p.withoutResults = true
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonRenderFailed,
		},
		"results that are deleted before they are read": {
			happens: func(p *play) {
				p.released()
				p.measured(10, 0)
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.layout().ClientResultConfigMap(0)}}
				if err := p.env.Client.Delete(p.t.Context(), cm); err != nil {
					p.t.Fatal(err)
				}
				p.settle(false)
				if known := p.condition(v1alpha1.TrialValid); known.Status == metav1.ConditionFalse {
					p.t.Fatalf("the trial is given up at once: %s", known.Message)
				}
				p.clock.Step(engine.ResultsGrace + engine.StoreGrace)
			},
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonClientLost,
		},
		"clients that start apart": {
			happens: func(p *play) { p.released(); p.measured(10, time.Second) },
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonStartSpread,
		},
		"nothing committed": {
			happens: func(p *play) { p.released(); p.measured(0, 0) },
			outcome: v1alpha1.ReasonInvalid, reason: v1alpha1.ReasonNothingMeasured,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, tc.system)
			tc.happens(p)
			// The agents neither obey nor report an end: cleanup must not wait forever.
			p.settle(false)
			p.clock.Step(time.Minute)
			p.settle(false)
			trial := p.wantEnd(tc.outcome, tc.reason)
			if tc.reason == v1alpha1.ReasonReplicaExited && len(trial.Logs) != 1 {
				t.Errorf("the results keep logs %v, want what the replica printed last", trial.Logs)
			}
			if tc.committed != 0 && trial.Summary.Committed != tc.committed {
				t.Errorf("the results have %d commits, want %d", trial.Summary.Committed, tc.committed)
			}
		})
	}
}

// A manager that takes over in the middle of a run goes on with the same t = 0, gives the same
// directives, and ends the trial normally.
func TestATakeOverGoesOnWithTheSameRun(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	zero, before := p.trial().Status.ZeroUnixNanos, p.agents.directives
	reports := p.agents.reports
	p.agents = newAgents(p.clock) // no agent has reported to the new manager
	p.newReconciler()
	p.clock.Step(3 * time.Second)
	p.settle(false)
	p.agents.reports = reports // the agents have dialled again
	p.settle(true)
	if got := p.trial().Status.ZeroUnixNanos; got != zero {
		t.Fatalf("t = 0 moved from %d to %d", zero, got)
	}
	for name, d := range before {
		if got := p.agents.directives[name]; got.Run == nil || got.Run.ZeroUnixNanos != d.Run.ZeroUnixNanos || got.FilesDigest != d.FilesDigest {
			t.Errorf("%s: the directive changed from %+v to %+v", name, d, got)
		}
	}
	p.measured(10, 0)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
}

// We found this error on a cluster. The clients' results reached a new manager before the killed
// replica's agent did, and the trial was judged without its fault.
func TestATakeOverHearsOfEveryFaultBeforeItJudges(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	reports := p.agents.reports
	p.agents = newAgents(p.clock)
	p.newReconciler()
	p.settle(false)
	for _, c := range p.layout().Clients {
		p.agents.reports[c.Name] = reports[c.Name]
	}
	p.measured(10, 0)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialCollected); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, p.layout().Servers[0].Name) {
		t.Fatalf("collected is %s: %s; want that it waits for the agents of the replicas", c.Status, c.Message)
	}
	p.agents.reports = reports
	p.settle(true)
	if r := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded); len(r.Faults) != 1 || r.Faults[0].Error != "" {
		t.Errorf("faults %+v, want one without an error", r.Faults)
	}
}

func TestTrialsQueue(t *testing.T) {
	p := newPlay(t, nil)
	p.settle(false)
	first := p.key
	p.key = p.newTrial("trial-1")
	p.settle(false)
	if c := p.condition(v1alpha1.TrialAdmitted); c.Reason != v1alpha1.ReasonQueued || !strings.Contains(c.Message, "trial-0") {
		t.Fatalf("the second trial is %s: %s; want it queued behind trial-0", c.Reason, c.Message)
	}
	second := p.key
	p.key = first
	p.clock.Step(time.Hour) // trial-0 is given up, since its pods never came
	p.settle(false)
	p.key = second
	p.settle(false)
	if c := p.condition(v1alpha1.TrialAdmitted); c.Status != metav1.ConditionTrue {
		t.Fatalf("the second trial is not admitted after the first: %s", c.Message)
	}
}

func TestReplicasStartOneByOne(t *testing.T) {
	p := newPlay(t, func(s *v1alpha1.SystemSpec) { s.Replicas.Start = v1alpha1.StartOneByOne })
	p.deployed()
	for range 4 { // files are written, links are proved, no process is started
		p.reconcile()
		for name, d := range p.agents.directives {
			p.agents.reports[name].NamesResolved, p.agents.reports[name].FilesDigest = true, d.FilesDigest
			p.agents.reports[name].Network = p.agents.measure(name, d.Network)
		}
	}
	started := func() int {
		n := 0
		for _, r := range p.layout().Servers {
			if p.agents.directives[r.Name].Start {
				n++
			}
		}
		return n
	}
	for i, r := range p.layout().Servers {
		p.reconcile()
		p.reconcile()
		if got := started(); got != i+1 {
			t.Fatalf("%d replicas are started while %d are ready, want %d", got, i, i+1)
		}
		p.agents.reports[r.Name].Ready = true
	}
}

func TestThePrepareStepsOutputReachesEveryPod(t *testing.T) {
	p := newPlay(t, func(s *v1alpha1.SystemSpec) {
		s.Prepare = &v1alpha1.PrepareStep{
			Container: v1alpha1.Container{Name: "keys", Image: "i", Command: []string{"/keys"}}, OutputPath: "/keys", Timeout: "10s",
		}
	})
	p.deployed()
	p.settle(false)
	if c := p.condition(v1alpha1.TrialDeployed); c.Reason != v1alpha1.ReasonPreparing {
		t.Fatalf("Deployed is %s: %s; want it to wait for the prepare step", c.Reason, c.Message)
	}
	job := p.layout().PrepareJob()
	if d := p.agents.directives[job]; d.Prepare == nil || !d.Start {
		t.Fatalf("the prepare pod's directive is %+v", d)
	}
	store := &storage.Store{Client: p.env.Client, Reader: p.env.Client}
	if err := store.StorePrepared(t.Context(), p.agents.registered[job], tarball(t, map[string]string{"0.priv": "secret", "../../etc/passwd": "root"}), func() {}); err != nil {
		t.Fatal(err)
	}
	p.settle(true)
	if p.trial().Status.ZeroUnixNanos == 0 {
		t.Fatalf("the run was not released: %s", p.conditions())
	}
	files := p.agents.files[p.layout().Servers[0].Name]
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); !strings.Contains(got, "/keys/0.priv") || strings.Contains(got, " /etc/passwd") {
		t.Errorf("files are %s: want the keys in /keys, and nothing outside of it", got)
	}
	shown := &corev1.ConfigMap{}
	if err := p.env.Client.Get(t.Context(), types.NamespacedName{Namespace: p.ns, Name: p.layout().FilesConfigMap()}, shown); err != nil {
		t.Fatal(err)
	}
	for name, content := range shown.Data {
		if strings.Contains(content, "secret") {
			t.Errorf("the key is shown in the ConfigMap's %s", name)
		}
	}
}

func TestADeletedTrialLeavesNothing(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	if err := p.env.Client.Delete(t.Context(), p.trial()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		p.reconcile()
	}
	trial := &v1alpha1.Trial{}
	if err := p.env.Client.Get(t.Context(), p.key, trial); !apierrors.IsNotFound(err) {
		t.Fatalf("the trial is still there: %v, finalizers %v", err, trial.Finalizers)
	}
	p.wantNothingLeft()
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	for name, content := range files {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o400, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
