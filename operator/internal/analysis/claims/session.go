package claims

import (
	"math"

	"assay.dev/assay/operator/internal/results/stats"
)

// oneSession is what a verdict about an absolute number says.
const oneSession = "an absolute number, of this session: the interval says how its trials differ, and not what the machines do in another hour; a quotient of two points would hold for both"

// searchOfOneSession is what a verdict about a capacity says. The interval of a search holds 83% of
// capacities where good hours last as long as the search. No search can see an hour that all of its
// trials share.
const searchOfOneSession = "a capacity of this session: the interval does not say what the machines carry in another hour, and cannot where a good hour lasts as long as the search"

// ofOneSession reports whether a quantity depends on how fast the machines are on the whole. It
// does if it would move by more than half of 1% of its parts when all means become 1% greater. A
// mean does, and a sum. A difference of like means and a quotient do not. Rates and recoveries do
// not either, since a slower hour does not scale them.
func ofOneSession(q quantity, r *readings) bool {
	var moved, all float64
	for m, g := range q.gradient {
		if !m.metric.ofSpeed() {
			return false
		}
		xs, _ := r.values(m)
		x := g * stats.Aggregate(xs).Mean
		moved, all = moved+x, all+math.Abs(x)
	}
	return all > 0 && math.Abs(moved) > all/2
}

// ofSpeed reports whether a metric is one of how fast the system is.
func (m metric) ofSpeed() bool {
	_, percentile := latencies[m.name]
	return percentile || m.name == stats.MeanLatency || m.name == stats.Throughput || m.name == perCorrectClient
}
