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

// WallAhead is how far a wall clock is ahead of CLOCK_MONOTONIC, in ns. Nil is this node's own,
// CLOCK_REALTIME. The two cannot be read at the same time. A thread on a busy node may lose the
// processor between the readings, for milliseconds. So the closest of a few readings counts.
func WallAhead(wall func() int64) int64 {
	const closeEnough, readings = int64(10 * time.Microsecond), 10
	if wall == nil {
		wall = realtime
	}
	var ahead, closest int64
	for i := range readings {
		before := Monotonic()
		now := wall()
		after := Monotonic()
		if i == 0 || after-before < closest {
			closest, ahead = after-before, now-(before+after)/2
		}
		if closest <= closeEnough {
			break
		}
	}
	return ahead
}

func realtime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &ts) // as Monotonic
	return ts.Nano()
}

// threadTime is the processor time of the calling thread, in ns. Only differences between calls on
// one thread are meaningful.
func threadTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // as Monotonic
	return ts.Nano()
}

// coarse is how long before the instant SleepUntil changes from a timer of the runtime, which ctx
// can cancel, to a timer of the kernel.
const coarse = 20 * time.Millisecond

// SleepUntil waits for an instant of CLOCK_MONOTONIC. The last stretch is one absolute
// clock_nanosleep on a thread of its own with the smallest timer slack. The kernel wakes such a
// thread within some ten microseconds. A timer of Go's runtime depends on Go's scheduler.
// SleepUntil returns at once for an instant in the past. Otherwise it returns early only with
// ctx.Err().
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
