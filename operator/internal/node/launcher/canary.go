package launcher

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// canaryEvery is how often the canary wakes up, and canaryLate how late it is when it counts as
	// late. A thread that wakes up on a free processor runs within 0.1 ms, or within 0.3 ms on a
	// virtual processor that slept. A program that never sleeps keeps its processor for some 3 ms
	// at a time.
	canaryEvery = 25 * time.Millisecond
	canaryLate  = time.Millisecond
	// canaryLife is how long the canary lives after the last request for its counts.
	canaryLife = 10 * time.Second
)

// canary is a thread in the container. It wakes up at instants that do not depend on the system's
// work. It notes how often it had to wait for a processor. The system's own threads wake each other
// up, many at a time, and wait for each other. So their waits do not show whether other programs
// hold the processors.
type canary struct {
	mu          sync.Mutex
	lives       bool
	asked       time.Duration // on CLOCK_MONOTONIC
	wakes, late int64
}

var ownCanary canary

// count returns how often the canary has woken up, and how often it was late, since the launcher
// began. It starts the canary if it does not run.
func (c *canary) count() (wakes, late int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = time.Duration(Monotonic())
	if !c.lives {
		c.lives = true
		go c.live()
	}
	return c.wakes, c.late
}

// live wakes up again and again. The goroutine has its thread for itself, and the kernel wakes it,
// so it waits for no other goroutine.
func (c *canary) live() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for next := time.Duration(Monotonic()); ; {
		next += canaryEvery
		until := unix.NsecToTimespec(next.Nanoseconds())
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) == unix.EINTR {
		}
		now := time.Duration(Monotonic())
		if !c.note(now, now-next) {
			return
		}
		next = max(next, now-canaryEvery) // missed times are skipped
	}
}

// note counts one time that the canary woke up, and reports whether the canary must go on.
func (c *canary) note(now, late time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakes++
	if late > canaryLate {
		c.late++
	}
	c.lives = now-c.asked < canaryLife
	return c.lives
}
