package validity

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

const ms = time.Millisecond

// Three pods in two regions, with different numbers everywhere.
func TestNetworkOfResults(t *testing.T) {
	link := func(peer string, rtt time.Duration, n int) protocol.LinkReport {
		return protocol.LinkReport{
			Peer: peer, BaselineRTT: ms, RTT: rtt, OutDelay: time.Duration(n) * ms, InDelay: time.Duration(n+1) * ms,
			CanarySent: 10 * n, CanaryLost: n, CanaryMin: time.Duration(n) * ms, CanaryMedian: time.Duration(2*n) * ms, CanaryMax: time.Duration(3*n) * ms,
		}
	}
	pod := func(name, region string, rounds int, dropped uint64, of ...protocol.LinkReport) Pod {
		n := time.Duration(rounds) * ms
		return Pod{Name: name, Region: region, Report: &protocol.Report{Network: &protocol.NetworkReport{
			Links: of, ApplyTook: 2 * n, ProveTook: 3 * n, Rounds: rounds, Dropped: dropped, LateP99: 4 * n, Late: 5 * n,
		}}}
	}
	a, b, c := pod("a", "east", 1, 7, link("b", 23*ms, 1), link("c", 42*ms, 2)), pod("b", "west", 3, 5, link("a", 21*ms, 3), link("c", 0, 4)), pod("c", "east", 2, 0, link("a", 41*ms, 5), link("b", 60*ms, 6))
	asked := map[string]*protocol.Network{"a": {Peers: []protocol.NetworkPeer{
		{Name: "b", Out: shaping.Link{Delay: 15 * ms, Jitter: ms, Loss: 0.1, Rate: 9}, In: shaping.Link{Delay: 5 * ms}}, {Name: "c", Out: shaping.Link{Delay: 20 * ms}, In: shaping.Link{Delay: 20 * ms}},
	}}, "b": {Peers: []protocol.NetworkPeer{{Name: "gone"}, {Name: "c", Out: shaping.Link{Delay: 30 * ms}, In: shaping.Link{Delay: 26 * ms}}}}}
	o := &Observation{Trial: &v1alpha1.Trial{}, Pods: []Pod{a, b, c}}
	if o.network() != nil {
		t.Error("links that nothing measured have results")
	}
	o.Pairs = PairsOf(o.Pods, func(name string) *protocol.Network { return asked[name] })
	if o.network() != nil {
		t.Error("a network that was not chosen has results")
	}
	o.Trial.Status.Network = &v1alpha1.TrialNetwork{Backend: "EDT"}
	o.Pairs[2].ByB.Undirected, o.Pairs[2].ByA.Undirected, o.Pairs[0].ByA.Undirected = true, true, true
	o.Actions = []timeline.Action{{ID: "x", Kind: timeline.Kill, Pod: "c"}}
	canary := func(sent, lost int, least, median, most float64) results.Canary {
		return results.Canary{CanarySent: sent, CanaryLost: lost, CanaryMinMillis: least, CanaryMedianMillis: median, CanaryMaxMillis: most}
	}
	want := &results.Network{
		Backend: "EDT", ApplyMillis: 6, ProveMillis: 9, Rounds: 3, Dropped: 12, LateP99Millis: 12, LateMillis: 15, Pairs: 3, Undirected: 1, WorstPair: "b <-> c", WorstErrorMillis: 3,
		Links: []results.Link{
			{From: "a", To: "b", Out: results.LinkAsked{DelayMillis: 15, JitterMillis: 1, Loss: 0.1, RateBits: 9}, In: results.LinkAsked{DelayMillis: 5}, BaselineMillis: 1, ExpectedMillis: 21, MeasuredMillis: 23, OutMillis: 1, InMillis: 2, Canary: canary(40, 4, 1, 6, 9)},
			{From: "a", To: "c", Out: results.LinkAsked{DelayMillis: 20}, In: results.LinkAsked{DelayMillis: 20}, BaselineMillis: 1, ExpectedMillis: 41, MeasuredMillis: 42, OutMillis: 2, InMillis: 3, Canary: canary(70, 7, 2, 10, 15), Faulted: true},
			{From: "b", To: "c", Out: results.LinkAsked{DelayMillis: 30}, In: results.LinkAsked{DelayMillis: 26}, BaselineMillis: 1, ExpectedMillis: 57, MeasuredMillis: 60, OutMillis: 4, InMillis: 5, Canary: canary(100, 10, 4, 12, 18), Faulted: true, Undirected: true},
		},
		Regions: []results.RegionLinks{
			{From: "east", To: "west", Out: results.LinkAsked{DelayMillis: 15, JitterMillis: 1, Loss: 0.1, RateBits: 9}, In: results.LinkAsked{DelayMillis: 5}, Pairs: 2, Undirected: 1,
				ExpectedMinMillis: 21, ExpectedMaxMillis: 57, MeasuredMinMillis: 23, MeasuredMaxMillis: 60, WorstPair: "b <-> c", WorstErrorMillis: 3, Canary: canary(40, 4, 1, 6, 9)},
			{From: "east", To: "east", Out: results.LinkAsked{DelayMillis: 20}, In: results.LinkAsked{DelayMillis: 20}, Pairs: 1,
				ExpectedMinMillis: 41, ExpectedMaxMillis: 41, MeasuredMinMillis: 42, MeasuredMaxMillis: 42, WorstPair: "a <-> c", WorstErrorMillis: 1},
		},
	}
	if diff := cmp.Diff(want, o.network()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := o.LongestRoundTrip(); got != 56*ms {
		t.Errorf("the longest round trip that is asked is %v", got)
	}
	if got := LongestRoundTrip([]Pair{{Out: shaping.Link{Delay: 1, Jitter: 10}, In: shaping.Link{Delay: 100, Jitter: 1000}}}); got != 1111 {
		t.Errorf("with jitter it is %v", got)
	}
	// A pair that is cut, or that its first end has not measured.
	cut, first := o.Pairs[0], o.Pairs[0]
	cut.In.Loss, first.ByA = 1, nil
	if _, _, measured := cut.link(); measured {
		t.Error("a link that is cut was measured")
	}
	if l, off, measured := first.link(); l.OutMillis != 4 || l.InMillis != 3 || off != 0 || !measured {
		t.Errorf("as only the second end knows it, the link is %+v, off by %g, %t", l, off, measured)
	}
	if l, off, measured := (Pair{A: "a", B: "b"}).link(); l.OutMillis != 0 || off != 0 || measured {
		t.Errorf("a pair that nothing measured is %+v, off by %g, %t", l, off, measured)
	}
}

func TestHowFarALinkIsOff(t *testing.T) {
	for rtt, want := range map[time.Duration]time.Duration{30: 0, 33: 0, 34: 1, 27: 0, 26: -1, 40: 7} {
		v := View{Out: shaping.Link{Delay: 10, Jitter: 1}, In: shaping.Link{Delay: 15, Jitter: 2}, Said: &protocol.LinkReport{BaselineRTT: 5, RTT: rtt}}
		if got := v.off(); got != want {
			t.Errorf("a round trip of %d in place of 30, with a jitter of 3, is off by %d, want %d", rtt, got, want)
		}
	}
}

// A link fails only beyond the boundaries of its request, and not before.
func TestBoundariesOfLinks(t *testing.T) {
	tolerances := v1alpha1.Tolerances{LinkDelay: "2ms", LinkLoss: "10%"}
	for name, tc := range map[string]struct {
		change func(v *View)
		want   string
	}{
		"as asked":                {func(*View) {}, ""},
		"nothing is said":         {func(v *View) { v.Said = nil }, v1alpha1.ReasonNetworkNotConfirmed},
		"no baseline":             {func(v *View) { v.Said.BaselineRTT = 0 }, v1alpha1.ReasonNetworkNotConfirmed},
		"the shortest baseline":   {func(v *View) { v.Said.BaselineRTT = 1; v.Said.CanaryMedian = 30 * ms }, ""},
		"no probe":                {func(v *View) { v.Said.CanarySent, v.Said.CanaryMin = 0, 0 }, ""},
		"one probe":               {func(v *View) { v.Said.CanarySent, v.Said.CanaryLost, v.Said.CanaryMin = 1, 0, 0 }, v1alpha1.ReasonNetworkLost},
		"cut":                     {func(v *View) { v.Out.Loss, v.Said.CanaryMin = 1, 0 }, ""},
		"just early enough":       {func(v *View) { v.Said.CanaryMin = 27*ms - early }, ""},
		"too early":               {func(v *View) { v.Said.CanaryMin = 27*ms - early - 1 }, v1alpha1.ReasonNetworkLost},
		"too early, unanswered":   {func(v *View) { v.Said.CanaryMin, v.Said.CanarySent, v.Said.CanaryLost = 0, 2, 2 }, ""},
		"just late enough":        {func(v *View) { v.Said.CanaryMedian = 36 * ms }, ""},
		"too late":                {func(v *View) { v.Said.CanaryMedian = 36*ms + 1 }, v1alpha1.ReasonNetworkLate},
		"late behind a backlog":   {func(v *View) { v.In.Rate, v.Said.CanaryMedian = 5, 36*ms+shaping.MaxBacklog }, ""},
		"too late for a backlog":  {func(v *View) { v.In.Rate, v.Said.CanaryMedian = 5, 36*ms+shaping.MaxBacklog+1 }, v1alpha1.ReasonNetworkLate},
		"late behind backlogs":    {func(v *View) { v.In.Rate, v.Out.Rate, v.Said.CanaryMedian = 5, 5, 36*ms+2*shaping.MaxBacklog }, ""},
		"few lost":                {func(v *View) { v.Said.CanaryLost = 28 }, ""}, // of 1 - 0.9*0.9, and 10%
		"more lost":               {func(v *View) { v.Said.CanaryLost = 30 }, v1alpha1.ReasonPacketsLost},
		"few lost of few":         {func(v *View) { v.Said.CanarySent, v.Said.CanaryLost = 4, 2 }, ""},
		"three lost of few":       {func(v *View) { v.Said.CanarySent, v.Said.CanaryLost = 4, 3 }, v1alpha1.ReasonPacketsLost},
		"lost on a full link":     {func(v *View) { v.Said.CanaryLost, v.Out.Rate = 90, 5 }, ""},
		"lost on a full link too": {func(v *View) { v.Said.CanaryLost, v.In.Rate = 90, 5 }, ""},
	} {
		v := View{From: "a", To: "b", Out: shaping.Link{Delay: 20 * ms, Jitter: ms, Loss: 0.1}, In: shaping.Link{Delay: 10 * ms, Jitter: 2 * ms, Loss: 0.1},
			Said: &protocol.LinkReport{BaselineRTT: ms, CanarySent: 100, CanaryMin: 31 * ms, CanaryMedian: 32 * ms}}
		tc.change(&v)
		f := judgeView(v, tolerances, false)
		if f.Reason != tc.want {
			t.Errorf("%s: %q %s, want %q", name, f.Reason, f.Message, tc.want)
		}
		if early := tc.want == v1alpha1.ReasonNetworkLost; v.Said != nil && v.Said.BaselineRTT > 0 && judgeView(v, tolerances, true).OK() == early {
			t.Errorf("%s, while a fault is in force: %+v", name, judgeView(v, tolerances, true))
		}
		switch f.Reason {
		case v1alpha1.ReasonNetworkLate:
			if !strings.Contains(f.Message, beginOf(v.Said.CanaryMedian)) {
				t.Errorf("%s: it does not name what was measured: %s", name, f.Message)
			}
		case v1alpha1.ReasonPacketsLost:
			if !strings.Contains(f.Message, "at most 29% may be") {
				t.Errorf("%s: it does not name what may be lost: %s", name, f.Message)
			}
		}
	}
	for lost, ok := range map[int]bool{10: true, 11: false} {
		v := View{Said: &protocol.LinkReport{BaselineRTT: 1, CanarySent: 100, CanaryLost: lost}}
		if f := judgeView(v, tolerances, false); f.OK() != ok {
			t.Errorf("%d of 100 probes are lost where 10%% may be: %+v", lost, f)
		}
	}
	all := judgeView(View{Out: shaping.Link{Loss: 0.95}, Said: &protocol.LinkReport{BaselineRTT: 1, CanarySent: 10, CanaryLost: 10}}, v1alpha1.Tolerances{LinkLoss: "90%", LinkDelay: "1h"}, false)
	if !all.OK() {
		t.Errorf("all may be lost: %+v", all)
	}
}

// beginOf is the begin of a delay as messages write it.
func beginOf(d time.Duration) string { return d.Round(10 * time.Microsecond).String()[:2] }

func TestPairsThatWereNotProbed(t *testing.T) {
	long := probedAfter + 100*ms + 2*shaping.MaxBacklog
	for name, tc := range map[string]struct {
		measure time.Duration
		faulted bool
		change  func(o *Observation, v *View)
		ok      bool
	}{
		"long enough":       {long, false, func(*Observation, *View) {}, false},
		"too short":         {long - 1, false, func(*Observation, *View) {}, true},
		"during a fault":    {long, true, func(*Observation, *View) {}, true},
		"cut":               {long, false, func(_ *Observation, v *View) { v.In.Loss = 1 }, true},
		"probed once":       {long, false, func(_ *Observation, v *View) { v.Said.CanarySent = 1 }, true},
		"whose agent acts":  {long, false, func(o *Observation, _ *View) { o.Actions = []timeline.Action{{Pod: "a", Kind: timeline.Kill}} }, true},
		"whose peer's acts": {long, false, func(o *Observation, _ *View) { o.Actions = []timeline.Action{{Pod: "b", Kind: timeline.Kill}} }, false},
	} {
		o := &Observation{Trial: &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{Schedule: v1alpha1.Schedule{Measure: v1alpha1.Duration(tc.measure.String())}}}}
		v := View{From: "a", To: "b", Said: &protocol.LinkReport{}}
		tc.change(o, &v)
		if f := judgeProbed(o, v, tc.faulted, 100*ms); f.OK() != tc.ok {
			t.Errorf("a pair %s: %+v, want that it counts: %t", name, f, tc.ok)
		}
	}
}

