package loadgen

import "time"

// clock is the clock by which a run reads the time and sleeps. A real run uses the system's clock.
// Tests of whole runs pass a clock with virtual time.
type clock struct {
	monotonic func() int64            // nanoseconds on the clock of start files
	newAlarm  func() (sleeper, error) // for one goroutine
}

// sleeper lets one goroutine sleep.
type sleeper interface {
	// sleep returns d later, or at once when d is not above 0.
	sleep(d time.Duration) error
	close()
}

func systemClock() clock {
	return clock{monotonic: MonotonicNanos, newAlarm: func() (sleeper, error) { return newAlarm() }}
}

// at returns a clock relative to t = 0, which is given on CLOCK_MONOTONIC. The monotonic time of
// package time is the same clock. A call costs one reading of the clock, half as much as time.Now.
func (c clock) at(zeroMonotonicNanos int64) func() time.Duration {
	now, mono := time.Now(), c.monotonic()
	zero := now.Add(time.Duration(zeroMonotonicNanos - mono))
	return func() time.Duration { return time.Since(zero) }
}
