package loadgen

import "time"

// clock tells instants relative to t = 0.
type clock struct{ zero time.Time }

// clockAt returns a clock whose t = 0 is an instant of CLOCK_MONOTONIC, which is also what package time's monotonic reading counts.
func clockAt(zeroMonotonicNanos int64) clock {
	now, mono := time.Now(), MonotonicNanos()
	return clock{zero: now.Add(time.Duration(zeroMonotonicNanos - mono))}
}

// now costs one reading of the monotonic clock, half of what time.Now costs.
func (c clock) now() time.Duration { return time.Since(c.zero) }
