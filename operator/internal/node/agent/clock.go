package agent

import (
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
)

const (
	// clockSamples of one measurement, clockRefresh from one to the next.
	clockSamples = 8
	clockRefresh = 30 * time.Second
	// A best sample with an error above clockGood is poor: the machine was busy, or it is far from
	// the coordinator. The next measurement comes after clockSoon, at most clockPoor times in a
	// row.
	clockGood = 2 * time.Millisecond
	clockSoon = time.Second
	clockPoor = 8
	// clockDrift bounds how fast two clocks drift apart, as a fraction: the bound that makers of
	// common oscillators state.
	clockDrift = 50e-6
	// clockKept measurements compete for the best.
	clockKept = 8
)

// sample is one reading of the coordinator's clock: its Unix time = CLOCK_MONOTONIC + Offset,
// within Error. The coordinator read its clock somewhere between the request and the answer, so the
// middle is at most half the round trip away.
type sample struct {
	Offset int64 `json:"offset"`
	Error  int64 `json:"error"`
	At     int64 `json:"at"` // CLOCK_MONOTONIC
	// Manager whose clock was read.
	Manager string `json:"manager,omitempty"`
}

// good reports whether the agent may rest for clockRefresh after this sample.
func (s sample) good() bool { return s.Error <= int64(clockGood) }

// clock converts between the node's CLOCK_MONOTONIC and the coordinator's clock.
//
// Each manager has a clock of its own. Until a run is agreed, the agent uses samples of the current
// manager, and drops older samples of other managers. From then on it uses only the clock by which
// the run was agreed. A sample contradicts that clock if the clock was set, or if another manager
// took over. The agent does not use such samples, and remembers by how much they differ.
type clock struct {
	wall    func() time.Time
	mu      sync.Mutex
	samples []sample
	settled bool   // a run is agreed
	manager string // of the clock in use
	stepped time.Duration
}

// settle fixes the best clock that is known now as the clock of the run.
func (c *clock) settle() {
	best, known := c.best()
	c.mu.Lock()
	defer c.mu.Unlock()
	if known && !c.settled {
		c.settled, c.manager = true, best.Manager
	}
}

// base returns the manager whose clock the run uses, and by how much samples contradicted that
// clock.
func (c *clock) base() (manager string, stepped time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.manager, c.stepped
}

func (c *clock) add(s sample) {
	best, known := c.best()
	apart := max(s.Offset-best.Offset, best.Offset-s.Offset) - s.Error - best.Error
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !known:
	case c.settled && apart > 0:
		c.stepped = max(c.stepped, time.Duration(apart))
		return
	case !c.settled && (apart > 0 || s.Manager != best.Manager):
		c.samples = nil
	}
	c.samples = append(c.samples, s)
	if extra := len(c.samples) - clockKept; extra > 0 {
		c.samples = c.samples[extra:]
	}
}

// best returns the sample with the smallest error now: the error of an old sample has grown by the
// drift since.
func (c *clock) best() (best sample, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := launcher.Monotonic()
	for _, s := range c.samples {
		s.Error += int64(float64(now-s.At) * clockDrift)
		if !known || s.Error < best.Error {
			best, known = s, true
		}
	}
	return best, known
}

// monotonic converts an instant of the coordinator's clock.
func (c *clock) monotonic(unixNanos int64) int64 {
	s, _ := c.best()
	return unixNanos - s.Offset
}

// since converts an instant of CLOCK_MONOTONIC to the time since an instant of the coordinator's
// clock.
func (c *clock) since(unixNanos, monotonic int64) time.Duration {
	s, _ := c.best()
	return time.Duration(monotonic + s.Offset - unixNanos)
}

// wallOffset is what must be added to the pod's wall clock to get the coordinator's, and the error
// of that offset.
func (c *clock) wallOffset() (offset, within time.Duration) {
	s, known := c.best()
	if !known {
		return 0, 0
	}
	ahead := launcher.WallAhead(func() int64 { return c.wall().UnixNano() })
	return time.Duration(s.Offset - ahead), time.Duration(s.Error)
}
