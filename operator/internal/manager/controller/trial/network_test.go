package trial

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

func lasting(text string) *v1alpha1.Duration {
	d := v1alpha1.Duration(text)
	return &d
}

// twoRegions puts two replicas in the east, and one replica and the clients in the west. The delay
// is 20 ms to the west, and 30 ms back.
func twoRegions(s *v1alpha1.ExperimentSpec) {
	s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 1}}
	s.Clients.Regions = []string{"west"}
	s.Network.Links = []v1alpha1.RegionLink{
		{From: "east", To: "west", LinkEffect: v1alpha1.LinkEffect{Delay: lasting("20ms")}},
		{From: "west", To: "east", LinkEffect: v1alpha1.LinkEffect{Delay: lasting("30ms")}},
	}
	s.Tolerances.LinkDelay, s.Tolerances.LinkLateness = "1ms", "10ms"
}

// link returns a report's link to a peer.
func link(t *testing.T, n *protocol.NetworkReport, peer string) *protocol.LinkReport {
	t.Helper()
	for i := range n.Links {
		if n.Links[i].Peer == peer {
			return &n.Links[i]
		}
	}
	t.Fatalf("no link to %s", peer)
	return nil
}

func TestAShapedTrial(t *testing.T) {
	p := newPlayOf(t, nil, twoRegions)
	p.settle(false)
	p.schedule()
	for _, name := range p.names() { // agents measure the paths before any of them shapes
		if d := p.agents.directives[name]; d.Network != nil && d.Network.Shape {
			t.Fatalf("%s is to shape before the paths are measured", name)
		}
	}
	p.settle(true)
	trial := p.trial()
	if n := trial.Status.Network; n == nil || n.Backend != v1alpha1.ShapingEDT {
		t.Fatalf("the network in status is %+v, want the first backend that works everywhere", n)
	}
	if c := p.condition(v1alpha1.TrialNetworkVerified); c.Status != "True" || trial.Status.Times.NetworkVerified == nil {
		t.Fatalf("NetworkVerified is %s: %s", c.Status, c.Message)
	}
	keys := map[string]bool{}
	for _, name := range p.names() {
		n := p.agents.directives[name].Network
		if n == nil || !n.Shape || n.Backend != shaping.EDT || len(n.Peers) != len(p.names())-1 || n.Tolerance != time.Millisecond {
			t.Fatalf("%s is told %+v", name, n)
		}
		keys[string(n.ProbeKey)] = true
	}
	if len(keys) != 1 || keys[""] {
		t.Errorf("the agents have %d different keys, want one that is not empty", len(keys))
	}
	r := p.layout().ServerPods()
	p.agents.network = func(pod string, n *protocol.NetworkReport) {
		for i := range n.Links {
			l := &n.Links[i]
			// For one pair neither end could tell the directions apart, for another one end could.
			l.Undirected = pod == r[0] && l.Peer != r[1] || pod == r[2] && l.Peer == r[0]
			l.CanarySent, l.CanaryLost, l.CanaryMin, l.CanaryMedian, l.CanaryMax = 30, 1, l.RTT, l.RTT+300*time.Microsecond, l.RTT+9*time.Millisecond
		}
	}
	p.agents.obey()
	p.measured(1000, 0)
	p.settle(true)
	n := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded).Network
	if n == nil || n.Backend != "EDT" || n.Pairs != 10 || len(n.Links) != 10 || len(n.Regions) != 3 || n.ApplyMillis != 20 || n.ProveMillis != 300 || n.Rounds != 1 {
		t.Fatalf("the network in the results is %+v", n)
	}
	between := n.Regions[1]
	for _, l := range n.Links {
		if want := l.From == r[0] && l.To == r[2]; l.Undirected != want {
			t.Errorf("%s and %s are undirected: %v, want %v", l.From, l.To, l.Undirected, want)
		}
	}
	if n.Undirected != 1 || n.Regions[0].Undirected != 0 {
		t.Errorf("%d pairs are undirected, %d of them within the east, want 1 and none", n.Undirected, n.Regions[0].Undirected)
	}
	want := results.RegionLinks{
		From: "east", To: "west", Pairs: 6, Out: results.LinkAsked{DelayMillis: 20}, In: results.LinkAsked{DelayMillis: 30},
		ExpectedMinMillis: 50.2, ExpectedMaxMillis: 50.2, MeasuredMinMillis: 50.25, MeasuredMaxMillis: 50.25, Undirected: 1,
	}
	got := between
	got.WorstPair, got.WorstErrorMillis, got.Canary = "", 0, results.Canary{}
	if got != want || between.WorstErrorMillis != 0.05 || between.CanarySent != 4*60 || between.CanaryLost != 4*2 {
		t.Errorf("east and west are %+v, want %+v, off by 0.05 ms, without the canaries of the replica that was killed", between, want)
	}
}

