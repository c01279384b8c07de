package claims

import (
	"math"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// counted returns the counts behind a rate in one trial: some of all. The result isRate is false
// for a metric that is no rate.
func (m metric) counted(line results.TrialLine) (some, all int64, isRate bool) {
	switch m.name {
	case stats.AbortRate:
		return line.Aborted, stats.Ended(line), true
	case errorRate:
		return line.Errors + line.Timeouts + line.Unsent, stats.Ended(line) + line.Unsent, true
	}
	return 0, 0, false
}

// With fewer than fewCases cases, or fewer than fewCases others, the deviation of trials says
// little about a rate.
const fewCases = 10

// bursty widens the interval of a single rate, since cases may come in bursts. If several rates are
// compared, bursts are on both sides, and the interval holds by itself.
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

// atLeastExact widens an interval with few cases to the exact interval of the counts, over all
// trials of a point together. Trials without any failure do not vary, but that does not show that
// nothing can fail. With 6,000 requests and no error, the rate may still be 0.06%.
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
