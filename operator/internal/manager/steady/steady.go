// Package steady provides a clock that does not follow steps of the wall clock.
//
// Deadlines of trials are counted from instants in their status. NTP, or a virtual machine that
// resumes, may set the wall clock forward meanwhile. Every wait would then end at once.
package steady

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock starts with the wall clock's time at its first use, and then follows the monotonic clock.
// It follows the rate that NTP gives the monotonic clock, but no steps. A manager uses it from its
// election on. If the manager's machine sleeps, it loses the lead, and ends.
type Clock struct {
	clock.RealClock
	start func() time.Time
	since func(time.Time) time.Duration
}

var _ clock.Clock = Clock{}

// New returns a clock that starts at its first use.
func New() Clock {
	system := clock.RealClock{}
	return Clock{start: sync.OnceValue(system.Now), since: system.Since}
}

// Now returns the time of the start plus the time passed since then.
func (c Clock) Now() time.Time {
	start := c.start()
	return start.Add(c.since(start))
}

// Since returns the time passed since an instant of this clock.
func (c Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
