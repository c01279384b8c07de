package validity

import (
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// network describes the trial's links, as asked and as measured. Nil: they have not been measured.
func (o *Observation) network() *results.Network {
	if len(o.Pairs) == 0 || o.Trial.Status.Network == nil {
		return nil
	}
	n := &results.Network{Backend: string(o.Trial.Status.Network.Backend)}
	for i := range o.Pods {
		rep := o.Pods[i].Network()
		if rep == nil {
			continue
		}
		n.ApplyMillis, n.ProveMillis = max(n.ApplyMillis, results.Millis(rep.ApplyTook)), max(n.ProveMillis, results.Millis(rep.ProveTook))
		n.Rounds, n.Dropped = max(n.Rounds, rep.Rounds), n.Dropped+rep.Dropped
		n.LateP99Millis, n.LateMillis = max(n.LateP99Millis, results.Millis(rep.LateP99)), max(n.LateMillis, results.Millis(rep.Late))
	}
	faulted := o.Faulted()
	n.Pairs = len(o.Pairs)
	byRegion := regionTable{}
	for _, p := range o.Pairs {
		link, off, measured := p.link()
		link.Faulted, link.Undirected = faulted.Pair(p.A, p.B), p.undirected()
		if link.Undirected {
			n.Undirected++
		}
		if n.Pairs <= results.MaxLinks {
			n.Links = append(n.Links, link)
		}
		if measured && (n.WorstPair == "" || abs(off) > abs(n.WorstErrorMillis)) {
			n.WorstPair, n.WorstErrorMillis = pairName(p.A, p.B), off
		}
		byRegion.add(p, link, off, measured)
	}
	n.Regions = byRegion.rows
	return n
}

func pairName(a, b string) string { return fmt.Sprintf("%s <-> %s", a, b) }

// link describes a pair. It has the round trip of the end with the greater error, the one-way times
// from the ends that know them, and the canaries of both. The result off is in milliseconds. The
// result measured is false if no end has measured, or if none can, since a link is cut.
func (p Pair) link() (link results.Link, off float64, measured bool) {
	link = results.Link{From: p.A, To: p.B, Out: asked(p.Out), In: asked(p.In), ExpectedMillis: results.Millis(p.Out.Delay + p.In.Delay)}
	for _, v := range p.Views() {
		if v.Said == nil {
			continue
		}
		link.Add(canary(v.Said))
		if d := results.Millis(v.off()); !v.Cut() && v.Said.RTT > 0 && (!measured || abs(d) > abs(off)) {
			off, measured = d, true
			link.BaselineMillis, link.ExpectedMillis, link.MeasuredMillis = results.Millis(v.Said.BaselineRTT), results.Millis(v.expected()), results.Millis(v.Said.RTT)
		}
	}
	first := func(one, other func(*protocol.LinkReport) time.Duration) float64 {
		if p.ByA != nil && one(p.ByA) > 0 {
			return results.Millis(one(p.ByA))
		}
		if p.ByB != nil {
			return results.Millis(other(p.ByB))
		}
		return 0
	}
	out, in := func(l *protocol.LinkReport) time.Duration { return l.OutDelay }, func(l *protocol.LinkReport) time.Duration { return l.InDelay }
	link.OutMillis, link.InMillis = first(out, in), first(in, out)
	return link, off, measured
}

func asked(l shaping.Link) results.LinkAsked {
	return results.LinkAsked{DelayMillis: results.Millis(l.Delay), JitterMillis: results.Millis(l.Jitter), Loss: l.Loss, RateBits: l.Rate}
}

func canary(l *protocol.LinkReport) results.Canary {
	return results.Canary{
		CanarySent: l.CanarySent, CanaryLost: l.CanaryLost,
		CanaryMinMillis: results.Millis(l.CanaryMin), CanaryMedianMillis: results.Millis(l.CanaryMedian), CanaryMaxMillis: results.Millis(l.CanaryMax),
	}
}

func abs(x float64) float64 { return max(x, -x) }

// regionTable puts pairs together by the regions of their ends, in the order in which the regions
// come in the layout.
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

func (t *regionTable) add(p Pair, link results.Link, off float64, measured bool) {
	from, to, out, in := p.RegionA, p.RegionB, link.Out, link.In
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
		r.WorstPair, r.WorstErrorMillis = pairName(p.A, p.B), off
	}
}
