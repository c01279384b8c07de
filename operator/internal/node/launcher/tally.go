package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// tally adds up the use of all processes in the container's PID namespace. It is for containers
// without a control group.
//
//	processor time = sum of utime + stime + cutime + cstime
//
// cutime and cstime are the times of children that have ended and were waited for. Orphans become
// the launcher's children. So the sum only misses the use of processes whose parent ignores
// SIGCHLD. The kernel gives times in ticks of 10 ms. Memory is the sum of resident pages. A shared
// page counts once for each process.
type tally struct {
	mu sync.Mutex
	// most is the largest sum of processor time so far. A process that ends during a reading may be
	// in no sum or in two.
	most int64
}

// ownTally is that of this container.
var ownTally tally

// tick of the times in /proc, in nanoseconds. It is the same on all architectures of Linux.
const tick = 10_000_000

// read adds up the use of the processes. It takes some 20 us for each process.
func (t *tally) read(proc string) (Usage, error) {
	u := Usage{AtMonotonicNanos: Monotonic()}
	page := int64(os.Getpagesize())
	found := false
	for _, pid := range numbers(proc) {
		at := filepath.Join(proc, strconv.Itoa(pid))
		stat, err := os.ReadFile(filepath.Join(at, "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		ticks, err := ticksOf(string(stat))
		if err != nil {
			return Usage{}, fmt.Errorf("%s/stat: %w", at, err)
		}
		found = true
		u.CPUNanos += ticks * tick
		pages, err := os.ReadFile(filepath.Join(at, "statm"))
		if err != nil {
			continue // likewise
		}
		if fields := strings.Fields(string(pages)); len(fields) > 1 {
			resident, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return Usage{}, fmt.Errorf("%s/statm: %w", at, err)
			}
			u.MemoryBytes += resident * page
		}
	}
	if !found {
		return Usage{}, fmt.Errorf("%s shows no process", proc)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most = max(t.most, u.CPUNanos)
	u.CPUNanos = t.most
	return u, nil
}

// ticksOf a process and of its children that were waited for. The name in parentheses may hold any
// text.
func ticksOf(stat string) (sum int64, err error) {
	const first, last = 11, 15 // utime, stime, cutime, cstime: fields 14 to 17; the caller has cut off the pid and the name
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < last {
		return 0, fmt.Errorf("it has %d fields", len(fields))
	}
	for _, field := range fields[first:last] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
