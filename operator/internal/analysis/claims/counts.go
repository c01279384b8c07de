package claims

import (
	"math"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// counted is what a rate is of in one trial: so many of all. False for a metric that is no rate.
func (m metric) counted(line results.TrialLine) (some, all int64, isRate bool) {
	switch m.name {
	case stats.AbortRate:
		return line.Aborted, stats.Ended(line), true
	case errorRate:
		return line.Errors + line.Timeouts + line.Unsent, stats.Ended(line) + line.Unsent, true
	}
	return 0, 0, false
}

// fewCases is below how many cases, or how many others, the deviation of trials says little about a
// rate.
const fewCases = 10

// bursty widens the interval of a single rate to that of cases that come in bursts. Where several
// rates are compared, bursts are on both sides, and the interval holds by itself.
func (r *readings) bursty(q quantity, e stats.Estimate) stats.Estimate {
	if len(q.gradient) != 1 {
		return e
	}
	for m, g := range q.gradient {
		var some, all []int64
		for _, line := range r.samples[m.point] {
			s, n, isRate := m.metric.counted(line)
			if !isRate {
				return e
			}
			some, all = append(some, s), append(all, n)
		}
		low, high, ok := stats.BurstyShare(some, all)
		if !ok || len(some) < 2 {
			return e
		}
		mean := meanOfShares(some, all)
		ends := []float64{q.value + g*(low-mean), q.value + g*(high-mean)}
		e.Low, e.High = math.Min(e.Low, slices.Min(ends)), math.Max(e.High, slices.Max(ends))
	}
	return e
}

func meanOfShares(some, all []int64) (mean float64) {
	for i := range some {
		mean += float64(some[i]) / float64(all[i]) / float64(len(some))
	}
	return mean
}

// atLeastExact widens an interval to that which the counts of its rates have by themselves, all
// trials of a point together, where there are few cases. Trials in each of which nothing failed do
// not vary, and do not show that nothing can fail: of 6,000 requests without an error, the rate may
// be 0.06%.
func (r *estimator) atLeastExact(q quantity, e stats.Estimate) stats.Estimate {
	if !e.Known || q.own != nil || q.unbounded {
		return e
	}
	e = r.bursty(q, e)
	var down, up float64
	for m, g := range q.gradient {
		var some, all int64
		for _, line := range r.samples[m.point] {
			s, n, isRate := m.metric.counted(line)
			if isRate {
				some, all = some+s, all+n
			}
		}
		if all == 0 || min(some, all-some) >= fewCases {
			continue
		}
		low, high := stats.ExactShare(some, all, r.level())
		share := float64(some) / float64(all)
		below, above := math.Abs(g)*(share-low), math.Abs(g)*(high-share)
		if g < 0 {
			below, above = above, below
		}
		down, up = math.Hypot(down, below), math.Hypot(up, above)
	}
	e.Low, e.High = math.Min(e.Low, e.Value-down), math.Max(e.High, e.Value+up)
	return e
}
