package validity

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// observation is a quiet run of two replicas and two client pods: warm-up 5 s, window 20 s,
// cool-down 2 s, drain 5 s.
func observation() *Observation {
	l := &placement.Layout{
		Servers: []placement.Replica{{Name: "r-0"}, {Name: "r-1"}},
		Clients: []placement.Client{{Index: 0, First: 0, Count: 2, Name: "c-0"}, {Index: 1, First: 2, Count: 2, Name: "c-1"}},
	}
	o := &Observation{
		Trial: &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{
			Schedule:   v1alpha1.Schedule{WarmUp: "5s", Measure: "20s", CoolDown: "2s", Drain: "5s"},
			Clients:    v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Count: 4},
			Tolerances: tolerances,
		}},
		Layout: l, Rendered: true,
		Merged: results.Merged{CorrectClients: 4},
		Result: &results.Trial{Summary: results.Summary{Counters: results.Counters{Committed: 100}}},
	}
	o.Trial.Spec.Tolerances.StartSpread = "100ms"
	for _, r := range l.Servers {
		o.Pods = append(o.Pods, Pod{Name: r.Name, Report: &protocol.Report{
			ResetsCounted: true, Network: &protocol.NetworkReport{Baseline: true, Proven: true}, Containers: []protocol.ContainerState{{Name: "server", State: protocol.StateRunning, Starts: 1}},
		}})
	}
	for i := range l.Clients {
		c := &l.Clients[i]
		o.Pods = append(o.Pods, Pod{Name: c.Name, Client: c, Report: &protocol.Report{
			ResetsCounted: true, Network: &protocol.NetworkReport{Baseline: true, Proven: true}, Over: true, Sent: true,
			Client: &protocol.ClientRun{Released: -6 * time.Second, Ended: 22500 * time.Millisecond},
		}})
		o.Clients = append(o.Clients, results.Client{Index: int32(c.Index), FirstClient: int32(c.First), Clients: int32(c.Count), StartedNanos: int64(20 * time.Millisecond)})
	}
	for i := range o.Pods {
		o.Result.Pods = append(o.Result.Pods, results.Pod{Name: o.Pods[i].Name, Resources: &results.Resources{Seconds: 20, Node: results.NodeUse{Seconds: 20}}})
	}
	return o
}