func (p *play) names() []string {
	l := p.layout()
	return append(l.ServerPods(), l.ClientPods()...)
}

func TestWhyNetworksEndTrials(t *testing.T) {
	// In the cases, r[0] and r[1] are in the east; r[2] and the clients are in the west.
	tests := map[string]struct {
		change  func(*v1alpha1.ExperimentSpec)
		network func(t *testing.T, r []string, pod string, n *protocol.NetworkReport)
		reason  string
		says    []string
	}{
		"an agent that never measures": {
			network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) { n.Baseline = pod != r[1] },
			reason:  v1alpha1.ReasonDeadlineExceeded, says: []string{"r1", "measure the paths"},
		},
		"an agent that never proves": {
			network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				n.Proven = n.Proven && pod != r[1]
			},
			reason: v1alpha1.ReasonDeadlineExceeded, says: []string{"r1", "the proof"},
		},
		"an agent that finds a pair wrong": {
			network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				if n.Proven && pod == r[0] {
					n.Proven, n.Wrong = false, []string{r[0] + " -> " + r[2] + ": asked 20ms, measured 22ms"}
				}
			},
			reason: v1alpha1.ReasonNetworkWrong, says: []string{"r0", "r2", "asked 20ms, measured 22ms"},
		},
		"a delay 2 ms off, seen by the other end alone": {
			network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				if n.Proven && pod == r[2] {
					link(t, n, r[0]).InDelay += 2 * time.Millisecond
				}
			},
			reason: v1alpha1.ReasonNetworkWrong, says: []string{"r0 -> r2", "asked 20ms one way, measured 22.1ms"},
		},
		"a delay 2 ms off, where clocks differ": {
			network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				for i := range n.Links {
					n.Links[i].OutDelay, n.Links[i].InDelay = 0, 0
				}
				if n.Proven && pod == r[0] {
					link(t, n, r[2]).RTT += 2 * time.Millisecond
				}
			},
			reason: v1alpha1.ReasonNetworkWrong, says: []string{"r0 <-> r2", "asked 50ms for the round trip, measured 52.25ms"},
		},
		"no delay at all": {
			network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				if n.Proven && pod == r[0] {
					*link(t, n, r[2]) = protocol.LinkReport{Peer: r[2], BaselineRTT: undelayed, RTT: undelayed}
				}
			},
			reason: v1alpha1.ReasonNetworkWrong, says: []string{"r0 <-> r2", "measured 200µs"},
		},
		"swapped directions": {
			network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				if n.Proven && pod == r[0] {
					l := link(t, n, r[2])
					l.OutDelay, l.InDelay = l.InDelay, l.OutDelay
				}
			},
			reason: v1alpha1.ReasonNetworkWrong, says: []string{"r0 -> r2", "the directions are swapped: asked 20ms there and 30ms back, measured 30.1ms there and 20.1ms back"},
		},
		"a pair that was not measured": {
			network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				if pod == r[0] {
					n.Links = nil
				}
			},
			reason: v1alpha1.ReasonNetworkWrong, says: []string{"r0 has not measured its links with r1"},
		},
		"a backend that one pod refuses, though the spec asks for it": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Network.Backend = v1alpha1.ShapingEDT },
			network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				if pod == r[1] {
					n.Backends, n.Refused = []shaping.Backend{shaping.NFQueue}, map[shaping.Backend]string{shaping.EDT: "no fq qdisc in this kernel"}
				}
			},
			reason: v1alpha1.ReasonNoShapingBackend, says: []string{"EDT", "spec.network.backend", "r1: no fq qdisc in this kernel"},
		},
		"pods that have no backend in common": {
			network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				n.Backends, n.Refused = []shaping.Backend{shaping.EDT}, map[shaping.Backend]string{shaping.Netem: "no netem", shaping.NFQueue: "no queue"}
				if pod == r[1] {
					n.Backends, n.Refused = []shaping.Backend{shaping.Netem, shaping.NFQueue}, map[shaping.Backend]string{shaping.EDT: "no fq"}
				}
			},
			reason: v1alpha1.ReasonNoShapingBackend, says: []string{"EDT is refused by r1: no fq", "Netem is refused by r0", "no netem", "NFQueue", "no queue"},
		},
		"links that are lost again before the start": {
			network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
				if pod == r[2] && n.Proven {
					n.Lost = "a filter was removed"
				}
			},
			reason: v1alpha1.ReasonNetworkLost, says: []string{"r2", "a filter was removed"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
				twoRegions(s)
				if tc.change != nil {
					tc.change(s)
				}
			})
			p.deployed()
			r := p.layout().ServerPods()
			p.agents.network = func(pod string, n *protocol.NetworkReport) { tc.network(t, r, pod, n) }
			p.settle(true)
			p.clock.Step(5 * time.Minute) // longer than all deadlines here
			p.settle(true)
			p.wantEnd(v1alpha1.ReasonFailed, tc.reason)
			message := p.condition(v1alpha1.TrialValid).Message
			for _, want := range tc.says {
				for i := range r {
					want = strings.ReplaceAll(want, fmt.Sprintf("r%d", i), r[i])
				}
				if !strings.Contains(message, want) {
					t.Errorf("the message is %q, want it to say %q", message, want)
				}
			}
		})
	}
}