func TestSidesOfAFault(t *testing.T) {
	for name, tc := range map[string]struct {
		peers []string
		a, b  string
		want  bool
	}{
		"between the sides": {[]string{"x"}, "a", "x", true}, "back": {[]string{"x"}, "x", "a", true}, "on one side": {[]string{"x"}, "a", "b", false}, "on the other": {[]string{"x", "y"}, "x", "y", false},
		"from one side out": {[]string{"x"}, "a", "z", false}, "to the other": {[]string{"x"}, "z", "x", false}, "outside": {[]string{"x"}, "y", "z", false},
		"from all": {nil, "a", "z", true}, "to all": {nil, "z", "b", true}, "of others": {nil, "y", "z", false},
	} {
		i := Injection{Pods: []string{"a", "b"}, Peers: tc.peers}
		if got := i.Separates(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %s and %s are separated: %t", name, tc.a, tc.b, got)
		}
	}
}

// The integers of a status, for a trial with different numbers everywhere.
func TestHeadlineOfATrial(t *testing.T) {
	value, contended, more := 0.25, 0.125, 0.5
	trial := &results.Trial{
		Summary: results.Summary{
			Counters:   results.Counters{Committed: 1, Aborted: 2, Errors: 3, Timeouts: 4, Offered: 5, GivenUp: 6, Unsent: 7},
			Throughput: 0.5, MeanMillis: 1.25, P10Millis: 2.25, P50Millis: 3.25, P90Millis: 4.25, P99Millis: 5.25, P999Millis: 6.25, Percentiles: map[string]float64{"P95": 7.25, "P75": 8.25},
			OfAll: &results.Percentiles{P10Millis: 1, P50Millis: 2, P75Millis: 3, P90Millis: 4, P95Millis: 5, P99Millis: 6, P999Millis: 7, P9999Millis: 8, P99999Millis: 9},
		},
		CorrectClients: 8, Measurements: []results.Measurement{{Name: "m", Value: &value}, {Name: "n", Reason: "gone"}},
		Machines: []results.MachineUse{{}, {ContendedShare: &contended}, {ContendedShare: &more}, {ContendedShare: &contended}},
		Pods: []results.Pod{
			{}, {Resources: &results.Resources{ThrottledShare: 0.01, Node: results.NodeUse{StealShare: 0.04}}}, {Resources: &results.Resources{ThrottledShare: 0.03, Node: results.NodeUse{StealShare: 0.02}}},
			{Resources: &results.Resources{ThrottledShare: 0.03}},
		},
		Recovery: []results.Recovery{
			{Fault: "f", Time: 2, Dipped: true, Recovered: true, DetectMillis: 1.5, Depth: 0.25, RecoverMillis: 2.5, LostTransactions: 3.5, LeastDip: 0.125, ResolvedMillis: 4.5},
			{Fault: "g", Dipped: true}, {Fault: "h"}, {Fault: "i", Dipped: true, Error: "no window"},
		},
	}
	h := Headline(trial)
	want := &v1alpha1.Headline{
		Committed: 1, Aborted: 2, Errors: 3, Timeouts: 4, Offered: 5, GivenUp: 6, Unsent: 7, ThroughputMilli: 500, MeanLatencyMicroseconds: 1250, P10LatencyMicroseconds: 2250, P50LatencyMicroseconds: 3250,
		P90LatencyMicroseconds: 4250, P99LatencyMicroseconds: 5250, P999LatencyMicroseconds: 6250, CorrectClients: 8,
		Percentiles: []v1alpha1.HeadlinePercentile{{Name: "P75", Microseconds: 8250}, {Name: "P95", Microseconds: 7250}},
		OfAll: &v1alpha1.PercentilesOfAll{
			P10Microseconds: 1000, P50Microseconds: 2000, P75Microseconds: 3000, P90Microseconds: 4000, P95Microseconds: 5000, P99Microseconds: 6000, P999Microseconds: 7000, P9999Microseconds: 8000, P99999Microseconds: 9000,
		},
		Measurements: []v1alpha1.MeasuredValue{{Name: "m", Value: "0.25"}, {Name: "n", Reason: "gone"}}, ThrottledPerMillion: new(int32(30_000)), StealPerMillion: new(int32(40_000)), ContendedPerMillion: new(int32(500_000)),
		Recoveries: []v1alpha1.FaultRecovery{
			{Fault: "f", Time: 2, Outcome: v1alpha1.RecoveryRecovered, DetectMicroseconds: 1500, DepthPerMillion: 250_000, RecoverMicroseconds: 2500, LostMilli: 3500, LeastDipPerMillion: 125_000, ResolvedMicroseconds: 4500},
			{Fault: "g", Outcome: v1alpha1.RecoveryNotRecovered}, {Fault: "h", Outcome: v1alpha1.RecoveryNoDip}, {Fault: "i", Outcome: v1alpha1.RecoveryUnknown},
		},
		ClientTimePerMillion: h.ClientTimePerMillion, ClientBusyPerMillion: h.ClientBusyPerMillion,
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n, want := range map[int]int{0: 0, 15: 15, 16: 16, 17: 16} {
		if got := len(headlineRecoveries(make([]results.Recovery, n))); got != want {
			t.Errorf("of %d recoveries a status has %d, want %d", n, got, want)
		}
	}
	for share, want := range map[float64]int32{0.25: 250_000, 999: 999_000_000, 1000: 1_000_000_000, 1001: 1_000_000_000, math.Inf(1): 1_000_000_000} {
		if got := perMillion(&share); *got != want {
			t.Errorf("a share of %g is %d per million, want %d", share, *got, want)
		}
	}
	if perMillion(nil) != nil || worstContention([]results.MachineUse{{}}) != nil {
		t.Error("what is not known is a number")
	}
	for _, tc := range []struct {
		s    results.Summary
		want string
	}{
		{results.Summary{MeanMillis: 1.5}, ", mean latency 1.500 ms"}, {results.Summary{}, ", mean latency 0.000 ms"}, {results.Summary{RunSummary: true, MeanMillis: 1.5}, ", mean latency 1.500 ms"}, {results.Summary{RunSummary: true}, ""},
	} {
		if got := MeanText(tc.s); got != tc.want {
			t.Errorf("the mean of %+v is %q, want %q", tc.s, got, tc.want)
		}
	}
}

func TestWindowsThatAreNotSteady(t *testing.T) {
	moves := &results.Transient{Bias: 0.25}
	for name, tc := range map[string]struct {
		check results.WindowCheck
		want  int
	}{"nothing is known": {results.WindowCheck{}, 0}, "steady": {results.WindowCheck{Throughput: &results.Transient{Steady: true}}, 0}, "both": {results.WindowCheck{Throughput: moves, Latency: moves}, 2}, "one": {results.WindowCheck{Latency: moves}, 1}} {
		got := unsteady(tc.check)
		if len(got) != tc.want {
			t.Errorf("%s: %+v, want %d", name, got, tc.want)
		}
		for _, u := range got {
			if want := int64(250_000); u.MovesPerMillion != want || u.Cause != "Start" {
				t.Errorf("%s: %+v, want that it moves by %d per million", name, u, want)
			}
		}
	}
}

func TestFromWhenToWhenClientsRan(t *testing.T) {
	w := timeline.Windows{WarmUp: 5 * time.Second}
	run := func(from, to time.Duration) *protocol.ClientRun {
		return &protocol.ClientRun{Released: from, Ended: to}
	}
	for name, tc := range map[string]struct {
		runs     []*protocol.ClientRun
		from, to time.Duration
	}{
		"none": {}, "one": {[]*protocol.ClientRun{run(-4*time.Second, 9)}, -4 * time.Second, 9}, "one that was held": {[]*protocol.ClientRun{run(-9*time.Second, 9)}, -5 * time.Second, 9},
		"two": {[]*protocol.ClientRun{run(-2*time.Second, 9), run(-3*time.Second, 4)}, -3 * time.Second, 9}, "two, the other way": {[]*protocol.ClientRun{run(-3*time.Second, 4), run(-2*time.Second, 9)}, -3 * time.Second, 9},
		"late": {[]*protocol.ClientRun{run(7, 9), run(8, 10)}, 7, 10},
	} {
		if got := WholeRun(w, tc.runs); got != (timeline.Span{From: tc.from, To: tc.to}) {
			t.Errorf("%s: %+v, want from %v to %v", name, got, tc.from, tc.to)
		}
	}
}

func TestLoadThatBeganLate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(o *Observation)
		want   string
	}{
		"in time":                    {func(*Observation) {}, ""},
		"released as late as may be": {func(o *Observation) { o.Pods[1].Report.Client.Released = -4900 * ms }, ""},
		"released too late":          {func(o *Observation) { o.Pods[1].Report.Client.Released = -4900*ms + 1 }, "StartLate: Client c was released 100ms later than agreed"},
		"of which nothing is known":  {func(o *Observation) { o.Pods[1].Report.Client = nil }, ""},
		"whose agent said nothing":   {func(o *Observation) { o.Pods[1].Report = nil }, ""},
		"apart as far as may be":     {func(o *Observation) { o.Merged.StartSpread = 100 * ms }, ""},
		"too far apart":              {func(o *Observation) { o.Merged.StartSpread = 100*ms + 1 }, "StartSpread: The clients started 100.000001ms apart"},
		"too far apart, in phases": {func(o *Observation) {
			o.Merged.StartSpread = time.Second
			o.Trial.Spec.Clients.Phases = []v1alpha1.LoadPhase{{}}
		}, ""},
		"too far apart, of an open loop":  {func(o *Observation) { o.Merged.StartSpread, o.Trial.Spec.Clients.Loop = time.Second, v1alpha1.LoopOpen }, ""},
		"first request as late as may be": {func(o *Observation) { o.Clients[0].StartedNanos = (5100 * ms).Nanoseconds() }, ""},
		"first request too late":          {func(o *Observation) { o.Clients[0].StartedNanos = (5100 * ms).Nanoseconds() + 1 }, "StartLate: Client c sent its first request 100ms after the window had begun"},
		"no request, of which it is known": {func(o *Observation) {
			o.Clients[0].StartedNanos, o.Clients[0].NothingSent = (9 * time.Second).Nanoseconds(), true
		}, ""},
	} {
		o := &Observation{
			Trial:  &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{Schedule: v1alpha1.Schedule{WarmUp: "5s", Measure: "20s"}, Tolerances: v1alpha1.Tolerances{StartSpread: "100ms"}}},
			Layout: &placement.Layout{Clients: []placement.Client{{Name: "c"}}}, Clients: []results.Client{{}},
			Pods: []Pod{{Name: "s", Report: &protocol.Report{Client: &protocol.ClientRun{Released: time.Hour}}}, {Name: "c", Client: &placement.Client{}, Report: &protocol.Report{Client: &protocol.ClientRun{Released: -5 * time.Second}}}},
		}
		tc.change(o)
		f := starts(o)
		if got := f.Reason + ": " + f.Message; f.OK() != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
			t.Errorf("a load %s: %s, want %q", name, got, tc.want)
		}
	}
}

