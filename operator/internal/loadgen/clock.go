package loadgen

import "time"

// clockAt returns a clock that tells instants relative to a t = 0 on CLOCK_MONOTONIC, which is also what package time's monotonic
// reading counts. A call costs one reading of the clock, half of what time.Now costs.
func clockAt(zeroMonotonicNanos int64) func() time.Duration {
	now, mono := time.Now(), MonotonicNanos()
	zero := now.Add(time.Duration(zeroMonotonicNanos - mono))
	return func() time.Duration { return time.Since(zero) }
}
