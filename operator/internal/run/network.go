package trial

import (
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/results"
)

// describeNetwork tells what was asked of the trial's links and what was measured of them. Nil: they have not been measured.
func (r *Reconciler) describeNetwork(s *scope) *results.Network {
	if s.rendered == nil || s.trial.Status.Network == nil {
		return nil
	}
	n := &results.Network{Backend: string(s.trial.Status.Network.Backend)}
	for _, name := range s.everyName() {
		rep := r.networkOf(s, name)
		if rep == nil {
			continue
		}
		n.ApplyMillis, n.ProveMillis = max(n.ApplyMillis, millis(rep.ApplyTook)), max(n.ProveMillis, millis(rep.ProveTook))
		n.Rounds, n.Dropped = max(n.Rounds, rep.Rounds), n.Dropped+rep.Dropped
		n.LateP99Millis, n.LateMillis = max(n.LateP99Millis, millis(rep.LateP99)), max(n.LateMillis, millis(rep.Late))
	}
	faulted := r.faultedPairs(s)
	pairs := r.pairs(s)
	n.Pairs = len(pairs)
	byRegion := regionTable{}
	for _, p := range pairs {
		link, off, measured := p.link()
		link.Faulted, link.Undirected = faulted.pair(p.a, p.b), p.undirected()
		if link.Undirected {
			n.Undirected++
		}
		n.Links = append(n.Links, link)
		if measured && (n.WorstPair == "" || abs(off) > abs(n.WorstErrorMillis)) {
			n.WorstPair, n.WorstErrorMillis = pairName(p.a, p.b), off
		}
		byRegion.add(p, link, off, measured)
	}
	n.Regions = byRegion.rows
	if n.Pairs > results.MaxLinks {
		n.Links = nil
	}
	return n
}

func pairName(a, b string) string { return fmt.Sprintf("%s <-> %s", a, b) }

// link describes a pair: the round trip as the end measured it that is further off; the one-way times from whoever knows them; the canaries of both. off is
// in milliseconds; measured is false where no end has measured, or can, since a link is cut.
func (p pair) link() (link results.Link, off float64, measured bool) {
	link = results.Link{From: p.a, To: p.b, Out: asked(p.out), In: asked(p.in), ExpectedMillis: millis(p.out.Delay + p.in.Delay)}
	for _, v := range p.views() {
		if v.said == nil {
			continue
		}
		link.Add(canary(v.said))
		if d := millis(v.off()); !v.cut() && v.said.RTT > 0 && (!measured || abs(d) > abs(off)) {
			off, measured = d, true
			link.BaselineMillis, link.ExpectedMillis, link.MeasuredMillis = millis(v.said.BaselineRTT), millis(v.expected()), millis(v.said.RTT)
		}
	}
	first := func(one, other func(*protocol.LinkReport) time.Duration) float64 {
		if p.byA != nil && one(p.byA) > 0 {
			return millis(one(p.byA))
		}
		if p.byB != nil {
			return millis(other(p.byB))
		}
		return 0
	}
	out, in := func(l *protocol.LinkReport) time.Duration { return l.OutDelay }, func(l *protocol.LinkReport) time.Duration { return l.InDelay }
	link.OutMillis, link.InMillis = first(out, in), first(in, out)
	return link, off, measured
}

func asked(l netem.Link) results.LinkAsked {
	return results.LinkAsked{DelayMillis: millis(l.Delay), JitterMillis: millis(l.Jitter), Loss: l.Loss, RateBits: l.Rate}
}

func canary(l *protocol.LinkReport) results.Canary {
	return results.Canary{
		CanarySent: l.CanarySent, CanaryLost: l.CanaryLost,
		CanaryMinMillis: millis(l.CanaryMin), CanaryMedianMillis: millis(l.CanaryMedian), CanaryMaxMillis: millis(l.CanaryMax),
	}
}

func abs(x float64) float64 { return max(x, -x) }

// regionTable puts pairs together by the regions of their ends, in the order in which the regions come in the layout.
type regionTable struct {
	regions []string
	rows    []results.RegionLinks
}

func (t *regionTable) index(region string) int {
	i := slices.Index(t.regions, region)
	if i < 0 {
		i = len(t.regions)
		t.regions = append(t.regions, region)
	}
	return i
}

func (t *regionTable) add(p pair, link results.Link, off float64, measured bool) {
	from, to, out, in := p.regionA, p.regionB, link.Out, link.In
	if t.index(from) > t.index(to) {
		from, to, out, in = to, from, in, out
	}
	i := slices.IndexFunc(t.rows, func(r results.RegionLinks) bool { return r.From == from && r.To == to })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, results.RegionLinks{From: from, To: to, Out: out, In: in})
	}
	r := &t.rows[i]
	r.Pairs++
	if link.Undirected {
		r.Undirected++
	}
	if !link.Faulted {
		r.Add(link.Canary)
	}
	if !measured {
		return
	}
	if r.WorstPair == "" {
		r.ExpectedMinMillis, r.MeasuredMinMillis = link.ExpectedMillis, link.MeasuredMillis
	}
	r.ExpectedMinMillis, r.ExpectedMaxMillis = min(r.ExpectedMinMillis, link.ExpectedMillis), max(r.ExpectedMaxMillis, link.ExpectedMillis)
	r.MeasuredMinMillis, r.MeasuredMaxMillis = min(r.MeasuredMinMillis, link.MeasuredMillis), max(r.MeasuredMaxMillis, link.MeasuredMillis)
	if r.WorstPair == "" || abs(off) > abs(r.WorstErrorMillis) {
		r.WorstPair, r.WorstErrorMillis = pairName(p.a, p.b), off
	}
}
