package launcher

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic reads CLOCK_MONOTONIC, which all processes of a node share.
func Monotonic() int64 {
	var ts unix.Timespec
	// It cannot fail: the clock exists on every Linux and the pointer is good.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// coarse is how long before the instant SleepUntil changes from a timer of the runtime, which can be called off, to one of the kernel.
const coarse = 20 * time.Millisecond

// SleepUntil waits for an instant of CLOCK_MONOTONIC. The last stretch is one absolute clock_nanosleep on a thread of its own with the
// smallest timer slack: the kernel wakes such a thread within some ten microseconds, where a timer of Go's runtime depends on its scheduler.
// It returns at once for an instant in the past, and early only with ctx.Err().
func SleepUntil(ctx context.Context, at int64) error {
	if d := time.Duration(at-Monotonic()) - coarse; d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Best effort: without it the kernel may be 50 us late.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ts := unix.NsecToTimespec(at)
	for Monotonic() < at {
		// EINTR is the only error that a valid instant can have.
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
	}
	return nil
}
