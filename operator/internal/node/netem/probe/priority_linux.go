package probe

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// fifoPriority is below the priority of the thread that delays packets (nfqueue), and above all
// threads without real-time priority.
const fifoPriority = 5

// ownThread gives the goroutine a thread for the rest of its life, at real-time priority if that is
// allowed (CAP_SYS_NICE). Otherwise, beside a system that uses all processors, a probe is late by
// milliseconds that the network did not take. The thread works some ten microseconds for each
// packet.
func ownThread() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, since no other goroutine may have its priority
	// Threads that this thread starts do not inherit the priority.
	fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	_ = unix.SchedSetAttr(0, &fifo, 0)
}
