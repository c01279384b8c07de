// Package testseries reads latencies and rates from the results of a trial, for tests on machines
// that others share. Such a machine only adds to latencies. So tests compare low quantiles: a delay
// by the system itself is in every transaction. It is for tests only.
package testseries

import (
	"fmt"
	"math"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// Quantile is a percentile of the latencies of a trial's window, in ms. It returns an error if the
// trial has no latencies.
func Quantile(r results.Trial, percent float64) (float64, error) {
	h, err := results.DecodeHistogram(r.Latency)
	if err != nil {
		return 0, fmt.Errorf("latencies of %s: %w", r.Name, err)
	}
	if h.Count() == 0 {
		return 0, fmt.Errorf("%s has no latencies", r.Name)
	}
	return millis(h.Percentile(percent)), nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Latencies are the mean latencies of the bins of an interval, in ms. A bin without a commit has
// the latency of the bin before it.
func Latencies(r results.Trial, from, to time.Duration) []float64 {
	var bins []float64
	last := 0.0
	for at := from; at < to; at += results.TimelineInterval {
		if mean := MeanLatency(r, at, at+results.TimelineInterval); mean > 0 {
			last = mean
		}
		bins = append(bins, last)
	}
	return bins
}

// LowLatency is the lower quartile of an interval's latencies, over the bins with a commit, in ms.
// 0: there were no commits.
func LowLatency(r results.Trial, from, to time.Duration) float64 {
	bins := slices.DeleteFunc(Latencies(r, from, to), func(ms float64) bool { return ms == 0 })
	if len(bins) == 0 {
		return 0
	}
	slices.Sort(bins)
	return bins[len(bins)/4]
}

// MeanLatency of the transactions that were committed in the interval, in ms. 0: there were none.
func MeanLatency(r results.Trial, from, to time.Duration) float64 {
	sum, n := int64(0), int64(0)
	for i, committed := range r.Timeline.Committed {
		if at := begin(r, i); at >= from && at < to {
			sum += r.Timeline.LatencySumMicros[i]
			n += committed
		}
	}
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n) / 1000
}

// begin of a bin of the timeline.
func begin(r results.Trial, bin int) time.Duration {
	return time.Duration(r.Timeline.FirstMillis+int64(bin)*r.Timeline.IntervalMillis) * time.Millisecond
}

// Committed counts the transactions that were committed in the interval.
func Committed(r results.Trial, from, to time.Duration) int64 {
	n := int64(0)
	for i, committed := range r.Timeline.Committed {
		if at := begin(r, i); at >= from && at < to {
			n += committed
		}
	}
	return n
}

// UsuallyCommitted is the median number of commits in half a second of the interval.
func UsuallyCommitted(r results.Trial, from, to time.Duration) float64 {
	const bin = 500 * time.Millisecond
	var bins []float64
	for at := from; at < to; at += bin {
		bins = append(bins, float64(Committed(r, at, at+bin)))
	}
	return Median(bins)
}

// Jump is the instant that divides the latencies of an interval best in two: the change point with
// the least absolute error around two medians. It counts at most ceiling ms for a bin. Otherwise a
// stall of the machine, which makes latencies many times larger than the jump does, would look like
// the jump.
func Jump(r results.Trial, from, to time.Duration, ceiling float64) time.Duration {
	bins := Latencies(r, from, to)
	for i := range bins {
		bins[i] = min(bins[i], ceiling)
	}
	best, least := from, math.Inf(1)
	for i := 1; i < len(bins); i++ {
		if err := absoluteError(bins[:i]) + absoluteError(bins[i:]); err < least {
			best, least = from+time.Duration(i)*results.TimelineInterval, err
		}
	}
	return best
}

// absoluteError of values around their median.
func absoluteError(values []float64) float64 {
	middle, err := Median(values), 0.0
	for _, v := range values {
		err += math.Abs(v - middle)
	}
	return err
}

// Median of values, the upper one of an even number. 0: there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