// A manager may take over after the backend was chosen and before it was proved. It keeps that
// backend, even if it would choose another.
func TestATakeOverKeepsTheBackend(t *testing.T) {
	p := newPlayOf(t, nil, twoRegions)
	p.deployed()
	p.agents.network = func(_ string, n *protocol.NetworkReport) { n.Proven = false }
	p.settle(true)
	if c := p.condition(v1alpha1.TrialNetworkVerified); c.Reason != v1alpha1.ReasonVerifyingNetwork || p.trial().Status.Network.Backend != v1alpha1.ShapingEDT {
		t.Fatalf("NetworkVerified is %s: %s", c.Reason, c.Message)
	}
	before, reports := p.agents.directives, p.agents.reports
	p.agents = newAgents(p.clock)
	p.newReconciler()
	p.settle(false)
	p.agents.reports = reports
	for _, rep := range reports {
		rep.Network.Backends = []shaping.Backend{shaping.NFQueue}
	}
	p.settle(false)
	for name, d := range p.agents.directives {
		if d.Network == nil || d.Network.Backend != shaping.EDT || !d.Network.Shape || !bytes.Equal(d.Network.ProbeKey, before[name].Network.ProbeKey) {
			t.Errorf("%s is told %+v by the new manager, want the same as by the old one", name, d.Network)
		}
	}
	p.settle(true)
	if p.trial().Status.ZeroUnixNanos == 0 {
		t.Fatalf("the run was not released: %s", p.conditions())
	}
}

// The paths of a trial without a network are also measured, but it needs no backend.
func TestATrialWithoutANetworkNeedsNoBackend(t *testing.T) {
	p := newPlay(t, nil)
	p.deployed()
	p.agents.network = func(_ string, n *protocol.NetworkReport) {
		n.Tried, n.Backends = false, nil
		for i := range n.Links { // paths may have any length, and a greater one on a busy machine
			n.Links[i].OutDelay, n.Links[i].RTT = 5*time.Millisecond, 7*time.Millisecond
		}
	}
	p.settle(true)
	if n := p.trial().Status.Network; n == nil || n.Backend != "" || p.trial().Status.ZeroUnixNanos == 0 {
		t.Fatalf("the network is %+v: %s", n, p.conditions())
	}
}

