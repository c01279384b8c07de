// Package steady is a clock that no step of the wall clock moves.
//
// Deadlines of trials are counted from instants in their status. A wall clock that is set forward
// in the meantime, by NTP or by a virtual machine that resumes, would end every wait at once.
package steady

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock shows the wall clock's time of its first use, and counts on by the monotonic clock. It
// follows the rate that NTP gives that clock, and no step. A manager uses it from its election on;
// one whose machine sleeps meanwhile loses the lead, and ends.
type Clock struct {
	clock.RealClock
	start func() time.Time
	since func(time.Time) time.Duration
}

var _ clock.Clock = Clock{}

// New makes a clock that starts when it is first asked.
func New() Clock {
	system := clock.RealClock{}
	return Clock{start: sync.OnceValue(system.Now), since: system.Since}
}

// Now is the time of the start and what has passed since.
func (c Clock) Now() time.Time {
	start := c.start()
	return start.Add(c.since(start))
}

// Since is the time that has passed since an instant of this clock.
func (c Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
