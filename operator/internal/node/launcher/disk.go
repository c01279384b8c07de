package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// The sources of the numbers on a container's disks.
const (
	// DiskFromGroup: the bytes that the control group (version 2) has read from and written to
	// block devices.
	DiskFromGroup = "io.stat"
	// DiskFromProcesses: the bytes that processes have read from devices, and that they wrote to
	// the page cache for a device.
	DiskFromProcesses = "processes"
)

// disks counts the bytes that a container's processes read from block devices and wrote to them.
//
// With control groups of version 2, io.stat has them. Version 1 does not count writes that the
// kernel makes later from the page cache. From 6.10 on, kernels with version 1 count nothing there
// unless a limit is set. So disks adds up the accounts of the processes (/proc/PID/io). When a
// parent waits for a process, the kernel adds the account of the process to that of the parent. The
// launcher waits for orphans. So the sum loses only processes whose parents ignore their ends.
// Until the parent waits, the file belongs to root, and only a launcher that is root may read it.
//
// Without a control group, the container's processes are all those that /proc shows.
type disks struct {
	mu            sync.Mutex
	read, written int64
	stacked       map[string]bool // by a device's number
}

// ownDisks are the disks of this container.
var ownDisks disks

var errNoDisk = errors.New("the kernel keeps no account of disks: there is neither io.stat of the control group nor /proc/PID/io")

// measure reads the present numbers into u. root is the folder of /proc and /sys.
func (d *disks) measure(root string, g group, u *Usage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	read, written, err := d.ofGroup(root, g)
	from := DiskFromGroup
	if errors.Is(err, fs.ErrNotExist) {
		from = DiskFromProcesses
		read, written, err = ofProcesses(filepath.Join(root, "proc"), g.cpu) // of all processes, if there is no group
	}
	if err != nil {
		return err
	}
	// Between its end and its parent's wait, a process is in no account.
	d.read, d.written = max(d.read, read), max(d.written, written)
	u.DiskReadBytes, u.DiskWrittenBytes, u.DiskFrom = d.read, d.written, from
	return nil
}

// ofGroup reads io.stat, which has a line for each device:
//
//	8:0 rbytes=180224 wbytes=4096 rios=3 wios=1 dbytes=0 dios=0
//
// Device mapper, RAID and loop devices pass their bytes on to other devices, which count them
// again. So only the last devices count.
func (d *disks) ofGroup(root string, g group) (read, written int64, err error) {
	if g.version != 2 {
		return 0, 0, fs.ErrNotExist
	}
	content, err := os.ReadFile(filepath.Join(g.cpu, "io.stat"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || d.passesOn(root, fields[0]) {
			continue
		}
		for _, field := range fields[1:] {
			name, text, _ := strings.Cut(field, "=")
			into := map[string]*int64{"rbytes": &read, "wbytes": &written}[name]
			if into == nil {
				continue
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return 0, 0, fmt.Errorf("io.stat: %s: %w", name, err)
			}
			*into += n
		}
	}
	return read, written, nil
}

// awaited reports whether a process has ended and still waits for its parent to reap it.
func awaited(proc, pid string) bool {
	fields := statFields(filepath.Join(proc, pid, "stat"))
	return len(fields) == 0 || fields[0] == "Z" || fields[0] == "X"
}

// passesOn reports whether a device (major:minor) passes its bytes on to other devices.
func (d *disks) passesOn(root, device string) bool {
	if known, has := d.stacked[device]; has {
		return known
	}
	if d.stacked == nil {
		d.stacked = map[string]bool{}
	}
	dir := filepath.Join(root, "sys/dev/block", device)
	below, _ := os.ReadDir(filepath.Join(dir, "slaves"))
	d.stacked[device] = len(below) > 0 || exists(filepath.Join(dir, "loop/backing_file"))
	return d.stacked[device]
}

// ofProcesses adds up the accounts of the group's processes, or of all where there is no group.
func ofProcesses(proc, group string) (read, written int64, err error) {
	pids, err := members(proc, group)
	if err != nil {
		return 0, 0, fmt.Errorf("find the container's processes: %w", err)
	}
	found := false
	for _, pid := range pids {
		account, err := keyed(filepath.Join(proc, pid), "io", "read_bytes:", "write_bytes:")
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
			continue // it has ended meanwhile, or is in another PID namespace (0)
		case err != nil && awaited(proc, pid):
			continue // its parent soon gets its account
		case err != nil:
			return 0, 0, fmt.Errorf("the disk account of process %s: %w", pid, err)
		}
		if n, has := account["read_bytes:"]; has {
			found = true
			read, written = read+n, written+account["write_bytes:"]
		}
	}
	if !found {
		return 0, 0, errNoDisk
	}
	return read, written, nil
}
