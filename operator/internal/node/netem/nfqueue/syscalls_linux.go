package nfqueue

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of the loop that never block bypass the scheduler (RawSyscall). Otherwise the scheduler
// would take the thread's processor away in the middle of a long call. Then the thread would wait
// for another processor, behind the agent's other work. Only poll blocks, so it does not bypass the
// scheduler.

// one is the value that wakes an eventfd.
var one = func() (b [8]byte) { binary.NativeEndian.PutUint64(b[:], 1); return b }()

func rawWrite(fd int, from []byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)))
	return errno
}

func rawRead(fd int, into []byte) {
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into)))
}

func rawReceive(fd int, headers []messageHeader) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&headers[0])), uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// rawSetTimer sets the timer to a time of its clock, in nanoseconds; 0 stops it. A timer that had
// expired is no longer readable.
func rawSetTimer(fd int, at int64) unix.Errno {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
	_, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	return errno
}

func poll(fds []unix.PollFd) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), 0, 0, 0, 0)
	return errno
}
