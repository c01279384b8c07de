package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// waits adds up how long the threads of a control group were runnable and had no processor. The
// kernel keeps that number for each thread, and forgets it when the thread ends. So waits remembers
// the last readings. The wait of a thread between its last reading and its end is lost. A thread
// that lives only between two readings is not counted.
type waits struct {
	mu      sync.Mutex
	threads map[string]int64 // ID: nanoseconds waited since the thread began, as last read
	total   int64
}

// ownWaits are the waits of this container.
var ownWaits waits

// errNoWaits is the error on a kernel without CONFIG_SCHED_INFO, and in a sandbox such as gVisor.
var errNoWaits = errors.New("the kernel does not tell how long threads wait for a processor (/proc/PID/schedstat)")

// read adds what threads of the control group have waited since the last reading. proc is /proc,
// and group the directory of the control group. An empty group means all processes in proc. A
// reading takes some 5 us for each thread.
func (w *waits) read(proc, group string) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ran, _, err := schedstat(filepath.Join(proc, "self/schedstat")); err != nil || ran == 0 {
		return 0, errNoWaits // this process runs, so a kernel that counts does not return 0
	}
	pids, err := members(proc, group)
	if err != nil {
		return 0, fmt.Errorf("find the container's processes: %w", err)
	}
	threads := map[string]int64{}
	for _, pid := range pids {
		tasks, err := os.ReadDir(filepath.Join(proc, pid, "task"))
		if err != nil {
			continue // it has ended meanwhile, or is in another PID namespace (0)
		}
		for _, t := range tasks {
			_, waited, err := schedstat(filepath.Join(proc, pid, "task", t.Name(), "schedstat"))
			if err != nil {
				continue // it has ended meanwhile
			}
			threads[t.Name()] = waited
			if before := w.threads[t.Name()]; waited >= before {
				w.total += waited - before
			} else {
				w.total += waited // another thread has got the ID
			}
		}
	}
	w.threads = threads
	return w.total, nil
}

// members of a control group. Without a group: all processes.
func members(proc, group string) (pids []string, err error) {
	if group != "" {
		text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		return strings.Fields(string(text)), err
	}
	for _, pid := range numbers(proc) {
		pids = append(pids, strconv.Itoa(pid))
	}
	return pids, nil
}

// schedstat reads two of the three numbers of the file: nanoseconds on a processor, and runnable
// without one (Documentation/scheduler/sched-stats.rst of Linux).
func schedstat(file string) (ran, waited int64, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(content))
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("%s has %d numbers; there must be 3", file, len(fields))
	}
	ran, errRan := strconv.ParseInt(fields[0], 10, 64)
	waited, errWaited := strconv.ParseInt(fields[1], 10, 64)
	return ran, waited, errors.Join(errRan, errWaited)
}
