package probe

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// fifoPriority is below that of the thread that delays packets (nfqueue), and above everything
// without real-time priority.
const fifoPriority = 5

// ownThread gives the goroutine a thread for the rest of its life, at real-time priority where that
// is allowed (CAP_SYS_NICE). Beside a system that uses all processors, a probe is otherwise late by
// milliseconds that the network did not take. The thread does some ten microseconds' work for each
// packet.
func ownThread() {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, since no other may have its priority
	// Threads that this one starts do not inherit it.
	fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	_ = unix.SchedSetAttr(0, &fifo, 0)
}
