package model

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// pointLatency is a PointLatency in the making.
type pointLatency struct {
	results.PointLatency
	histogram *results.Histogram
}

// addLatency takes in the histogram of a valid trial. A trial whose histogram is missing or
// unreadable is left out and named. The trial's numbers were checked against the histogram when
// they were made.
func (d *Details) addLatency(t results.Trial) {
	if t.Latency == "" {
		switch {
		case slices.Contains(t.LeftOut, "latency"):
			d.noLatency = append(d.noLatency, t.Name+" (it did not fit)")
		case t.Summary.Committed > 0:
			d.noLatency = append(d.noLatency, t.Name)
		}
		return
	}
	h, err := results.DecodeHistogram(t.Latency)
	if err != nil {
		d.noLatency = append(d.noLatency, t.Name+" (it cannot be read)")
		return
	}
	if h.Count() == 0 {
		return
	}
	if d.p95 == nil {
		d.p95 = map[string]float64{}
	}
	d.p95[t.Name] = results.Millis(h.Percentile(95))
	i := slices.IndexFunc(d.latencies, func(p *pointLatency) bool { return p.Point == t.PointIndex })
	if i < 0 {
		d.latencies = append(d.latencies, &pointLatency{PointLatency: results.PointLatency{Point: t.PointIndex, Coordinates: t.Coordinates, Trials: 1}, histogram: h})
		return
	}
	d.latencies[i].Trials++
	d.latencies[i].histogram.Merge(h)
}

// mostWithout is how many trials without a histogram are named.
const mostWithout = 10

// withoutLatency says which valid trials are in no distribution, if there are any.
func (d *Details) withoutLatency() []string {
	n := len(d.noLatency)
	if n == 0 {
		return nil
	}
	slices.Sort(d.noLatency)
	named := slices.Clone(d.noLatency[:min(n, mostWithout)])
	if n > mostWithout {
		named = append(named, fmt.Sprintf("and %d more", n-mostWithout))
	}
	return []string{fmt.Sprintf("the latencies of %s from the distributions, since their histograms are not in their results: %s", Count(n, "trial"), strings.Join(named, ", "))}
}

// percentiles at which a distribution is kept: every whole one. Above the 99th, each step leaves a
// tenth of the rest.
var percentiles = func() []float64 {
	var ps []float64
	for p := 1; p <= 99; p++ {
		ps = append(ps, float64(p))
	}
	for p := 1; p <= 9; p++ {
		ps = append(ps, 99+float64(p)/10)
	}
	return append(ps, 99.95, 99.99)
}()

// distribution reads the percentiles from the merged histogram. It leaves out percentiles for which
// there are too few transactions: the last one is at most 1 - 1/n.
func (p *pointLatency) distribution() results.PointLatency {
	l := p.PointLatency
	l.Count = p.histogram.Count()
	for _, q := range percentiles {
		if q > 100*(1-1/float64(l.Count)) {
			break
		}
		l.Percentiles, l.Millis = append(l.Percentiles, q), append(l.Millis, float64(p.histogram.Percentile(q).Microseconds())/1e3)
	}
	return l
}
