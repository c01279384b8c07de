package trial

import (
	"fmt"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/protocol"
)

// early is how much shorter than asked a packet may be under way: backends round, and clocks tick.
const early = 50 * time.Microsecond

// pair is the two links between two pods: what was asked, and what both ends say. a is before b in the layout.
type pair struct {
	a, b             string
	regionA, regionB string
	out, in          netem.Link // from a to b, from b to a
	byA, byB         *protocol.LinkReport
}

// pairs joins what was asked of every two pods with what their agents have measured.
func (r *Reconciler) pairs(s *scope) []pair {
	names := s.everyName()
	var regions []string
	for _, p := range s.layout.Replicas {
		regions = append(regions, p.Region)
	}
	for _, p := range s.layout.Clients {
		regions = append(regions, p.Region)
	}
	said := make([]map[string]*protocol.LinkReport, len(names))
	for i, name := range names {
		said[i] = map[string]*protocol.LinkReport{}
		if n := r.networkOf(s, name); n != nil {
			for k := range n.Links {
				said[i][n.Links[k].Peer] = &n.Links[k]
			}
		}
	}
	var out []pair
	for i, a := range names {
		asked := map[string]protocol.NetworkPeer{}
		for _, p := range s.rendered.pods[a].Directive.Network.Peers {
			asked[p.Name] = p
		}
		for j := i + 1; j < len(names); j++ {
			b := names[j]
			out = append(out, pair{
				a: a, b: b, regionA: regions[i], regionB: regions[j],
				out: asked[b].Out, in: asked[b].In, byA: said[i][b], byB: said[j][a],
			})
		}
	}
	return out
}

// undirected reports whether neither end could tell the directions apart: only what one end knows is known.
func (p pair) undirected() bool {
	return p.byA != nil && p.byB != nil && p.byA.Undirected && p.byB.Undirected
}

// view is a pair as one of its ends measured it.
type view struct {
	from, to string
	out, in  netem.Link
	said     *protocol.LinkReport
}

func (p pair) views() [2]view {
	return [2]view{{p.a, p.b, p.out, p.in, p.byA}, {p.b, p.a, p.in, p.out, p.byB}}
}

func (v view) cut() bool { return v.out.Loss >= 1 || v.in.Loss >= 1 }

// expected round trip.
func (v view) expected() time.Duration { return v.out.Delay + v.in.Delay + v.said.BaselineRTT }

// off is by how much the round trip is longer (or, negative, shorter) than expected, what jitter allows left out.
func (v view) off() time.Duration {
	off, jitter := v.said.RTT-v.expected(), v.out.Jitter+v.in.Jitter
	switch {
	case off > jitter:
		return off - jitter
	case off < -jitter:
		return off + jitter
	default:
		return 0
	}
}

// checkPairs compares every measurement of both ends with what was asked, and says what is wrong.
func checkPairs(pairs []pair, tolerance time.Duration) []string {
	var wrong []string
	for _, p := range pairs {
		for _, v := range p.views() {
			if w := v.check(tolerance); w != "" {
				wrong = append(wrong, w)
				break // the other end says the same
			}
		}
	}
	return wrong
}

// check says what is wrong with what one end measured before t = 0, or nothing. It may be late by the tolerance: each way where that is known, else the round
// trip.
func (v view) check(tolerance time.Duration) string {
	switch {
	case v.said == nil:
		return fmt.Sprintf("%s has not measured its links with %s", v.from, v.to)
	case v.said.BaselineRTT <= 0:
		return fmt.Sprintf("%s has not measured the undelayed path to %s", v.from, v.to)
	case v.cut() && v.said.RTT > 0:
		return fmt.Sprintf("%s <-> %s: every packet was asked to be lost one way, but probes were answered", v.from, v.to)
	case v.cut():
		return ""
	case v.said.RTT <= 0:
		return fmt.Sprintf("%s <-> %s: no probe was answered", v.from, v.to)
	}
	out := way{v.from + " -> " + v.to, "one way", v.out.Delay, v.out.Jitter, v.said.BaselineRTT, v.said.OutDelay}
	in := way{v.to + " -> " + v.from, "one way", v.in.Delay, v.in.Jitter, v.said.BaselineRTT, v.said.InDelay}
	both := way{v.from + " <-> " + v.to, "for the round trip", v.out.Delay + v.in.Delay, v.out.Jitter + v.in.Jitter, v.said.BaselineRTT, v.said.RTT}
	var wrong []string
	for _, w := range []way{out, in} {
		if w.measured > 0 && !w.fits(tolerance) {
			wrong = append(wrong, w.describe(tolerance))
		}
	}
	if len(wrong) > 0 && out.measured > 0 && in.measured > 0 && out.as(in).fits(tolerance) && in.as(out).fits(tolerance) {
		return fmt.Sprintf("%s -> %s: the directions are swapped: asked %v there and %v back, measured %v there and %v back",
			v.from, v.to, out.asked, in.asked, rounded(out.measured), rounded(in.measured))
	}
	if (out.measured <= 0 || in.measured <= 0) && len(wrong) == 0 && !both.fits(tolerance) {
		wrong = append(wrong, both.describe(tolerance))
	}
	return strings.Join(wrong, "; ")
}

// way is one direction of a pair, or both.
type way struct {
	name, kind                    string
	asked, jitter, path, measured time.Duration
}

// as is what was measured of this way, judged by what was asked of another.
func (w way) as(other way) way {
	other.measured = w.measured
	return other
}

func (w way) fits(tolerance time.Duration) bool {
	return w.measured >= w.asked-w.jitter-early && w.measured <= w.asked+w.jitter+w.path+tolerance
}

func (w way) describe(tolerance time.Duration) string {
	asked := w.asked.String()
	if w.jitter > 0 {
		asked += "±" + w.jitter.String()
	}
	return fmt.Sprintf("%s: asked %s %s, measured %v (the undelayed round trip takes %v, and %v are tolerated)",
		w.name, asked, w.kind, rounded(w.measured), rounded(w.path), tolerance)
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