func TestLoad(t *testing.T) {
	client := func(o *Observation, i int) *protocol.ClientRun { return o.Pods[2+i].Report.Client }
	exits := func(o *Observation, at time.Duration) {
		o.Pods[0].Report.Containers[0] = protocol.ContainerState{Name: "server", State: protocol.StateExited, ExitCode: 141, Exited: at, Tail: "bye"}
	}
	tests := map[string]struct {
		change  func(*Observation)
		reason  string
		message string
	}{
		"quiet": {change: func(*Observation) {}},
		// Once, a new manager without the prepare step's Secret judged a run without its faults and
		// links. The run counted although a fault had failed.
		"a plan that is not known": {
			change: func(o *Observation) { o.Rendered = false },
			reason: v1alpha1.ReasonRunLost, message: "What faults and links were to be is not known any more",
		},
		// A new manager releases late, and all clients begin equally late.
		"all clients released in the warm-up": {
			change: func(o *Observation) {
				client(o, 0).Released, client(o, 1).Released = -2*time.Second, -2*time.Second
			},
			reason: v1alpha1.ReasonStartLate, message: "c-0 was released 3s later than agreed",
		},
		"released as late as is tolerated": {change: func(o *Observation) { client(o, 1).Released = -4900 * time.Millisecond }},
		"all clients begin in the window": {
			change: func(o *Observation) {
				for i := range o.Clients {
					o.Clients[i].StartedNanos = int64(8 * time.Second)
				}
			},
			reason: v1alpha1.ReasonStartLate, message: "Client c-0 sent its first request 3s after the window had begun",
		},
		"an open loop begins when its first request is due": {
			change: func(o *Observation) {
				o.Trial.Spec.Clients.Loop = v1alpha1.LoopOpen
				for i := range o.Clients {
					o.Clients[i].StartedNanos = int64(8 * time.Second)
				}
			},
		},
		"clients of a closed loop that start apart": {
			change: func(o *Observation) { o.Merged.StartSpread = 101 * time.Millisecond },
			reason: v1alpha1.ReasonStartSpread, message: "The clients started 101ms apart; tolerances.startSpread is 100ms.",
		},
		"clients of a closed loop with phases, some of which join later": {
			change: func(o *Observation) {
				o.Trial.Spec.Clients.Phases = []v1alpha1.LoadPhase{{For: "10s", Load: "10%", To: "100%"}}
				o.Merged.StartSpread = 8 * time.Second
				for i := range o.Clients {
					o.Clients[i].StartedNanos = int64(8 * time.Second)
				}
			},
		},
		"clients with phases that are released late": {
			change: func(o *Observation) {
				o.Trial.Spec.Clients.Phases = []v1alpha1.LoadPhase{{For: "10s", Load: "10%", To: "100%"}}
				client(o, 0).Released = -2 * time.Second
			},
			reason: v1alpha1.ReasonStartLate, message: "c-0 was released 3s later than agreed",
		},
		"clients with phases that join late": {
			change: func(o *Observation) {
				o.Trial.Spec.Clients.Phases = []v1alpha1.LoadPhase{{For: "10s", Load: "10%", To: "100%"}}
				o.Result.Pods[2].GeneratorLagP99Millis = 12
			},
			reason: v1alpha1.ReasonGeneratorLate, message: "12.000 ms late at the 99th percentile",
		},
		// At 10 requests per second, the generators of two clients take turns every 100 ms. Once, a
		// few microseconds decided whether trials with such a rate were valid.
		"clients of an open loop that take turns": {
			change: func(o *Observation) {
				o.Trial.Spec.Clients.Loop, o.Merged.StartSpread = v1alpha1.LoopOpen, 104*time.Millisecond
			},
		},
		"a client that is done before the window is": {
			change: func(o *Observation) { client(o, 1).Ended = 15 * time.Second },
			reason: v1alpha1.ReasonLoadEndedEarly, message: "Client c-1 ended 15.000 s after t = 0, and the window lasts 20s: let it send for {{.Schedule.LoadSeconds}}",
		},
		"a client that crashes in the last second of the window": {
			change: func(o *Observation) {
				client(o, 0).Ended, client(o, 0).ExitCode = 19500*time.Millisecond, 139
				o.Pods[2].Report.Containers = []protocol.ContainerState{{Name: "bench", Tail: "oops"}}
			},
			reason: v1alpha1.ReasonClientFailed, message: "19.500 s after t = 0 with exit code 139 (signal 11, segmentation fault); requests are sent for 22s. bench printed last: oops",
		},
		"a client that crashes in the cool-down": {
			change: func(o *Observation) { client(o, 0).Ended, client(o, 0).ExitCode = 21*time.Second, 1 },
			reason: v1alpha1.ReasonClientFailed,
		},
		"a client that crashes after the last request": {change: func(o *Observation) { client(o, 0).ExitCode = 1 }},
		"a client that is ended by its log": {change: func(o *Observation) {
			client(o, 0).Ended, client(o, 0).ExitCode, client(o, 0).Asked = 20100*time.Millisecond, 137, true
		}},
		"a client whose end is not known": {
			change: func(o *Observation) { o.Pods[3].Report.Client = nil },
			reason: v1alpha1.ReasonClientLost, message: "agent of client c-1 did not say",
		},
		"a silent client": {
			change: func(o *Observation) { o.Clients[1].NothingSent, o.Clients[1].StartedNanos = true, 0 },
			reason: v1alpha1.ReasonClientSilent, message: "Client c-1 told of no request",
		},
		"clients that are all silent have committed nothing": {
			change: func(o *Observation) {
				o.Clients[0].NothingSent, o.Clients[1].NothingSent, o.Result.Summary.Committed = true, true, 0
			},
			reason: v1alpha1.ReasonNothingMeasured,
		},
		"a replica that exits in the window": {
			change: func(o *Observation) { exits(o, 3*time.Second) },
			reason: v1alpha1.ReasonReplicaExited, message: "r-0/server ended with exit code 141 (signal 13, broken pipe) though no fault killed it. It printed: bye",
		},
		"a replica that exits at an unknown instant": {
			change: func(o *Observation) { exits(o, 0) },
			reason: v1alpha1.ReasonReplicaExited,
		},
		"a replica that exits before any client does": {
			change: func(o *Observation) {
				exits(o, 20100*time.Millisecond)
				client(o, 0).Ended, client(o, 1).Ended = 20200*time.Millisecond, 20300*time.Millisecond
			},
			reason: v1alpha1.ReasonReplicaExited,
		},
		// Clients are killed one by one, and a replica dies when it writes to the first of them.
		"a replica that exits after a client ended": {change: func(o *Observation) {
			exits(o, 20250*time.Millisecond)
			client(o, 0).Ended, client(o, 1).Ended = 20200*time.Millisecond, 20300*time.Millisecond
		}},
		"a replica that exits after the last request": {change: func(o *Observation) { exits(o, 22001*time.Millisecond) }},
		"a replica that a fault killed": {change: func(o *Observation) {
			exits(o, 3*time.Second)
			o.Pods[0].Report.Containers[0].Expected = true
		}},
		"a manager whose clock is set": {
			change: func(o *Observation) { o.Pods[1].Report.ClockStepped = 11 * time.Millisecond },
			reason: v1alpha1.ReasonClockStepped, message: "The agent of r-1 saw that the manager's clock",
		},
		"a manager with nearly the same clock takes over": {change: func(o *Observation) { o.Pods[1].Report.ClockStepped = 9 * time.Millisecond }},
		"agents that began by other clocks": {
			change: func(o *Observation) { o.Pods[3].Report.ClockManager = "m-2" },
			reason: v1alpha1.ReasonClockStepped, message: "The agents of r-0 and c-1 began the run by the clocks of different managers.",
		},
		"a container that exceeds its memory": {
			change: func(o *Observation) { o.Pods[1].Restarts, o.Pods[1].OutOfMemory = 1, "server" },
			reason: v1alpha1.ReasonOutOfMemory, message: "Container server of r-1 exceeded its memory limit",
		},
		"a container that the kubelet restarts": {
			change: func(o *Observation) { o.Pods[1].Restarts = 2 },
			reason: v1alpha1.ReasonPodRestarted, message: "of r-1 2 times",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := observation()
			tc.change(o)
			if v := Judge(o); v.Reason != tc.reason || !strings.Contains(v.Message, tc.message) {
				t.Errorf("%q: %s; want %q with %q", v.Reason, v.Message, tc.reason, tc.message)
			}
		})
	}
}

// Each check is in the list once, under a name of its own.
func TestChecksAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range AfterRun {
		if c.Name == "" || seen[c.Name] {
			t.Errorf("check %q has no name of its own", c.Name)
		}
		seen[c.Name] = true
	}
}
