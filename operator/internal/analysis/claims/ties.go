package claims

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// maxChoices is how many ways to choose points a quantity may have. With more there is no interval.
// maxTied is how many points may tie with the best. If there are more, those nearest to the best
// are taken.
const (
	maxChoices = 400
	maxTied    = 20
)

// below reports whether the trials show that a mean is less than factor times another.
func (r *estimator) below(p, q results.PointResult, m metric, factor float64) bool {
	of := func(p results.PointResult) quantity {
		input := mean{point: p.Index, metric: m}
		return quantity{value: r.meanOf(p, m), gradient: map[mean]float64{input: 1}, multiple: true}
	}
	difference := of(q).times(constant(factor, plain)).minus(of(p))
	if difference.value <= 0 {
		return false
	}
	d, _ := r.estimate(difference)
	return d.Known && d.Low > 0
}

// belowAny reports whether the trials show that a point has less throughput than one of others.
func (r *estimator) belowAny(p results.PointResult, others []results.PointResult) bool {
	return slices.ContainsFunc(others, func(q results.PointResult) bool { return r.below(p, q, metric{name: stats.Throughput}, 1) })
}

// byMean sorts points by their mean, the greatest first, since those show most.
func (r *readings) byMean(points []results.PointResult, m metric) []results.PointResult {
	return slices.SortedFunc(slices.Values(points), func(p, q results.PointResult) int { return cmp.Compare(r.meanOf(q, m), r.meanOf(p, m)) })
}

// meanOf is the mean of all trials of a point.
func (r *readings) meanOf(p results.PointResult, m metric) float64 {
	xs, _ := r.values(mean{point: p.Index, metric: m})
	return stats.Aggregate(xs).Mean
}

// bestOrTied returns the points that may be the best: the trials do not show that another point has
// a greater mean (a lesser one, if least). The best is one of them (Hsu, Multiple Comparisons,
// 1996, chapter 4, with each comparison at 97.5%). The interval of the best is the union over them.
// The interval of the point that merely looks best holds the best mean of eight equal points in 79
// to 86%.
func (r *estimator) bestOrTied(points []results.PointResult, m metric, least bool) []results.PointResult {
	best := r.byMean(points, m)
	if least {
		slices.Reverse(best)
	}
	return slices.DeleteFunc(slices.Clone(best), func(p results.PointResult) bool {
		return slices.ContainsFunc(best, func(q results.PointResult) bool {
			if least {
				return r.below(q, p, m, 1)
			}
			return r.below(p, q, m, 1)
		})
	})
}

// atKneeOrTied are the points that may be the knee. The trials do not show that their latency is
// beyond the knee's bound, twice the least. Nor do they show that another point is certainly within
// it and has more throughput. The argument least is the point with the least mean latency.
func (r *estimator) atKneeOrTied(points []results.PointResult, least results.PointResult) []results.PointResult {
	latency := metric{name: stats.MeanLatency}
	within := slices.DeleteFunc(r.byMean(points, metric{name: stats.Throughput}), func(p results.PointResult) bool {
		return p.Index != least.Index && !r.below(p, least, latency, stats.KneeFactor)
	})
	return slices.DeleteFunc(slices.Clone(points), func(p results.PointResult) bool {
		beyond := p.Index != least.Index && r.below(least, p, latency, 1.0/stats.KneeFactor)
		return beyond || r.belowAny(p, within)
	})
}

// choose returns the metric at the best point, with the metric at points that tie with it as
// alternatives.
func (r *pointReader) choose(best results.PointResult, tied []results.PointResult, what string, at func(results.PointResult) quantity) quantity {
	q := at(best)
	var names []string
	for _, p := range tied {
		if p.Index != best.Index && len(q.or) < maxTied-1 && len(r.samples[p.Index]) > 1 {
			q.or = append(q.or, at(p))
			names = append(names, showPoint(p.Coordinates))
		}
	}
	if len(names) > 0 {
		r.caveat(CaveatChosenPoint, fmt.Sprintf("%s may also be at %s, whose intervals are in that which is shown", what, strings.Join(names, " or at ")), names...)
	}
	return q
}
