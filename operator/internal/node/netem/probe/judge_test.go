package probe

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/shaping"
)

const msec = time.Millisecond

var peerAddress = netip.MustParseAddr("10.1.0.2")

// of is a Spread whose values are all the same.
func of(d time.Duration) Spread { return Spread{Min: d, Median: d, Max: d} }

// seen is a measurement with one clock at both ends.
func seen(out, in time.Duration) Measurement {
	return Measurement{Peer: peerAddress, Sent: 7, Answered: 7, RoundTrip: of(out + in), OneWay: true, Out: of(out), In: of(in)}
}

func without(m Measurement, change func(*Measurement)) Measurement {
	change(&m)
	return m
}

func TestJudge(t *testing.T) {
	asked := Pair{From: "us-0", To: "eu-1", Peer: peerAddress, Out: shaping.Link{Delay: 45 * msec}, In: shaping.Link{Delay: 12 * msec}}
	with := func(change func(*Pair)) Pair {
		pair := asked
		change(&pair)
		return pair
	}
	path := seen(30*time.Microsecond, 40*time.Microsecond)
	byClocks := func(out, in, within time.Duration) Measurement {
		return without(seen(out, in), func(m *Measurement) { m.Error = within })
	}
	blind := func(roundTrip time.Duration) Measurement {
		return Measurement{Peer: peerAddress, Sent: 7, Answered: 7, RoundTrip: of(roundTrip)}
	}
	tests := map[string]struct {
		asked    Pair
		path     Measurement
		measured Measurement
		want     []string // reason: message
	}{
		"right":                        {asked, path, seen(45100*time.Microsecond, 12400*time.Microsecond), nil},
		"exactly what was asked":       {asked, path, seen(45*msec, 12*msec), nil},
		"the last instant that is not": {asked, path, seen(45*msec+530*time.Microsecond, 12*msec), nil},
		"2 ms too long out": {asked, path, seen(47100*time.Microsecond, 12100*time.Microsecond),
			[]string{"Late: us-0 -> eu-1: asked 45ms one way, measured 47.1ms (tolerance 0.5ms, path 0.03ms)"}},
		"2 ms too long back": {asked, path, seen(45100*time.Microsecond, 14100*time.Microsecond),
			[]string{"Late: eu-1 -> us-0: asked 12ms one way, measured 14.1ms (tolerance 0.5ms, path 0.04ms)"}},
		"2 ms too short": {asked, path, seen(43100*time.Microsecond, 12100*time.Microsecond),
			[]string{"Early: us-0 -> eu-1: asked 45ms one way, measured 43.1ms, which is too short (tolerance 0.5ms)"}},
		"0.1 ms too short": {asked, path, seen(44900*time.Microsecond, 12100*time.Microsecond),
			[]string{"Early: us-0 -> eu-1: asked 45ms one way, measured 44.9ms, which is too short (tolerance 0.5ms)"}},
		"a rule is missing": {asked, path, seen(60*time.Microsecond, 12100*time.Microsecond),
			[]string{"Early: us-0 -> eu-1: asked 45ms one way, measured 0.06ms: it is not delayed at all"}},
		"swapped": {asked, path, seen(12100*time.Microsecond, 45100*time.Microsecond),
			[]string{"Swapped: us-0 -> eu-1: the directions are swapped: asked 45ms out and 12ms back, measured 12.1ms out and 45.1ms back"}},
		"the same round trip otherwise": {asked, path, seen(30*msec, 27100*time.Microsecond), []string{
			"Early: us-0 -> eu-1: asked 45ms one way, measured 30ms, which is too short (tolerance 0.5ms)",
			"Late: eu-1 -> us-0: asked 12ms one way, measured 27.1ms (tolerance 0.5ms, path 0.04ms)"}},
		"no peer answers": {asked, path, Measurement{Peer: peerAddress, Sent: 7},
			[]string{"Silent: us-0 <-> eu-1: asked 45ms out and 12ms back, but none of 7 probes was answered"}},
		"nothing can be sent": {asked, path, Measurement{Peer: peerAddress, Sent: 7, SendError: "send: operation not permitted"},
			[]string{"Silent: us-0 <-> eu-1: asked 45ms out and 12ms back, but none of 7 probes was answered (send: operation not permitted)"}},
		"some lost": {asked, path, without(seen(45*msec, 12*msec), func(m *Measurement) { m.Answered = 1 }), nil},
		"cut":       {with(func(p *Pair) { p.Out.Loss = 1 }), path, Measurement{Peer: peerAddress, Sent: 7}, nil},
		"cut one way, yet connected": {with(func(p *Pair) { p.In.Loss = 1 }), path, seen(45*msec, 12*msec),
			[]string{"Connected: us-0 <-> eu-1: asked to be cut, but 7 of 7 probes were answered"}},
		"not measured":                 {asked, path, Measurement{Peer: netip.MustParseAddr("10.1.0.3")}, []string{"Unmeasured: us-0 <-> eu-1: not measured"}},
		"an address in its other form": {with(func(p *Pair) { p.Peer = netip.AddrFrom16(p.Peer.As16()) }), path, seen(45*msec, 12*msec), nil},
		"shaped when the path was measured": {asked, seen(45100*time.Microsecond, 40*time.Microsecond), seen(45100*time.Microsecond, 12100*time.Microsecond),
			[]string{"LongPath: us-0 -> eu-1: asked 45ms one way, but the path takes 45.1ms undelayed (at most 2ms); was it shaped already when that was measured?"}},
		"jitter, early and late within it": {with(func(p *Pair) { p.Out.Jitter, p.In.Jitter = 5*msec, 5*msec }), path, seen(40100*time.Microsecond, 17*msec), nil},
		"jitter, later than it": {with(func(p *Pair) { p.Out.Jitter = 5 * msec }), path, seen(51*msec, 12*msec),
			[]string{"Late: us-0 -> eu-1: asked 45ms±5ms one way, measured 51ms (tolerance 0.5ms, path 0.03ms)"}},
		"by clocks, within their error":   {asked, path, byClocks(44*msec, 13100*time.Microsecond, 2*msec), nil},
		"by clocks, swapped":              {asked, path, byClocks(13*msec, 44100*time.Microsecond, 2*msec), []string{"Swapped: us-0 -> eu-1: the directions are swapped: asked 45ms out and 12ms back, measured 13ms out and 44.1ms back"}},
		"by clocks, the round trip tells": {asked, path, byClocks(46*msec, 13*msec, 2*msec), []string{"Late: us-0 <-> eu-1: asked 57ms round trip, measured 59ms (tolerance 1ms, path 0.07ms)"}},
		"round trip":                      {asked, path, blind(57900 * time.Microsecond), nil},
		"round trip, swapped: not seen":   {asked, path, blind(57100 * time.Microsecond), nil},
		"round trip too long":             {asked, path, blind(59100 * time.Microsecond), []string{"Late: us-0 <-> eu-1: asked 57ms round trip, measured 59.1ms (tolerance 1ms, path 0.07ms)"}},
		"round trip too short":            {asked, path, blind(56 * msec), []string{"Early: us-0 <-> eu-1: asked 57ms round trip, measured 56ms, which is too short (tolerance 1ms)"}},
		"no delay asked":                  {Pair{From: "a", To: "b", Peer: peerAddress}, path, seen(500*time.Microsecond, 10*time.Microsecond), nil},
		"no delay asked, and a long path": {Pair{From: "a", To: "b", Peer: peerAddress}, seen(25*msec, 40*time.Microsecond), seen(50*time.Microsecond, 30*time.Microsecond),
			[]string{"LongPath: a -> b: asked 0ms one way, but the path takes 25ms undelayed (at most 2ms); was it shaped already when that was measured?"}},
		"a long path, and swapped": {with(func(p *Pair) { p.Out.Delay = 12*msec + 100*time.Microsecond }), seen(25*msec, 40*time.Microsecond), seen(12200*time.Microsecond, 12200*time.Microsecond),
			[]string{"LongPath: us-0 -> eu-1: asked 12.1ms one way, but the path takes 25ms undelayed (at most 2ms); was it shaped already when that was measured?"}},
		"no delay asked, but there": {Pair{From: "a", To: "b", Peer: peerAddress}, path, seen(600*time.Microsecond, 40*time.Microsecond),
			[]string{"Late: a -> b: asked 0ms one way, measured 0.6ms (tolerance 0.5ms, path 0.03ms)"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, wrong := range Judge([]Pair{tc.asked}, []Measurement{tc.path}, []Measurement{tc.measured}, DefaultTolerance) {
				got = append(got, string(wrong.Reason)+": "+wrong.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestASymmetricPairIsNeverSwapped(t *testing.T) {
	pair := Pair{From: "a", To: "b", Peer: peerAddress, Out: shaping.Link{Delay: 10 * msec}, In: shaping.Link{Delay: 10 * msec}}
	for name, m := range map[string]Measurement{
		"both late": seen(12*msec, 12*msec), "one late": seen(10*msec, 12*msec), "one early": seen(8*msec, 10*msec), "crossed": seen(8*msec, 12*msec),
	} {
		found := Judge([]Pair{pair}, []Measurement{seen(0, 0)}, []Measurement{m}, DefaultTolerance)
		if len(found) == 0 {
			t.Errorf("%s: nothing is wrong", name)
		}
		for _, wrong := range found {
			if wrong.Reason == Swapped {
				t.Errorf("%s: %s", name, wrong.Message)
			}
		}
	}
}

func TestJudgeSteady(t *testing.T) {
	pair := Pair{From: "a", To: "b", Peer: peerAddress, Out: shaping.Link{Delay: 10 * msec, Loss: 0.1}, In: shaping.Link{Delay: 10 * msec}}
	watched := func(out Spread, sent, answered int) Measurement {
		return Measurement{
			Peer: peerAddress, Sent: sent, Answered: answered, OneWay: true, Out: out, In: of(10 * msec),
			RoundTrip: Spread{out.Min + 10*msec, out.Median + 10*msec, out.Max + 10*msec},
		}
	}
	tests := map[string]struct {
		measured Measurement
		want     []Reason
	}{
		"right, some noise":           {watched(Spread{10 * msec, 11 * msec, 90 * msec}, 60, 55), nil},
		"one probe was not delayed":   {watched(Spread{10 * time.Microsecond, 11 * msec, 12 * msec}, 60, 55), []Reason{Early}},
		"usually late":                {watched(Spread{10 * msec, 16 * msec, 18 * msec}, 60, 55), []Reason{Late}},
		"some more lost than asked":   {watched(of(10*msec), 60, 45), nil},
		"many more lost than asked":   {watched(of(10*msec), 60, 44), []Reason{Lossy}},
		"too few to tell":             {watched(of(10*msec), 3, 1), nil},
		"nothing was answered":        {Measurement{Peer: peerAddress, Sent: 60}, []Reason{Silent}},
		"no time was undisturbed":     {Measurement{Peer: peerAddress}, nil},
		"late, and too many are lost": {watched(Spread{10 * msec, 16 * msec, 18 * msec}, 60, 30), []Reason{Late, Lossy}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []Reason
			for _, wrong := range JudgeSteady([]Pair{pair}, []Measurement{seen(0, 0)}, []Measurement{tc.measured}, SteadyTolerance) {
				got = append(got, wrong.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLeast(t *testing.T) {
	ways := Measurement{RoundTrip: Spread{Min: 37 * time.Millisecond}, OneWay: true, Out: Spread{Min: 100 * time.Microsecond}, In: Spread{Min: 200 * time.Microsecond}}
	apart := ways
	apart.Error = time.Millisecond
	for name, tc := range map[string]struct {
		m    Measurement
		want time.Duration
	}{
		"one clock: the least ways":         {ways, 300 * time.Microsecond},
		"two clocks: the round trip":        {apart, 37 * time.Millisecond},
		"nothing but the round trip":        {Measurement{RoundTrip: Spread{Min: time.Millisecond}}, time.Millisecond},
		"ways that were measured at a loss": {Measurement{RoundTrip: Spread{Min: time.Millisecond}, OneWay: true, Out: Spread{Min: time.Second}}, time.Millisecond},
	} {
		if got := tc.m.Least(); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