func TestExitCodesInWords(t *testing.T) {
	for code, want := range map[int]string{1: "exit code 1", 128: "exit code 128", 129: "exit code 129 (signal 1, hangup)", 137: "exit code 137 (signal 9, killed)", 192: "exit code 192 (signal 64, signal 64)", 193: "exit code 193"} {
		if got := exitText(code); got != want {
			t.Errorf("%d is %q, want %q", code, got, want)
		}
	}
}

func TestClientsThatAreSilent(t *testing.T) {
	silent, told := results.Client{Clients: 2, NothingSent: true, Index: 1}, results.Client{Clients: 2}
	summary := func(n int64) results.Client {
		return results.Client{Clients: 2, NothingSent: true, RunSummary: &results.RunSummary{}, Counters: results.Counters{Committed: n}, Index: 1}
	}
	for name, tc := range map[string]struct {
		clients []results.Client
		ok      bool
	}{
		"one of two": {[]results.Client{told, silent}, false}, "the first": {[]results.Client{silent, told}, false}, "both": {[]results.Client{silent, silent}, true}, "none": {[]results.Client{told, told}, true},
		"no client": {nil, true}, "only misbehaving ones told": {[]results.Client{silent, {Clients: 2, MisbehavingClients: 2}}, true}, "some misbehaving ones told": {[]results.Client{silent, {Clients: 2, MisbehavingClients: 1}}, false},
		"one whose summary has commits": {[]results.Client{silent, summary(1)}, false}, "one whose summary has none": {[]results.Client{told, summary(0)}, false}, "none but summaries": {[]results.Client{summary(2), summary(1)}, true},
		"silent, and a summary without commits": {[]results.Client{silent, summary(0)}, true},
	} {
		o := &Observation{Clients: tc.clients, Layout: &placement.Layout{Clients: []placement.Client{{Name: "c0"}, {Name: "c1"}}}}
		f := silence(o)
		if f.OK() != tc.ok || !tc.ok && !strings.HasPrefix(f.Message, "Client c1 ") {
			t.Errorf("%s told of no request: %+v", name, f)
		}
	}
	for lag, ok := range map[float64]bool{10: true, 10.001: false} {
		spec := &v1alpha1.TrialSpec{Tolerances: v1alpha1.Tolerances{GeneratorLag: "10ms"}}
		if f := judgeGenerators(spec, []results.Pod{{}, {Name: "c", GeneratorLagP99Millis: lag}}); f.OK() != ok {
			t.Errorf("a generator that is %g ms late: %+v", lag, f)
		}
	}
}