func TestWhatNetworksDoToResults(t *testing.T) {
	tests := map[string]struct {
		change  func(*v1alpha1.ExperimentSpec)
		network func(t *testing.T, r []string, pod string, n *protocol.NetworkReport)
		reason  string
	}{
		"nothing": {reason: v1alpha1.ReasonSucceeded, network: func(*testing.T, []string, string, *protocol.NetworkReport) {}},
		"a rule that is gone": {reason: v1alpha1.ReasonNetworkLost, network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				n.Lost = "the map is empty"
			}
		}},
		"packets that were dropped": {reason: v1alpha1.ReasonPacketsLost, network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				n.Dropped, n.DroppedWhy = 3, "fq: flows_plimit"
			}
		}},
		"a shaper that was late": {reason: v1alpha1.ReasonNetworkLate, network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				n.LateP99 = 11 * time.Millisecond
			}
		}},
		"no word at the end": {reason: v1alpha1.ReasonNetworkNotConfirmed, network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			n.Proven = pod != r[0]
		}},
		"no undelayed path at the end": {reason: v1alpha1.ReasonNetworkNotConfirmed, network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				link(t, n, r[1]).BaselineRTT = 0
			}
		}},
		"a window of which no probe tells": {reason: v1alpha1.ReasonNetworkNotConfirmed, network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				link(t, n, r[1]).CanarySent = 0
			}
		}},
		"a window too short for a probe to tell": {
			change: func(s *v1alpha1.ExperimentSpec) {
				s.Network.Links = []v1alpha1.RegionLink{{Between: []string{"east", "west"}, RTT: lasting("18s")}}
			},
			reason: v1alpha1.ReasonSucceeded, network: unprobed,
		},
		"a window in which the pod's own agent acts": {
			change: func(s *v1alpha1.ExperimentSpec) {
				s.Faults = append(s.Faults, v1alpha1.Fault{Name: "stop", At: "0s", For: lasting("20s"), EveryPoint: true, Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Replicas: []int32{0}}}})
			},
			reason: v1alpha1.ReasonSucceeded, network: unprobed,
		},
		"probes that were not reported in the end": {reason: v1alpha1.ReasonNetworkNotConfirmed, network: func(_ *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			n.Watched = pod != r[0]
		}},
		"canaries that are slow": {reason: v1alpha1.ReasonNetworkLate, network: slow},
		"canaries that are slow where nothing is shaped": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Network = v1alpha1.Network{Profile: "lan"} },
			reason: v1alpha1.ReasonSucceeded, network: slow,
		},
		"canaries that are slow where a fault is": {
			change: func(s *v1alpha1.ExperimentSpec) {
				s.Faults = append(s.Faults, v1alpha1.Fault{Name: "slow", At: "2s", For: lasting("1s"), EveryPoint: true, Degrade: &v1alpha1.Degrade{
					From: &v1alpha1.Target{Replicas: []int32{0}}, To: &v1alpha1.Target{Replicas: []int32{1}}, LinkEffect: v1alpha1.LinkEffect{Delay: lasting("9ms")},
				}})
			},
			reason: v1alpha1.ReasonSucceeded, network: slow,
		},
		"a canary that is too quick, even where a fault is": {reason: v1alpha1.ReasonNetworkLost, network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				l := link(t, n, r[2]) // the fault kills this replica
				l.CanarySent, l.CanaryMin, l.CanaryMedian = 10, time.Millisecond, l.RTT
			}
		}},
		"canaries that are lost": {reason: v1alpha1.ReasonPacketsLost, network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				l := link(t, n, r[1])
				l.CanarySent, l.CanaryLost, l.CanaryMin, l.CanaryMedian = 30, 3, l.RTT, l.RTT
			}
		}},
		"canaries of the dead": {reason: v1alpha1.ReasonSucceeded, network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				l := link(t, n, r[2])
				l.CanarySent, l.CanaryLost = 30, 30
			}
		}},
		"two canaries that are lost": {reason: v1alpha1.ReasonSucceeded, network: func(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
			if pod == r[0] {
				l := link(t, n, r[1])
				l.CanarySent, l.CanaryLost, l.CanaryMin, l.CanaryMedian = 10, 2, l.RTT, l.RTT
			}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
				twoRegions(s)
				if tc.change != nil {
					tc.change(s)
				}
			})
			p.released()
			r := p.layout().ServerPods()
			p.measured(10, 0)
			for pod, rep := range p.agents.reports {
				tc.network(t, r, pod, rep.Network)
			}
			p.settle(false)
			for range 2 { // the manager waits for an agent that has not reported everything
				p.clock.Step(time.Minute)
				p.settle(false)
			}
			outcome := v1alpha1.ReasonInvalid
			if tc.reason == v1alpha1.ReasonSucceeded {
				outcome = tc.reason
			}
			p.wantEnd(outcome, tc.reason)
		})
	}
}

// unprobed makes the first replica report no probes that count.
func unprobed(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
	if pod == r[0] {
		for i := range n.Links {
			n.Links[i].CanarySent = 0
		}
	}
}

