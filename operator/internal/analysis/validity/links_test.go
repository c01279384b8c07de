package validity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

const undelayed = 200 * time.Microsecond

// linked is a running trial whose replicas have 10 ms between them in each direction, as asked.
func linked() *Observation {
	o := running()
	shaped(o)
	o.Trial.Spec.Tolerances.LinkDelay, o.Trial.Spec.Tolerances.LinkLateness = "1ms", "2ms"
	delay := 10 * time.Millisecond
	said := func(peer string) *protocol.LinkReport {
		rtt := 2*delay + undelayed
		return &protocol.LinkReport{
			Peer: peer, BaselineRTT: undelayed, RTT: rtt, OutDelay: delay + undelayed/2, InDelay: delay + undelayed/2,
			CanarySent: 20, CanaryMin: rtt, CanaryMedian: rtt, CanaryMax: rtt,
		}
	}
	o.Pods[0].Region, o.Pods[1].Region = "east", "west"
	o.Pairs = []Pair{{
		A: "r-0", B: "r-1", RegionA: "east", RegionB: "west", Out: shaping.Link{Delay: delay}, In: shaping.Link{Delay: delay}, ByA: said("r-1"), ByB: said("r-0"),
	}}
	return o
}

func TestLinksOfARun(t *testing.T) {
	tests := map[string]struct {
		change  func(o *Observation, p *Pair)
		reason  string
		message string
	}{
		"as asked":                          {change: func(*Observation, *Pair) {}},
		"nothing shaped, canaries are late": {change: func(o *Observation, p *Pair) { o.Trial.Status.Network.Backend = ""; p.ByA.CanaryMedian = time.Second }},
		"an agent without a word": {
			change: func(o *Observation, _ *Pair) { o.Pods[0].Report.Network = nil },
			reason: v1alpha1.ReasonNetworkNotConfirmed, message: "agent of r-0 did not confirm",
		},
		"an agent that did not live on, as planned": {change: func(o *Observation, _ *Pair) { o.Pods[0].Report.Network, o.Pods[0].AgentInterrupted = nil, true }},
		"links that were lost": {
			change: func(o *Observation, _ *Pair) { o.Pods[0].Report.Network.Lost = "the qdisc is gone" },
			reason: v1alpha1.ReasonNetworkLost, message: "The links of r-0 were not as asked any more",
		},
		"packets that were dropped": {
			change: func(o *Observation, _ *Pair) {
				o.Pods[1].Report.Network.Dropped, o.Pods[1].Report.Network.DroppedWhy = 3, "queue"
			},
			reason: v1alpha1.ReasonPacketsLost, message: "3 packets of r-1 were dropped that nothing asked for: queue",
		},
		"packets that were released late": {
			change: func(o *Observation, _ *Pair) { o.Pods[1].Report.Network.LateP99 = 3 * time.Millisecond },
			reason: v1alpha1.ReasonNetworkLate, message: "3ms late at the 99th percentile; tolerances.linkLateness is 2ms",
		},
		"probes that were not watched": {
			change: func(o *Observation, _ *Pair) { o.Pods[1].Report.Network.Watched = false },
			reason: v1alpha1.ReasonNetworkNotConfirmed, message: "what its probes had seen",
		},
		"a pair that one end has not measured": {
			change: func(_ *Observation, p *Pair) { p.ByB = nil },
			reason: v1alpha1.ReasonNetworkNotConfirmed, message: "The agent of r-1 did not say at the end what it had measured of its links with r-0",
		},
		"no probe in a long window": {
			change: func(_ *Observation, p *Pair) { p.ByA.CanarySent = 0 },
			reason: v1alpha1.ReasonNetworkNotConfirmed, message: "no probe of r-0 was counted",
		},
		"no probe in a short window": {change: func(o *Observation, p *Pair) { o.Trial.Spec.Schedule.Measure = "1s"; p.ByA.CanarySent = 0 }},
		"no probe, but a fault of the pod's own agent": {change: func(o *Observation, p *Pair) {
			p.ByA.CanarySent = 0
			o.Actions = []timeline.Action{{ID: "x", Pod: "r-0", Kind: timeline.Pause}}
		}},
		"a probe that was too quick": {
			change: func(_ *Observation, p *Pair) { p.ByB.CanaryMin = 19 * time.Millisecond },
			reason: v1alpha1.ReasonNetworkLost, message: "a probe was too quick. r-1 <-> r-0: asked 20ms for the round trip, measured 19ms",
		},
		"no probe that was answered": {
			change: func(_ *Observation, p *Pair) {
				p.ByA.CanarySent, p.ByA.CanaryLost, p.ByA.CanaryMin, p.ByA.CanaryMedian = 20, 20, 0, 0
			},
			reason: v1alpha1.ReasonPacketsLost, message: "r-0 <-> r-1: 20 of 20 probes were lost",
		},
		"jitter allows it": {change: func(_ *Observation, p *Pair) {
			p.In.Jitter = 2 * time.Millisecond
			p.ByB.CanaryMin = 19 * time.Millisecond
		}},
		"probes that were slow": {
			change: func(_ *Observation, p *Pair) { p.ByA.CanaryMedian = 22 * time.Millisecond },
			reason: v1alpha1.ReasonNetworkLate, message: "the median of the probes was too slow. r-0 <-> r-1",
		},
		"probes that were slow since a link has a rate": {change: func(_ *Observation, p *Pair) {
			p.Out.Rate = 1000
			p.ByA.CanaryMedian, p.ByA.CanaryLost = 22*time.Millisecond, 15
		}},
		"probes that were slow since a fault was there": {change: func(o *Observation, p *Pair) {
			p.ByA.CanaryMedian, p.ByA.CanaryLost = time.Second, 20
			o.Actions = []timeline.Action{{ID: "x", Pod: "r-1", Kind: timeline.Kill}}
		}},
		"probes that were lost": {
			change: func(_ *Observation, p *Pair) { p.ByA.CanaryLost = 3 },
			reason: v1alpha1.ReasonPacketsLost, message: "3 of 20 probes were lost while the trial ran; at most 5% may be",
		},
		"two probes that were lost":                     {change: func(_ *Observation, p *Pair) { p.ByA.CanaryLost = 2 }},
		"probes that were to be lost":                   {change: func(_ *Observation, p *Pair) { p.Out.Loss, p.ByA.CanaryLost = 0.5, 10 }},
		"probes that were to be lost on their way back": {change: func(_ *Observation, p *Pair) { p.In.Loss, p.ByA.CanaryLost = 0.5, 10 }},
		"more than both ways may lose": {
			change: func(_ *Observation, p *Pair) { p.Out.Loss, p.In.Loss, p.ByA.CanaryLost = 0.2, 0.2, 9 },
			reason: v1alpha1.ReasonPacketsLost, message: "9 of 20 probes were lost while the trial ran; at most 41% may be",
		},
		"a link that is cut": {change: func(_ *Observation, p *Pair) { p.Out.Loss, p.ByA.CanaryLost, p.ByB.CanaryLost = 1, 20, 20 }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := linked()
			tc.change(o, &o.Pairs[0])
			if f := links(o); f.Reason != tc.reason || !strings.Contains(f.Message, tc.message) {
				t.Errorf("%q: %q; want %q: %q", f.Reason, f.Message, tc.reason, tc.message)
			}
		})
	}
}

