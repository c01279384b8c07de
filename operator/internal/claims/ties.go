package claims

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// maxChoices is how many ways to choose points a quantity may have. Beyond, there is no interval.
const maxChoices = 400

// below reports whether the trials show that a mean is less than factor times another.
func (r *run) below(p, q results.PointResult, m metric, factor float64) bool {
	of := func(p results.PointResult) quantity {
		input := mean{point: p.Index, metric: m}
		return quantity{value: r.meanIn(input, nil), gradient: map[mean]float64{input: 1}, multiple: true}
	}
	difference := of(q).times(constant(factor, plain)).minus(of(p))
	if difference.value <= 0 {
		return false
	}
	d, _ := r.estimate(difference)
	return d.Known && d.Low > 0
}

// belowAny reports whether the trials show that a point has less throughput than one of others.
func (r *run) belowAny(p results.PointResult, others []results.PointResult) bool {
	return slices.ContainsFunc(others, func(q results.PointResult) bool { return r.below(p, q, metric{name: stats.Throughput}, 1) })
}

// byThroughput are the points with the greatest mean throughput first, since those show most.
func (r *run) byThroughput(points []results.PointResult) []results.PointResult {
	of := func(p results.PointResult) float64 {
		return r.meanIn(mean{point: p.Index, metric: metric{name: stats.Throughput}}, nil)
	}
	return slices.SortedFunc(slices.Values(points), func(p, q results.PointResult) int { return cmp.Compare(of(q), of(p)) })
}

// atPeakOrTied are the points whose throughput the trials do not show to be less than that of
// another: the peak is one of them (Hsu, Multiple Comparisons, 1996, chapter 4, with each
// comparison at 97.5%). The interval of what is read at the peak is the union over them: throughput
// is flat there, latency is not.
func (r *run) atPeakOrTied(points []results.PointResult) []results.PointResult {
	best := r.byThroughput(points)
	return slices.DeleteFunc(slices.Clone(points), func(p results.PointResult) bool { return r.belowAny(p, best) })
}

// atKneeOrTied are the points that may be the knee: of which the trials do not show that their
// latency is beyond the knee's bound, twice the least, nor that another point is certainly within
// it and has more throughput. least is the point with the least mean latency.
func (r *run) atKneeOrTied(points []results.PointResult, least results.PointResult) []results.PointResult {
	latency := metric{name: stats.MeanLatency}
	within := slices.DeleteFunc(r.byThroughput(points), func(p results.PointResult) bool {
		return p.Index != least.Index && !r.below(p, least, latency, stats.KneeFactor)
	})
	return slices.DeleteFunc(slices.Clone(points), func(p results.PointResult) bool {
		beyond := p.Index != least.Index && r.below(least, p, latency, 1.0/stats.KneeFactor)
		return beyond || r.belowAny(p, within)
	})
}

// choose is what a metric is at the best point, or at those that tie with it.
func (r *run) choose(best results.PointResult, tied []results.PointResult, what string, at func(results.PointResult) quantity) quantity {
	q := at(best)
	var names []string
	for _, p := range tied {
		if p.Index != best.Index {
			q.or = append(q.or, at(p))
			names = append(names, showPoint(p.Coordinates))
		}
	}
	if len(names) > 0 {
		r.caveat(CaveatChosenPoint, fmt.Sprintf("%s may also be at %s, whose intervals are in that which is shown", what, strings.Join(names, " or at ")), names...)
	}
	return q
}
