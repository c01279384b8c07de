package nfqueue

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// fifoPriority is above all threads without real-time priority, and below the usual priority of
	// kernel threads.
	fifoPriority = 10
	// deadlinePeriod is also the deadline: a thread that is ready runs within it, whatever other
	// threads are ready.
	deadlinePeriod = time.Millisecond
	// sliceNanoseconds is the shortest time slice that kernels since 6.12 grant. A thread that asks
	// for less is chosen sooner after a wake-up.
	sliceNanoseconds = 100_000
)

// deadlineShares are the requested shares of a processor, in thousandths. The first one that the
// kernel grants counts. All pods of a node share about 0.9 of each processor. The shares are small,
// because the thread may use more while no other thread has a deadline (SCHED_FLAG_RECLAIM).
var deadlineShares = []uint64{50, 20, 10}

// The scheduling of a thread that delays packets, best first:
//
//   - SCHED_FIFO for all threads of the process. A garbage collection waits for each of them,
//     though it is rare here. SCHED_FIFO needs the capability SYS_NICE. Under cgroup v1 with
//     RT_GROUP_SCHED it also needs a cpu.rt_runtime_us, which no container runtime gives to a pod.
//   - SCHED_DEADLINE for the one thread. It needs SYS_NICE and all the processors of the machine
//     (no cpuset). No cgroup can withhold it.
//   - The highest nice value within the pod's share of the processors, and the shortest slice.

// prioritiseProcess tries the first, and otherwise the last. It returns the scheduling of the
// threads, and why it is not better ("" for the best).
func prioritiseProcess() (has, why string) {
	fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority}
	err := everyThread(&fifo)
	if err == nil {
		return fmt.Sprintf("SCHED_FIFO %d", fifoPriority), ""
	}
	why = fmt.Sprintf("SCHED_FIFO: %v", err)
	for _, nice := range []int32{-20, 0} {
		normal := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: nice, Runtime: sliceNanoseconds}
		if everyThread(&normal) == nil {
			return fmt.Sprintf("SCHED_OTHER, nice %d, slice %d us", nice, sliceNanoseconds/1000), why
		}
	}
	return "SCHED_OTHER", why
}

// prioritiseThread tries the second, for the calling thread, which never starts another.
func prioritiseThread() (has string, err error) {
	for _, share := range deadlineShares {
		attr := unix.SchedAttr{
			Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE, Flags: unix.SCHED_FLAG_RECLAIM | unix.SCHED_FLAG_RESET_ON_FORK,
			Runtime: uint64(deadlinePeriod) * share / 1000, Deadline: uint64(deadlinePeriod), Period: uint64(deadlinePeriod),
		}
		if err = unix.SchedSetAttr(0, &attr, 0); err == nil {
			return fmt.Sprintf("SCHED_DEADLINE, %d/1000 within %v", share, deadlinePeriod), nil
		}
	}
	return "", fmt.Errorf("SCHED_DEADLINE: %w; real-time priority needs the capability SYS_NICE", err)
}

func everyThread(attr *unix.SchedAttr) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetAttr(tid, attr, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