// Bins of a second: four before the pod goes at 4 s, and those from 6 s on, when it is back.
func TestDataOfPodsThatCameBack(t *testing.T) {
	series := func(bins ...int64) restoring {
		return restoring{&results.ResourceSeries{IntervalMillis: 1000, FirstMillis: 0, ReceivedBytes: bins}, 4000, 6000, 11_000}
	}
	for name, tc := range map[string]struct {
		bins   []int64
		change func(*restoring)
		bytes  int64
		millis float64
		ok     bool
	}{
		"beyond the usual":              {bins: []int64{10, 10, 10, 10, 999, 999, 110, 60, 10, 10, 10, 999}, bytes: 150, millis: 2000, ok: true},
		"one byte beyond the usual":     {bins: []int64{10, 10, 10, 10, 0, 0, 11, 10, 10, 10, 10}, bytes: 1, millis: 1000, ok: true},
		"less than the usual":           {bins: []int64{10, 10, 10, 10, 0, 0, 5, 10, 10, 10, 10}, ok: true},
		"as usual":                      {bins: []int64{10, 10, 10, 10, 0, 0, 10, 10, 10, 10, 10}, ok: true},
		"nearly all at once":            {bins: []int64{0, 0, 0, 0, 0, 0, 95, 0, 0, 0, 5}, bytes: 100, millis: 1000, ok: true},
		"not nearly all at once":        {bins: []int64{0, 0, 0, 0, 0, 0, 94, 0, 0, 0, 6}, bytes: 100, millis: 5000, ok: true},
		"unknown before":                {bins: []int64{-1, -1, -1, 20, 0, 0, 40, 0, 0, 0, 0}, bytes: -60, millis: 0, ok: true},
		"nothing known before":          {bins: []int64{-1, -1, -1, -1, 0, 0, 40, 40, 40, 40, 40}},
		"nothing after":                 {bins: []int64{10, 10, 10, 10, 0, 0}},
		"unknown in the first bin":      {bins: []int64{10, 10, 10, 10, 0, 0, -1, 60, 10, 10, 10}, bytes: 40, millis: 2000, ok: true},
		"unknown later":                 {bins: []int64{10, 10, 10, 10, 0, 0, 60, -1, 10, 10, 10}},
		"a zero later":                  {bins: []int64{10, 10, 10, 10, 0, 0, 60, 0, 10, 10, 10}, bytes: 40, millis: 1000, ok: true},
		"back within a bin":             {bins: []int64{10, 10, 10, 10, 0, 0, 110, 10, 10, 10, 10}, change: func(r *restoring) { r.back = 6500 }, bytes: 100, millis: 500, ok: true},
		"back at the end of a bin":      {bins: []int64{10, 10, 10, 10, 0, 0, 999, 110, 10, 10, 10}, change: func(r *restoring) { r.back = 7000 }, bytes: 100, millis: 1000, ok: true},
		"a long time before":            {bins: []int64{0, 0, 10, 10, 10, 10, 10, 0, 110, 10, 10}, change: func(r *restoring) { r.away, r.back = 7000, 8000 }, bytes: 100, millis: 1000, ok: true},
		"5 s before it, and not more":   {bins: []int64{0, 0, 30, 0, 0, 0, 0, 0, 106, 6, 6}, change: func(r *restoring) { r.away, r.back = 7000, 8000 }, bytes: 100, millis: 1000, ok: true},
		"a window that ends within one": {bins: []int64{10, 10, 10, 10, 0, 0, 110, 10, 10, 10, 999}, change: func(r *restoring) { r.windowEnds = 10_999 }, bytes: 100, millis: 1000, ok: true},
	} {
		r := series(tc.bins...)
		if tc.change != nil {
			tc.change(&r)
		}
		bytes, millis, ok := r.extra(tc.bins)
		if tc.bytes < 0 {
			tc.bytes = 0
		}
		if bytes != tc.bytes || millis != tc.millis || ok != tc.ok {
			t.Errorf("%s: %d bytes in %g ms, %t; want %d in %g ms, %t", name, bytes, millis, ok, tc.bytes, tc.millis, tc.ok)
		}
	}
}