func TestCheckLinks(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(p *Pair)
		want   string
	}{
		"as asked":                  {change: func(*Pair) {}},
		"not measured":              {change: func(p *Pair) { p.ByB = nil }, want: "r-1 has not measured its links with r-0"},
		"no undelayed path":         {change: func(p *Pair) { p.ByA.BaselineRTT = 0 }, want: "r-0 has not measured the undelayed path to r-1"},
		"no answer":                 {change: func(p *Pair) { p.ByA.RTT = 0 }, want: "r-0 <-> r-1: no probe was answered"},
		"cut":                       {change: func(p *Pair) { p.In.Loss, p.ByA.RTT, p.ByB.RTT = 1, 0, 0 }},
		"cut, but answered":         {change: func(p *Pair) { p.In.Loss = 1 }, want: "every packet was asked to be lost one way, but probes were answered"},
		"late one way":              {change: func(p *Pair) { p.ByA.OutDelay = 12 * time.Millisecond }, want: "r-0 -> r-1: asked 10ms one way, measured 12ms"},
		"early one way":             {change: func(p *Pair) { p.ByA.InDelay = 9 * time.Millisecond }, want: "r-1 -> r-0: asked 10ms one way, measured 9ms"},
		"early within the jitter":   {change: func(p *Pair) { p.In.Jitter, p.ByA.InDelay = 2*time.Millisecond, 9*time.Millisecond }},
		"jitter is told":            {change: func(p *Pair) { p.In.Jitter, p.ByA.InDelay = time.Millisecond, 8*time.Millisecond }, want: "asked 10ms±1ms one way"},
		"late, and no way is known": {change: func(p *Pair) { p.ByA.OutDelay, p.ByA.InDelay, p.ByA.RTT = 0, 0, 25*time.Millisecond }, want: "asked 20ms for the round trip, measured 25ms"},
		"the directions are swapped": {
			change: func(p *Pair) {
				p.Out.Delay, p.In.Delay = 5*time.Millisecond, 15*time.Millisecond
				p.ByA.OutDelay, p.ByA.InDelay = 15*time.Millisecond, 5*time.Millisecond
				p.ByB.OutDelay, p.ByB.InDelay = 5*time.Millisecond, 15*time.Millisecond
			},
			want: "the directions are swapped: asked 5ms there and 15ms back, measured 15ms there and 5ms back",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := linked()
			tc.change(&o.Pairs[0])
			wrong := CheckLinks(o.Pairs, time.Millisecond)
			if got := strings.Join(wrong, "; "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("wrong is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPartitionsThatProbesPassed(t *testing.T) {
	at := func(d time.Duration) *time.Duration { return &d }
	for name, tc := range map[string]struct {
		i    Injection
		want int
	}{
		"five seconds":                   {Injection{Confirmed: at(2 * time.Second), Ended: at(7 * time.Second)}, 3},
		"of which one before the window": {Injection{Confirmed: at(-time.Second), Ended: at(4 * time.Second)}, 2},
		"beyond the window":              {Injection{Confirmed: at(17 * time.Second), Ended: at(30 * time.Second)}, 1},
		"not confirmed":                  {Injection{Ended: at(time.Second)}, 0},
		"not ended":                      {Injection{Confirmed: at(time.Second)}, 0},
		"too short":                      {Injection{Confirmed: at(time.Second), Ended: at(2 * time.Second)}, 0},
	} {
		if got := probesInto(&tc.i, 20*time.Second); got != tc.want {
			t.Errorf("%s: %d probes, want %d", name, got, tc.want)
		}
	}
}

func TestLinksInResults(t *testing.T) {
	o := linked()
	p := &o.Pairs[0]
	p.ByB.RTT += 3 * time.Millisecond // the results have the worse end
	p.ByA.Undirected, p.ByB.Undirected = true, true
	o.Pods[0].Report.Network.ApplyTook, o.Pods[1].Report.Network.Rounds = 20*time.Millisecond, 2
	o.Pairs = append(o.Pairs, Pair{A: "r-1", B: "r-0", RegionA: "west", RegionB: "east"}) // of the same regions, without any measurement
	n := o.Describe().Network
	if n == nil || n.Pairs != 2 || len(n.Links) != 2 || n.Undirected != 1 || n.ApplyMillis != 20 || n.Rounds != 2 || n.WorstPair != "r-0 <-> r-1" || n.WorstErrorMillis != 3 {
		t.Fatalf("the network is %+v", n)
	}
	if l := n.Links[0]; l.MeasuredMillis != 23.2 || l.ExpectedMillis != 20.2 || l.OutMillis != 10.1 || l.InMillis != 10.1 || l.CanarySent != 40 {
		t.Errorf("the link is %+v", l)
	}
	if len(n.Regions) != 1 || n.Regions[0].Pairs != 2 || n.Regions[0].From != "east" || n.Regions[0].WorstErrorMillis != 3 {
		t.Errorf("the regions are %+v", n.Regions)
	}
	p.ByA.RTT -= 7 * time.Millisecond // too early is worse than the 3 ms too late of the other end
	n = o.Describe().Network
	if n.WorstErrorMillis != -7 || n.Regions[0].WorstErrorMillis != -7 || n.Links[0].MeasuredMillis != 13.2 {
		t.Errorf("the network with a link that is too short is %+v", n)
	}
	o.Pairs = nil
	if n := o.Describe().Network; n != nil {
		t.Errorf("without links the network is %+v", n)
	}
}

func TestPairsOfPods(t *testing.T) {
	o := linked()
	o.Pods[0].Report.Network.Links = []protocol.LinkReport{{Peer: "r-1", RTT: time.Second}}
	o.Pods[1].Report = nil
	delay := shaping.Link{Delay: time.Millisecond}
	pairs := PairsOf(o.Pods[:3], func(string) *protocol.Network {
		return &protocol.Network{Peers: []protocol.NetworkPeer{{Name: "r-1", Out: delay}, {Name: "c-0", In: delay}}}
	})
	if len(pairs) != 3 || pairs[0].ByA == nil || pairs[0].ByA.RTT != time.Second || pairs[0].ByB != nil || pairs[0].Out != delay || pairs[1].In != delay {
		t.Errorf("the pairs are %+v", pairs)
	}
	if d := LongestRoundTrip(pairs); d != time.Millisecond {
		t.Errorf("the longest round trip is %v", d)
	}
}

// Once, each pod had two maps of all others, which were made anew whenever links were judged.
func TestPairsTakeNoAllocationForEachPod(t *testing.T) {
	allocations := func(n int) float64 {
		pods, network := make([]Pod, n), &protocol.Network{}
		for i := range pods {
			pods[i] = Pod{Name: fmt.Sprintf("r-%d", i), Report: &protocol.Report{Network: &protocol.NetworkReport{}}}
			network.Peers = append(network.Peers, protocol.NetworkPeer{Name: pods[i].Name})
		}
		for i := range pods {
			for j := range pods {
				pods[i].Report.Network.Links = append(pods[i].Report.Network.Links, protocol.LinkReport{Peer: pods[j].Name})
			}
		}
		return testing.AllocsPerRun(5, func() { PairsOf(pods, func(string) *protocol.Network { return network }) })
	}
	if few, many := allocations(10), allocations(200); many > few+40 { // the one map of names grows
		t.Errorf("the pairs of 10 pods take %.0f allocations, those of 200 take %.0f", few, many)
	}
}

func TestWhatFaultsTouch(t *testing.T) {
	o := linked()
	o.Actions = []timeline.Action{
		{ID: "k", Pod: "r-0", Kind: timeline.Kill}, {ID: "s", Pod: "c-0", Kind: timeline.Kill},
		{ID: "c", Pod: "r-1", Kind: timeline.Cut, Out: []string{"c-1"}, In: []string{"c-2"}},
		{ID: "d", Pod: "r-2", Kind: timeline.Degrade, Links: []timeline.LinkChange{{Peer: "r-3"}}},
	}
	o.Records = map[string]protocol.ActionRecord{"s": {Skipped: true}}
	f := o.Faulted()
	for pair, want := range map[[2]string]bool{
		{"r-0", "x"}: true, {"x", "r-0"}: true, {"c-0", "x"}: false, {"r-1", "c-1"}: true, {"c-2", "r-1"}: true, {"r-1", "x"}: false, {"r-3", "r-2"}: true,
	} {
		if got := f.Pair(pair[0], pair[1]); got != want {
			t.Errorf("%v is touched: %t, want %t", pair, got, want)
		}
	}
	if got := AgentActions([]timeline.Action{{ID: "r", Pod: "p", Kind: timeline.Reset}, {ID: "i", Pod: "p", Kind: timeline.Inject}}, "p"); len(got) != 0 {
		t.Errorf("an agent carries out %v", got)
	}
}

func TestLiveFaultsAreTheFirstOfTheirPods(t *testing.T) {
	o := running()
	o.Actions = []timeline.Action{
		{ID: "a", Fault: "f", Time: 1, Pod: "r-0", Kind: timeline.Kill}, {ID: "b", Fault: "f", Time: 1, Pod: "r-1", Kind: timeline.Kill},
		{ID: "c", Fault: "g", Time: 1, Pod: "r-1", Kind: timeline.Reset}, {ID: "d", Fault: "g", Time: 2, Pod: "r-1", Kind: timeline.Reset},
		{ID: "e", Fault: "h", Time: 1, Pod: "r-1", Kind: timeline.Kill},
	}
	o.Records = map[string]protocol.ActionRecord{
		"a": {Confirmed: 3 * time.Second}, "b": {Confirmed: 2 * time.Second}, "c": {Started: time.Second, Confirmed: 9 * time.Second}, "d": {Error: "no"}, "e": {Skipped: true},
	}
	got := o.LiveFaults()
	if len(got) != 2 || got[0].Fault != "f" || got[0].Millis != 2000 || got[1].Fault != "g" || got[1].Millis != 1000 {
		t.Errorf("the faults are %+v", got)
	}
}

func TestFaultsInResults(t *testing.T) {
	o := running()
	o.Actions = []timeline.Action{
		{ID: "k", Fault: "f", Pod: "r-0", Kind: timeline.Kill, At: time.Second, WithoutSilence: true, Out: []string{"a", "b"}, Peers: []string{"b"}, Links: []timeline.LinkChange{{Peer: "c"}}},
		{ID: "i", Fault: "g", Pod: "r-1", Kind: timeline.Inject, Object: "PodChaos"}, {ID: "h", Fault: "h", Pod: "r-1", Kind: timeline.Heal, Role: "leader"},
	}
	o.Records = map[string]protocol.ActionRecord{"k": {Started: time.Second, Confirmed: 1001 * time.Millisecond, Packets: 5}}
	faults := o.Describe().Faults
	if len(faults) != 3 || faults[0].Peers != 3 || !faults[0].WithoutSilence || faults[0].ConfirmedMillis != 1001 || faults[0].Packets != 5 ||
		faults[1].Error != "no manager has seen it" || faults[2].Error != "the agent has not reported it" {
		t.Errorf("the faults are %+v", faults)
	}
	for i, want := range []string{
		"Trial t, fault f: Kill of r-0, planned for 1.000 s, begun at 1.000 s, confirmed at 1.001 s, without silence. Times are relative to t = 0.",
		"Trial t, fault g: Inject (PodChaos) of r-1, planned for 0.000 s, is not known to have happened: no manager has seen it.",
		"Trial t, fault h: Heal of r-1, which had the role leader, planned for 0.000 s, is not known to have happened: the agent has not reported it.",
	} {
		if done, note := Note("t", o.Actions[i], o.record(o.Actions[i])); note != want || done != (i == 0) {
			t.Errorf("the note is %q (done: %t), want %q", note, done, want)
		}
	}
	if done, note := Note("t", timeline.Action{Pod: "r-0", Kind: timeline.Reset}, &protocol.ActionRecord{Error: "no power"}); done || !strings.Contains(note, "the machine of r-0, planned for 0.000 s, failed: no power") {
		t.Errorf("the note is %q (done: %t)", note, done)
	}
}

func TestHeadline(t *testing.T) {
	share := 0.25
	value := 1.5
	h := Headline(&results.Trial{
		Summary:      results.Summary{Counters: results.Counters{Committed: 7}, Throughput: 1.5, MeanMillis: 2, Percentiles: map[string]float64{"b": 2, "a": 1}, OfAll: &results.Percentiles{P99Millis: 3}},
		Pods:         []results.Pod{{}, {Resources: &results.Resources{ThrottledShare: 0.5}}, {Resources: &results.Resources{ThrottledShare: 0.1, Node: results.NodeUse{StealShare: 0.2}}}},
		Machines:     []results.MachineUse{{}, {ContendedShare: &share}},
		Recovery:     []results.Recovery{{Error: "x"}, {}, {Dipped: true}, {Dipped: true, Recovered: true}},
		Measurements: []results.Measurement{{Name: "m", Value: &value}, {Name: "n", Reason: "none"}},
	})
	if h.Committed != 7 || h.ThroughputMilli != 1500 || h.MeanLatencyMicroseconds != 2000 || h.OfAll.P99Microseconds != 3000 || *h.ThrottledPerMillion != 500000 ||
		*h.StealPerMillion != 200000 || *h.ContendedPerMillion != 250000 {
		t.Errorf("the headline is %+v", h)
	}
	if len(h.Percentiles) != 2 || h.Percentiles[0].Name != "a" || len(h.Measurements) != 2 || h.Measurements[0].Value != "1.5" || h.Measurements[1].Reason != "none" {
		t.Errorf("the numbers are %+v, %+v", h.Percentiles, h.Measurements)
	}
	for i, want := range []v1alpha1.RecoveryOutcome{v1alpha1.RecoveryUnknown, v1alpha1.RecoveryNoDip, v1alpha1.RecoveryNotRecovered, v1alpha1.RecoveryRecovered} {
		if got := h.Recoveries[i].Outcome; got != want {
			t.Errorf("recovery %d is %s, want %s", i, got, want)
		}
	}
	if got := MeanText(results.Summary{RunSummary: true}); got != "" {
		t.Errorf("a mean that is not known is %q", got)
	}
	if got := MeanText(results.Summary{MeanMillis: 2}); got != ", mean latency 2.000 ms" {
		t.Errorf("the mean is %q", got)
	}
}

func TestTheMostContendedMachineIsInTheHeadline(t *testing.T) {
	for _, shares := range [][]float64{{0.1, 0.3}, {0.3, 0.1}, {0.1, 0.3, 0.2}} {
		var machines []results.MachineUse
		for i := range shares {
			machines = append(machines, results.MachineUse{ContendedShare: &shares[i]})
		}
		if got := worstContention(machines); got == nil || *got != 300_000 {
			t.Errorf("of %v the worst is %v, want 0.3", shares, got)
		}
	}
	if got := worstContention([]results.MachineUse{{}}); got != nil {
		t.Errorf("of a machine that was not measured the worst is %d, want none", *got)
	}
}

// A pair stands for its link, whichever pod it names first.
func TestLinksAreKnownInEitherOrder(t *testing.T) {
	o := eventful(t)
	for _, turn := range []string{"as measured", "turned"} {
		if missing := missingLinks(o); missing != "" {
			t.Errorf("%s: missing are %s", turn, missing)
		}
		for i := range o.Pairs {
			o.Pairs[i].A, o.Pairs[i].B = o.Pairs[i].B, o.Pairs[i].A
		}
	}
	o.Pairs = o.Pairs[1:]
	if missingLinks(o) == "" {
		t.Error("a pair that is not there is not missed")
	}
}
