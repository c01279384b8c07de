package engine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/dataset"
	"assay.dev/assay/operator/internal/node/protocol"
)

// shaped delays the links of the trial by 5 ms each way.
func shaped(s *v1alpha1.ExperimentSpec) {
	s.Network = v1alpha1.Network{Profile: "lan", Backend: v1alpha1.ShapingAuto, Links: []v1alpha1.RegionLink{{Between: []string{"local", "local"}, RTT: new(v1alpha1.Duration("10ms"))}}}
}

func TestATrialGoesThroughItsPhases(t *testing.T) {
	p := newPlay(t, nil, nil)
	p.gap = 1500 * time.Millisecond
	said := p.settle(false)
	p.schedule()
	said = append(said, p.settle(true)...)
	if diff := cmp.Diff([]string{
		"Deployed False PodsPending: waiting for the pods or agents of t-s0-local-0, t-s0-local-1, t-s0-local-2 and 2 more [2s]",
		"Deployed False Configuring: waiting for the files of t-s0-local-0 [5m0.001s]",
		"Deployed True Ready: Every pod runs and has its files. [1ms]",
		"NetworkVerified False VerifyingNetwork: the links are being shaped and measured [1ms]",
		"NetworkVerified False VerifyingNetwork: waiting for the proof of the links of t-s0-local-0, t-s0-local-1, t-s0-local-2 and 2 more [1m0.001s]",
		"NetworkVerified True Ready: Nothing is shaped, and every path has been measured. [1m0.001s]",
		"Started False ReplicasStarting: t-s0-local-0 is not ready [1m0.001s]",
		"Started True Ready: Every replica and component is ready. [2m0.001s]",
		"Loaded True Ready: Every step is done. [2m0.001s]",
		"Running False ClientsNotAtBarrier: waiting for t-c-0 at the start barrier [2m0.001s]",
		"Running True Released: t = 0 is agreed and every client is released. [1ms]",
		"Collected False RunInProgress: The clients run, or their results are on the way. [2s]",
	}, said); diff != "" {
		t.Errorf("up to the run (-want +got):\n%s", diff)
	}
	if zero := p.now.Add(5500 * time.Millisecond).UnixNano(); p.trial.Status.ZeroUnixNanos != zero || p.trial.Status.GapMilliseconds != 1500 {
		t.Errorf("t = 0 is %d after a gap of %d ms, want %d, half a second and the warm-up from now", p.trial.Status.ZeroUnixNanos, p.trial.Status.GapMilliseconds, zero)
	}
	if s := p.trial.Status; s.Nodes != 3 || s.PodsDigest == "" || s.Times.Deployed == nil || s.Times.Released == nil || s.Times.Drained != nil {
		t.Errorf("the status of a running trial is %+v", s)
	}
	for pod, want := range map[string]int{"t-s0-local-2": 1, "t-s0-local-0": 0, "t-c-0": 0} {
		d := p.directives[pod]
		if !d.Start || d.Run == nil || d.Finish || d.Collect != nil || d.HandOver || d.AwaitsIdle || len(d.Run.Actions) != want {
			t.Errorf("in the run, the directive of %s is %+v, want %d actions", pod, d, want)
		}
	}
	p.measured(1000)
	if diff := cmp.Diff([]string{
		"Collected True Stored: The results of every client are stored. [1ms]",
		"Valid True Succeeded: 2000 transactions committed in the window, mean latency 5.002 ms. [1ms]",
		"CleanedUp False Deleting: The processes are being ended. [5s]",
		"CleanedUp True Gone: All is gone. [0s]",
		"Complete True Succeeded: 2000 transactions committed in the window, mean latency 5.002 ms. [0s]",
	}, p.settle(true)); diff != "" {
		t.Errorf("after the run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ensure", "show 2 files", "store", "keep files", "delete"}, p.calls); diff != "" {
		t.Errorf("what was done (-want +got):\n%s", diff)
	}
	if d := p.directives["t-s0-local-0"]; !d.Finish || !d.Start || d.Collect != nil {
		t.Errorf("at the end, a replica's directive is %+v", d)
	}
	if r := p.stored; r.Outcome != v1alpha1.ReasonSucceeded || r.Reason != "" || r.Summary.Committed != 2000 || r.Summary.Throughput != 100 || r.Latency == "" || r.Timeline == nil || len(r.Faults) != 1 {
		t.Errorf("the stored results are %+v", r)
	}
	if len(p.files.Given) == 0 || len(p.files.Reports) != 1 {
		t.Errorf("beside the results are %d given files and %d reports", len(p.files.Given), len(p.files.Reports))
	}
	if s := p.trial.Status; s.ResultsConfigMap == "" || s.Headline == nil || s.Times.Collected == nil || s.Times.Drained == nil || s.Times.Done == nil || s.Checks != nil {
		t.Errorf("the status at the end is %+v", s)
	}
	if len(p.notes) != 1 || p.notes[0].Failed || p.notes[0].Kind != "Kill" {
		t.Errorf("of the fault people hear %+v", p.notes)
	}
	var events []string
	for _, e := range p.events {
		events = append(events, e.Action+" "+e.Reason)
		if e.Warning {
			t.Errorf("a warning: %+v", e)
		}
	}
	if diff := cmp.Diff([]string{"Running Released", "Valid Succeeded", "Complete Succeeded"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := p.engine.Cached(); got != 1 {
		t.Errorf("of %d trials something is kept, want 1", got)
	}
}

// everything plays a trial of a System with a prepare step, a step, a check and a grace. The trial
// waits for idle machines.
func everything(t *testing.T) *play {
	t.Helper()
	return newPlay(t, func(s *v1alpha1.SystemSpec) {
		s.Steps = []v1alpha1.Step{{Name: "load", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/load"}, Until: "ExitZero", Timeout: "30s"}}
		s.Checks = []v1alpha1.SafetyCheck{{Name: "linear", RunsOn: v1alpha1.StepEveryReplica, Command: []string{"/check"}, Timeout: "30s", ViolatedExitCode: 3}}
		s.Prepare = &v1alpha1.PrepareStep{Container: v1alpha1.Container{Name: "keys", Image: "example.org/echo:1", Command: []string{"/keys"}}, OutputPath: "/keys", Timeout: "60s"}
		s.Replicas.Stop = &v1alpha1.StopSpec{Grace: "7s"}
	}, func(s *v1alpha1.ExperimentSpec) {
		shaped(s)
		s.Disturbances.IdleWait, s.Disturbances.IdleThreshold = "1m", "10%"
	})
}

func TestATrialWithEverythingGoesThroughItsPhases(t *testing.T) {
	p := everything(t)
	said := p.settle(false)
	p.schedule()
	prepare := p.layout().PrepareJob()
	said = append(said, p.settle(true)...)
	if d := p.directives[prepare]; !d.Start || d.Prepare == nil {
		t.Errorf("the prepare step's directive is %+v", d)
	}
	p.packed, p.reports[prepare].Sent = packedOutput(t), true
	busy := &protocol.Load{CPUs: 4, Seconds: 1, BusyCores: 2}
	for _, r := range p.reports {
		r.Load = busy
	}
	said = append(said, p.settle(true)...)
	if d := p.directives["t-c-0"]; !d.SampleLoad || !d.AwaitsIdle || d.Run != nil {
		t.Errorf("while machines are busy, a client's directive is %+v", d)
	}
	p.now = p.now.Add(time.Minute - time.Millisecond)
	said = append(said, p.settle(true)...)
	p.now = p.now.Add(time.Millisecond)
	said = append(said, p.settle(true)...)
	if d := p.directives["t-s0-local-0"]; len(d.Commands) != 1 || d.Commands[0].ID != "load" || d.Network == nil || d.Network.Backend != shaping.EDT || !d.Network.Shape {
		t.Errorf("in the run, a replica's directive is %+v", d)
	}
	if d := p.directives["t-s0-local-1"]; len(d.Commands) != 0 {
		t.Errorf("the step runs in the second replica, too: %+v", d.Commands)
	}
	p.measured(1000)
	said = append(said, p.settle(true)...)
	if diff := cmp.Diff([]string{
		"Deployed False PodsPending: waiting for the pods or agents of t-s0-local-0, t-s0-local-1, t-s0-local-2 and 2 more [2s]",
		"Deployed False Preparing: waiting for the prepare step [6m0.001s]",
		"Deployed False Configuring: waiting for the files of t-s0-local-0 [6m0.001s]",
		"Deployed True Ready: Every pod runs and has its files. [1ms]",
		"NetworkVerified False VerifyingNetwork: the links are being shaped and measured [1ms]",
		"NetworkVerified False VerifyingNetwork: waiting for the proof of the links of t-s0-local-0, t-s0-local-1, t-s0-local-2 and 2 more [1m0.061s]",
		"NetworkVerified True Ready: Every link is shaped by EDT, has been measured, and is as asked. [1m0.001s]",
		"Started False ReplicasStarting: t-s0-local-0 is not ready [1m0.001s]",
		"Started True Ready: Every replica and component is ready. [1m40.001s]",
		"Loaded False StepsRunning: step load runs in t-s0-local-0 [1m40.001s]",
		"Loaded True Ready: Every step is done. [2m0.001s]",
		"Running False ClientsNotAtBarrier: waiting for t-c-0 at the start barrier [2m0.001s]",
		"Running False WaitingForIdle: Everything is ready. Waiting for idle machines, for 1m at most (disturbances.idleWait). [250ms]",
		"Running True Released: t = 0 is agreed and every client is released. It waited 1m0s for idle machines in vain: " +
			"others than the trial took 50% of the processors of node node-0; disturbances.idleThreshold is 10%. [1ms]",
		"Collected False RunInProgress: The clients run, or their results are on the way. [2s]",
		"Collected False RunInProgress: Waiting for the check linear in t-s0-local-0. [45.001s]",
		"Collected True Stored: The results of every client are stored. [1ms]",
		"Valid True Succeeded: 2000 transactions committed in the window, mean latency 5.002 ms. [1ms]",
		"CleanedUp False Deleting: The processes are being ended. [12.01s]",
		"CleanedUp True Gone: All is gone. [0s]",
		"Complete True Succeeded: 2000 transactions committed in the window, mean latency 5.002 ms. [0s]",
	}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := p.trial.Status.Checks; len(c) != 1 || c[0].Verdict != v1alpha1.SafetyHolds {
		t.Errorf("the checks are %+v", c)
	}
	if d := p.directives["t-s0-local-1"]; len(d.Commands) != 0 || !d.Finish {
		t.Errorf("when all ends, a replica's directive is %+v", d)
	}
	if g := p.trial.Status.IdleGate; g == nil || g.Idle || g.WaitedMilliseconds != 60_000 {
		t.Errorf("the wait for idle machines ended with %+v", g)
	}
}

// running brings a trial into its run.
func running(p *play) {
	p.settle(false)
	p.schedule()
	p.settle(true)
	if p.trial.Status.ZeroUnixNanos == 0 {
		p.t.Fatalf("the run was not released: %+v", p.trial.Status.Conditions)
	}
}

// If writes are slow, agents get the agreed run late. A lead of half a second was too short then,
// at every attempt.
func TestASlowServerLengthensTheLead(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{0: 500 * time.Millisecond, 400 * time.Millisecond: 1700 * time.Millisecond} {
		p := newPlay(t, nil, nil)
		p.saveTakes = takes
		p.settle(false)
		p.schedule()
		p.settle(true)
		warmUp := timeline.FromSchedule(p.trial.Spec.Schedule).WarmUp
		if p.trial.Status.Times.Released == nil {
			t.Fatalf("the run was not released: %+v", p.trial.Status.Conditions)
		}
		if lead := time.Unix(0, p.trial.Status.ZeroUnixNanos).Add(-warmUp).Sub(p.trial.Status.Times.Released.Time); lead != want {
			t.Errorf("with writes of %v the lead is %v, want %v", takes, lead, want)
		}
	}
}

// judged brings a trial to the end of a run that counts, before anything is deleted.
func judged(p *play) {
	running(p)
	p.measured(1000)
	for range 5 {
		if p.advance(); p.condition(v1alpha1.TrialValid) != "" {
			return
		}
		p.obey()
	}
	p.t.Fatalf("the trial is not judged: %+v", p.trial.Status.Conditions)
}

// A trial tells what it waits for, and what ended it.
func TestWhatBecomesOfATrial(t *testing.T) {
	pods := func(p *play) { p.settle(false); p.schedule() }
	forbidden := &RejectedError{Reason: v1alpha1.ReasonPodsForbidden, Message: "No room."}
	for name, tc := range map[string]struct {
		everything bool
		experiment func(*v1alpha1.ExperimentSpec)
		happens    func(p *play)
		obedient   bool
		on, want   string // on: the tested condition; want: the end of its last message
	}{
		"objects that are refused": {happens: func(p *play) { p.ensureErr = forbidden }, on: "Complete", want: "True Failed: PodsForbidden: No room."},
		"objects that fail": {
			happens: func(p *play) { p.ensureErr = errors.New("no quorum") }, on: "Deployed", want: "False PodsPending: trying again what failed: no quorum",
		},
		"pods that never come": {
			happens: func(p *play) { p.settle(false); p.now = p.now.Add(DeployTimeout) }, on: "Complete",
			want: "True Failed: DeadlineExceeded: Deployed: after 5m0s, still waiting for the pods or agents of t-s0-local-0, t-s0-local-1, t-s0-local-2 and 2 more",
		},
		"pods that come a moment before the deadline": {
			happens: func(p *play) { p.settle(false); p.now = p.now.Add(DeployTimeout - time.Nanosecond) }, on: "Complete", want: "",
		},
		"pods that the cluster refuses": {
			happens: func(p *play) { p.settle(false); p.refusal, p.now = "quota", p.now.Add(RetryPoll) }, on: "Complete",
			want: "True Failed: PodsForbidden: The cluster refuses pods of the trial: quota",
		},
		"why pods are missing is not asked at once": {
			happens: func(p *play) { p.settle(false); p.refusal, p.now = "quota", p.now.Add(RetryPoll-1) }, on: "Complete", want: "",
		},
		"a pod that cannot run on its machine": {
			happens: func(p *play) {
				pods(p)
				p.pods["t-c-1"].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: PodNotRunnable, Message: "no such image"}
			}, on: "Complete", want: "True Failed: PodsForbidden: Pod t-c-1 cannot run on its machine: no such image",
		},
		"a prepare step's pod that cannot run on its machine": {
			everything: true, happens: func(p *play) {
				pods(p)
				p.pods[p.layout().PrepareJob()].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: PodNotRunnable, Message: "no such image"}
			}, on: "Complete", want: "True Failed: PodsForbidden: Pod t-prepare cannot run on its machine: no such image",
		},
		"a client's pod that may not have its data": { // the refused copy makes the whole pod fail
			happens: func(p *play) {
				pods(p)
				p.trial.Spec.Datasets = []v1alpha1.TrialDataset{{Name: "keys"}}
				refused := &corev1.ContainerStateTerminated{ExitCode: dataset.ExitRefused, Message: "agent: another digest"}
				p.pods["t-c-1"].Status = corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: []corev1.ContainerStatus{
					{Name: render.DatasetCopyPrefix + "keys", State: corev1.ContainerState{Terminated: refused}},
				}}
			}, on: "Complete", want: "True Failed: DatasetDiffers: Pod t-c-1 on node node-1 cannot have its data: another digest",
		},
		"a client's pod that fails": {
			happens: func(p *play) {
				pods(p)
				p.pods["t-c-1"].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}
			}, on: "Complete", want: "True Failed: RunLost: Pod t-c-1 failed before the start: UnexpectedAdmissionError",
		},
		"a client's pod that is evicted": {
			happens: func(p *play) {
				pods(p)
				p.pods["t-c-1"].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "disk full"}
			}, on: "Complete", want: "True Failed: Evicted: The cluster ends pod t-c-1, which is on node node-1: Evicted: disk full.",
		},
		"a client's pod that is deleted": {
			happens: func(p *play) {
				pods(p)
				delete(p.reports, "t-s0-local-1")
				p.advance()
				delete(p.pods, "t-c-0")
			}, on: "Complete", want: "True Failed: RunLost: Somebody deleted pod t-c-0 before the start, and its Job makes no other one.",
		},
		"a client's pod that an earlier trial of the same name left": {
			happens: func(p *play) {
				pods(p)
				p.pods["t-c-0"].DeletionTimestamp, p.pods["t-c-0"].Status = &metav1.Time{Time: p.now}, corev1.PodStatus{Phase: corev1.PodFailed}
			}, on: "Deployed", want: "False PodsPending: waiting for the pods or agents of t-c-0",
		},
		"a replica's pod that fails": { // its StatefulSet replaces it
			happens: func(p *play) {
				pods(p)
				p.pods["t-s0-local-1"].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
			}, on: "Deployed", want: "False PodsPending: waiting for the pods or agents of t-s0-local-1",
		},
		"a prepare step's pod that fails": {
			everything: true, happens: func(p *play) {
				pods(p)
				p.pods[p.layout().PrepareJob()].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeLost"}
			}, on: "Complete", want: "True Failed: RunLost: Pod t-prepare of the prepare step failed: NodeLost",
		},
		"an agent that does not report": {
			happens: func(p *play) { pods(p); delete(p.reports, "t-s0-local-1") }, on: "Deployed", want: "False PodsPending: waiting for the pods or agents of t-s0-local-1",
		},
		"an agent that cannot go on": {
			happens: func(p *play) { pods(p); p.reports["t-s0-local-1"].Failure = "no nftables" }, on: "Valid", want: "False Failed: The agent of t-s0-local-1 cannot go on: no nftables",
		},
		"a prepare step that fails": {
			everything: true, happens: func(p *play) {
				pods(p)
				r := p.reports[p.layout().PrepareJob()]
				r.Failure, r.Unreadable = "it exited with 2", true
			}, on: "Complete", want: "True Failed: PrepareFailed: The prepare step failed: it exited with 2.",
		},
		"a prepare step whose agent fails": {
			everything: true, happens: func(p *play) { pods(p); p.reports[p.layout().PrepareJob()].Failure = "disk full" }, on: "Complete",
			want: "True Failed: Failed: The agent of the prepare step cannot go on: disk full.",
		},
		"an output that is damaged": {
			everything: true, happens: func(p *play) { pods(p); p.packed = []byte("x") }, on: "Complete", want: "True Failed: PrepareFailed: The prepare step's output cannot be read: unexpected EOF",
		},
		"names that do not resolve": {
			happens: func(p *play) {
				pods(p)
				p.advance()
				p.obey()
				r := p.reports["t-c-0"]
				r.NamesResolved, r.Unresolved = false, []string{"a", "b"}
			}, on: "Deployed", want: "False Configuring: t-c-0 cannot resolve a, b",
		},
		"files that cannot be shown": {
			happens: func(p *play) { pods(p); p.showErr = errors.New("too large") }, obedient: true, on: "Deployed", want: "False PodsPending: trying again what failed: too large",
		},
		"links that are wrong": {
			experiment: shaped, obedient: true, happens: func(p *play) {
				pods(p)
				p.network = func(_ string, n *protocol.NetworkReport) {
					for i := range n.Links {
						n.Links[i].RTT += 10 * time.Millisecond
						n.Links[i].OutDelay += 10 * time.Millisecond
					}
				}
			}, on: "Valid", want: "NetworkWrong",
		},
		"no backend": {
			experiment: shaped, obedient: true, happens: func(p *play) {
				pods(p)
				p.network = func(_ string, n *protocol.NetworkReport) { n.Backends = nil }
			}, on: "Valid", want: "NoShapingBackend",
		},
		"paths that are not measured": {
			obedient: true, happens: func(p *play) {
				pods(p)
				p.network = func(_ string, n *protocol.NetworkReport) { n.Baseline = false }
			}, on: "NetworkVerified", want: "False MeasuringPaths: waiting for t-s0-local-0",
		},
		"paths that are never measured": {
			obedient: true, happens: func(p *play) {
				pods(p)
				p.network = func(_ string, n *protocol.NetworkReport) { n.Baseline = false }
				p.settle(true)
				p.now = p.now.Add(time.Minute)
			}, on: "Valid", want: "NetworkVerified: after 1m0s, still",
		},
		"a step that fails": {
			everything: true, happens: func(p *play) {
				pods(p)
				p.packed = packedOutput(p.t)
				for range 12 {
					p.advance()
					p.obey()
					for _, r := range p.reports {
						for i := range r.Commands {
							r.Commands[i].ExitCode = 4
						}
					}
				}
			}, on: "Complete", want: "True Failed: StepFailed: Step load failed in t-s0-local-0 with exit code 4.",
		},
		"a release that cannot be agreed": {
			obedient: true, happens: func(p *play) {
				pods(p)
				for p.condition(v1alpha1.TrialLoaded) == "" {
					p.advance()
					p.obey()
				}
				p.reports["t-c-1"].Over = true
			}, on: "Complete", want: "True Failed: ClientFailed: Client t-c-1 ended before the start.",
		},
		"a replica that is no longer ready at the barrier": {
			happens: func(p *play) {
				pods(p)
				for p.condition(v1alpha1.TrialLoaded) == "" {
					p.advance()
					p.obey()
				}
				p.reports["t-s0-local-1"].Ready = false
			}, on: "Running", want: "False ReplicasStarting: waiting for t-s0-local-1 to be ready still",
		},
		"a proof that is gone at the barrier": {
			happens: func(p *play) {
				pods(p)
				for p.condition(v1alpha1.TrialLoaded) == "" {
					p.advance()
					p.obey()
				}
				p.reports["t-s0-local-1"].Network = nil
			}, on: "Running", want: "False VerifyingNetwork: waiting for t-s0-local-1 to confirm that its links are still as asked",
		},
		"results that never come": {
			happens: func(p *play) {
				running(p)
				p.measured(10)
				p.reports["t-c-1"].Sent, p.now = false, p.now.Add(time.Hour)
			}, obedient: true, on: "Complete",
			want: "True Invalid: ClientLost: 2 of 2 clients are over and the results of 1 have arrived by the deadline, 1m0s after the drain.",
		},
		"results that are gone": {
			happens: func(p *play) { running(p); p.measured(10); p.clientsErr = errors.New("read the results: gone") }, on: "Collected",
			want: "False RunInProgress: Trying again what failed: read the results: gone",
		},
		"results that stay gone": {
			happens: func(p *play) {
				running(p)
				p.measured(10)
				p.clientsErr, p.now = errors.New("read the results: gone"), p.now.Add(ResultsGrace+StoreGrace)
			}, on: "Valid", want: "False ClientLost: 3m0s after the drain it still fails to read the results: gone",
		},
		"results that cannot be stored": {
			happens: func(p *play) { running(p); p.measured(10); p.storeErr = errors.New("store: full") }, on: "Collected", want: "False RunInProgress: Trying again what failed: store: full",
		},
		"a client that no agent released": {
			happens: func(p *play) { running(p); p.measured(10); p.reports["t-c-1"].Client = nil }, on: "Valid", want: "False ClientLost",
		},
		"a fault that did not happen": {
			obedient: true, happens: func(p *play) {
				running(p)
				p.measured(1000)
				p.reports["t-s0-local-2"].Actions[0].Error = "no such process"
				p.advance()
			}, on: "Complete", want: "True Invalid: FaultNotConfirmed: Fault crash (Kill of t-s0-local-2) was not confirmed: no such process.",
		},
		"what is still there": {happens: func(p *play) { judged(p); p.obey(); p.advance(); p.obey(); p.left = "Job a" }, on: "CleanedUp", want: "False Deleting: Still there: Job a."},
		"what cannot be deleted": {
			happens: func(p *play) {
				judged(p)
				p.obey()
				p.advance()
				p.obey()
				p.deleteErr = &LeftError{errors.New("Secret b")}
			}, on: "CleanedUp",
			want: "False Deleting: Nothing of the trial runs any more: Secret b.",
		},
		"what can never be deleted": {
			obedient: true, happens: func(p *play) {
				judged(p)
				p.deleteErr, p.now = &LeftError{errors.New("Secret b")}, p.now.Add(StoreGrace)
			}, on: "CleanedUp",
			want: "True Gone: Nothing of the trial runs any more. What could not be deleted goes with the trial: Secret b.",
		},
		"files that cannot be kept": {
			obedient: true, happens: func(p *play) { judged(p); p.keepErr = errors.New("full") }, on: "CleanedUp", want: "False Deleting: Before anything is deleted: full.",
		},
		"files that can never be kept": {
			obedient: true, happens: func(p *play) { judged(p); p.keepErr, p.now = errors.New("full"), p.now.Add(StoreGrace) }, on: "Collected",
			want: "False ResultsNotStored: After 2m0s, the files of the trial's pods could not be kept: full.",
		},
		"a failure that can never be stored": {
			obedient: true, happens: func(p *play) {
				running(p)
				p.reports["t-s0-local-1"].Failure, p.storeErr = "disk full", errors.New("full")
				p.advance()
				p.now = p.now.Add(StoreGrace)
			}, on: "Collected", want: "False ResultsNotStored: After 2m0s, what is known of the trial could not be stored: full.",
		},
		"pods that people look at": {
			obedient: true, happens: func(p *play) {
				running(p)
				p.reports["t-s0-local-1"].Failure, p.keepUntil = "disk full", p.now.Add(time.Hour)
			}, on: "CleanedUp", want: "False Kept: People look at the pods.",
		},
		"pods that people have looked at": {
			obedient: true, happens: func(p *play) {
				running(p)
				p.reports["t-s0-local-1"].Failure, p.keepUntil = "disk full", p.now.Add(time.Hour)
				p.settle(true)
				p.now = p.now.Add(time.Hour)
			}, on: "Complete", want: "True Invalid: Failed: The agent of t-s0-local-1 cannot go on: disk full",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil, tc.experiment)
			if tc.everything {
				p = everything(t)
			}
			tc.happens(p)
			p.settle(tc.obedient)
			got := p.condition(tc.on)
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" || strings.HasPrefix(tc.want, "True") != strings.HasPrefix(got, "True") {
				t.Errorf("%s is %q, want %q; all: %+v", tc.on, got, tc.want, p.trial.Status.Conditions)
			}
		})
	}
}

func packedOutput(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	w := tar.NewWriter(gz)
	if err := w.WriteHeader(&tar.Header{Name: "key", Typeflag: tar.TypeReg, Mode: 0o600, Size: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