func TestDataThatSeveralPodsGot(t *testing.T) {
	series := func(first int64) *results.Resources {
		bins := []int64{0, 0, 0, 0, 0, 0, first, 100 - first, 0, 0, 0}
		return &results.Resources{Series: &results.ResourceSeries{IntervalMillis: 1000, ReceivedBytes: bins, DiskWrittenBytes: bins}}
	}
	begin := func(id, pod string, change func(*results.FaultRecord)) []results.FaultRecord {
		f := results.FaultRecord{ID: id, Fault: "f", Time: 1, Pod: pod, ConfirmedMillis: 4000}
		end := results.FaultRecord{Ends: id, ConfirmedMillis: 6000}
		if change != nil {
			change(&f)
		}
		return []results.FaultRecord{f, end}
	}
	trial := &results.Trial{MeasureNanos: 11e9, Pods: []results.Pod{{Name: "a", Resources: series(100)}, {Name: "b", Resources: series(50)}, {Name: "c"}, {Name: "d", Resources: &results.Resources{}}}}
	ended := begin("b", "b", nil)
	ended[1].ConfirmedMillis = 5500
	failed, open := begin("8", "a", nil), begin("9", "a", nil)
	failed[1].Error, open[1].ConfirmedMillis = "x", 0
	for _, f := range [][]results.FaultRecord{
		begin("a", "a", nil), ended, begin("1", "a", func(f *results.FaultRecord) { f.Fault = "g" }), begin("2", "a", func(f *results.FaultRecord) { f.Time = 2 }), begin("3", "a", func(f *results.FaultRecord) { f.ID = "" }),
		begin("4", "a", func(f *results.FaultRecord) { f.Error = "x" }), begin("5", "a", func(f *results.FaultRecord) { f.Skipped = true }), begin("6", "gone", nil), begin("7", "c", nil), begin("10", "d", nil), failed, open,
	} {
		trial.Faults = append(trial.Faults, f...)
	}
	all := []results.Recovery{{Fault: "f", Time: 1, ConfirmedMillis: 4000}}
	addDataRecovery(trial, all)
	want := &results.DataRecovery{Pods: 2, ReceivedBytes: 200, DiskWrittenBytes: 200, RestoreMillis: 2500, BackMillis: 1500}
	if diff := cmp.Diff(want, all[0].Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