// slow makes the probes between the first two replicas slow.
func slow(t *testing.T, r []string, pod string, n *protocol.NetworkReport) {
	if pod == r[0] {
		l := link(t, n, r[1])
		l.CanarySent, l.CanaryMin, l.CanaryMedian, l.CanaryMax = 20, l.RTT, l.RTT+3*time.Millisecond, l.RTT+5*time.Millisecond
	}
}

// A partition may have lasted for the rest of the run if its end was not confirmed.
func TestAPartitionThatIsNotHealed(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
		s.Faults = []v1alpha1.Fault{{Name: "split", At: "2s", For: lasting("3s"), EveryPoint: true, Partition: &v1alpha1.Partition{
			Groups: []v1alpha1.Target{{Replicas: []int32{0, 1}}, {Replicas: []int32{2}}}, Clients: "FirstGroup",
		}}}
	})
	p.released()
	l := p.layout()
	first := p.agents.reports[l.Servers[0].Name]
	if len(first.Actions) != 2 || len(p.agents.directives[l.Clients[0].Name].Run.Actions) != 2 {
		t.Fatalf("the first replica did %+v, and the clients %+v: want a cut and a heal each", first.Actions, p.agents.directives[l.Clients[0].Name].Run.Actions)
	}
	first.Actions = first.Actions[:1]
	first.Actions[0].Packets = 7
	p.measured(10, 0)
	p.settle(false)
	p.clock.Step(engine.ResultsGrace)
	p.settle(false)
	p.clock.Step(time.Minute)
	p.settle(false)
	got := p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonFaultNotEnded)
	for _, f := range got.Faults {
		if f.Pod == l.Servers[0].Name && f.Kind == "Cut" && (f.Peers != 1 || f.Packets != 7) {
			t.Errorf("the cut is recorded as %+v, want one peer and 7 packets", f)
		}
	}
}

// If receivers delay packets, the receiver makes a link worse.
func TestTheBackendsSideActs(t *testing.T) {
	for backend, want := range map[shaping.Backend][2]int{shaping.EDT: {1, 0}, shaping.NFQueue: {0, 1}} {
		t.Run(string(backend), func(t *testing.T) {
			p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
				s.Faults = []v1alpha1.Fault{{Name: "slow", At: "2s", EveryPoint: true, Degrade: &v1alpha1.Degrade{
					From: &v1alpha1.Target{Replicas: []int32{0}}, To: &v1alpha1.Target{Replicas: []int32{1}}, LinkEffect: v1alpha1.LinkEffect{Delay: lasting("9ms")},
				}}}
			})
			p.deployed()
			p.agents.network = func(_ string, n *protocol.NetworkReport) { n.Backends = []shaping.Backend{backend} }
			p.settle(true)
			for i, n := range want {
				d := p.agents.directives[p.layout().Servers[i].Name]
				if d.Run == nil || len(d.Run.Actions) != n || n == 1 && len(d.Run.Actions[0].Links) != 1 {
					t.Errorf("replica %d is told %+v, want %d action", i, d.Run, n)
				}
			}
			p.measured(10, 0)
			p.settle(true)
			if got := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded); len(got.Faults) != 1 || got.Network.Backend != string(backend) {
				t.Errorf("the records are %+v", got.Faults)
			}
		})
	}
}

// Reports from before the end of the window do not vouch for a shaped network.
func TestAShapedTrialIsNotJudgedByOldReports(t *testing.T) {
	p := newPlayOf(t, nil, twoRegions)
	p.released()
	p.measured(10, 0)
	old := p.trial().Status.Times.Released.Time
	p.r.Coordinator = &stale{agents: p.agents, pod: p.layout().Servers[0].Name, at: old}
	p.settle(false)
	if c := p.condition(v1alpha1.TrialCollected); !strings.Contains(c.Message, p.layout().Servers[0].Name) {
		t.Fatalf("collected is %s: %s; want that it waits for the first replica's agent", c.Status, c.Message)
	}
	p.r.Coordinator = p.agents
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
}

// stale replaces one pod's report with an old one.
type stale struct {
	*agents
	pod string
	at  time.Time
}

func (s *stale) Report(_ types.NamespacedName, pod string) (*protocol.Report, time.Time) {
	rep, at := s.agents.Report(types.NamespacedName{}, pod)
	if pod == s.pod {
		at = s.at
	}
	return rep, at
}
