package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Measure asks for the container's use so far (Response.Usage). The launcher reads it, since a
// container sees only its own control group. The agent is in a container of its own, and cannot
// read it.
type Measure struct{}

// Usage is what a container has used since it started, by the kernel's counters of its control
// group. It includes the launcher's own part, at most a few hundred microseconds a second. The
// counters start at 0 with the container.
type Usage struct {
	// AtMonotonicNanos is when it was read, on CLOCK_MONOTONIC.
	AtMonotonicNanos int64 `json:"at"`
	// CPUNanos is processor time, of all its processes.
	CPUNanos int64 `json:"cpu"`
	// QuotaNanos of processor time may be used in each period of PeriodNanos; 0: there is no limit.
	QuotaNanos  int64 `json:"quota,omitempty"`
	PeriodNanos int64 `json:"period,omitempty"`
	// Periods with the limit in force, how many of them reached the limit, and how long processes
	// were held back, added up over processors.
	Periods          int64 `json:"periods,omitempty"`
	ThrottledPeriods int64 `json:"throttled,omitempty"`
	ThrottledNanos   int64 `json:"throttledNanos,omitempty"`
	// MemoryBytes is the working set: all memory except file pages that have not been used lately.
	// The kubelet uses the same definition.
	MemoryBytes int64 `json:"memory"`
	// PeakBytes is the most that the kernel ever counted, with all file pages. 0: this kernel has
	// no such counter (version 2 before Linux 5.19).
	PeakBytes int64 `json:"peak,omitempty"`
	// LimitBytes is the most memory that the container may take; 0: there is no limit.
	LimitBytes int64 `json:"limit,omitempty"`
	// Wakes is how often the launcher's canary has woken up, and LateWakes how often more than a
	// millisecond late.
	Wakes     int64 `json:"wakes,omitempty"`
	LateWakes int64 `json:"lateWakes,omitempty"`
	// WaitedNanos is how long its threads were runnable and had no processor, added up over
	// threads. WaitsUnknown says why that is unknown; empty: it is known.
	WaitedNanos  int64  `json:"waited,omitempty"`
	WaitsUnknown string `json:"waitsUnknown,omitempty"`
	// CacheBytes are the file pages in memory. MemoryBytes includes the ones that were used lately.
	CacheBytes int64 `json:"cache,omitempty"`
	// DiskReadBytes and DiskWrittenBytes are read from and written to block devices. Their source
	// is DiskFromGroup or DiskFromProcesses. DiskUnknown says why they are unknown; empty: they are
	// known.
	DiskReadBytes    int64  `json:"diskRead,omitempty"`
	DiskWrittenBytes int64  `json:"diskWritten,omitempty"`
	DiskFrom         string `json:"diskFrom,omitempty"`
	DiskUnknown      string `json:"diskUnknown,omitempty"`
}

// ownGroup is searched for once: a container stays in its control group.
var ownGroup = sync.OnceValues(func() (group, error) { return findGroup("/") })

// measure reads the container's control group. If there is none, it adds up over the processes.
func (o Options) measure() (Usage, error) {
	if !o.NoControlGroup {
		return measure()
	}
	u, err := ownTally.read("/proc")
	if err != nil {
		return Usage{}, err
	}
	u.see("")
	if err := ownDisks.measure("/", group{}, &u); err != nil {
		u.DiskUnknown = err.Error()
	}
	return u, nil
}

// measure reads the container's control group.
func measure() (Usage, error) {
	g, err := ownGroup()
	if err != nil {
		return Usage{}, err
	}
	u, err := g.read()
	if err != nil {
		return Usage{}, err
	}
	u.see(g.cpu)
	if err := ownDisks.measure("/", g, &u); err != nil {
		u.DiskUnknown = err.Error()
	}
	return u, nil
}

// see reads how the processes of a control group shared the processors. An empty group means all
// processes.
func (u *Usage) see(group string) {
	var err error
	u.Wakes, u.LateWakes = ownCanary.count()
	if u.WaitedNanos, err = ownWaits.read("/proc", group); err != nil {
		u.WaitsUnknown = err.Error()
	}
}

// group has the directories of a control group's counters. In version 1 each controller may have a
// hierarchy of its own, so there are three directories. In version 2 all three are the same.
type group struct {
	version              int
	cpu, cpuacct, memory string
}

// errNoGroup is for other sandboxes, such as gVisor, where the group's files may be missing.
var errNoGroup = errors.New("the container does not see its control group under /sys/fs/cgroup")

// findGroup finds the control group of this process. The path in /proc/self/cgroup is relative to
// the root of the hierarchy, and a container may see only a part of the hierarchy. The file
// mountinfo says which part each mount shows. The argument root is the folder of /proc and /sys;
// tests use one of their own.
func findGroup(root string) (group, error) {
	paths, err := groupPaths(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return group{}, err
	}
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return group{}, fmt.Errorf("find the control group: %w", err)
	}
	g := group{}
	unified := ""
	for line := range strings.Lines(string(mounts)) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		if m.kind == "cgroup2" {
			unified = below(root, m, paths[""])
			continue
		}
		for _, controller := range m.options {
			dir := below(root, m, paths[controller])
			switch controller {
			case "cpu":
				g.cpu = dir
			case "cpuacct":
				g.cpuacct = dir
			case "memory":
				g.memory = dir
			}
		}
	}
	switch {
	case g.cpu != "" && g.cpuacct != "" && g.memory != "":
		g.version = 1
	case unified != "" && exists(filepath.Join(unified, "cpu.stat")):
		g = group{2, unified, unified, unified}
	default:
		return group{}, errNoGroup
	}
	return g, nil
}

// groupPaths reads the path of this process in each hierarchy, by controller. The hierarchy of
// version 2 has no controller's name.
func groupPaths(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("find the control group: %w", err)
	}
	paths := map[string]string{}
	for line := range strings.Lines(string(content)) {
		// hierarchy:controller,controller:path
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	return paths, nil
}

// mount is a line of mountinfo about control groups.
type mount struct {
	root, point string // what is mounted, and where
	kind        string // cgroup or cgroup2
	options     []string
}

func parseMount(line string) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 6 || len(right) < 3 || right[0] != "cgroup" && right[0] != "cgroup2" {
		return mount{}, false
	}
	return mount{left[3], left[4], right[0], strings.Split(right[2], ",")}, true
}

// below is the directory under a mount for a path of the hierarchy. The mount shows the hierarchy
// from m.root on. If the mount does not show the path, the process sees its own group as the root.
func below(root string, m mount, path string) string {
	top := filepath.Join(root, m.point)
	if relative, ok := strings.CutPrefix(path, strings.TrimSuffix(m.root, "/")); ok && relative != "" {
		if dir := filepath.Join(top, relative); exists(dir) {
			return dir
		}
	}
	return top
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// read reads all counters. It takes some 100 us.
func (g group) read() (Usage, error) {
	u := Usage{AtMonotonicNanos: Monotonic()}
	var err error
	if g.version == 1 {
		err = g.readFirst(&u)
	} else {
		err = g.readSecond(&u)
	}
	if err != nil {
		return Usage{}, fmt.Errorf("read the control group: %w", err)
	}
	return u, nil
}

// readFirst reads version 1, whose times are nanoseconds and whose limits microseconds.
func (g group) readFirst(u *Usage) error {
	cpu, err := keyed(g.cpu, "cpu.stat", "nr_periods", "nr_throttled", "throttled_time")
	if err != nil {
		return err
	}
	u.Periods, u.ThrottledPeriods, u.ThrottledNanos = cpu["nr_periods"], cpu["nr_throttled"], cpu["throttled_time"]
	if u.CPUNanos, err = number(g.cpuacct, "cpuacct.usage"); err != nil {
		return err
	}
	quota, err := number(g.cpu, "cpu.cfs_quota_us")
	if err != nil {
		return err
	}
	period, err := number(g.cpu, "cpu.cfs_period_us")
	if err != nil {
		return err
	}
	if quota > 0 {
		u.QuotaNanos, u.PeriodNanos = quota*1000, period*1000
	}
	stat, err := keyed(g.memory, "memory.stat", "total_inactive_file", "total_cache")
	if err != nil {
		return err
	}
	used, err := number(g.memory, "memory.usage_in_bytes")
	if err != nil {
		return err
	}
	u.MemoryBytes, u.CacheBytes = max(0, used-stat["total_inactive_file"]), stat["total_cache"]
	if limit, err := number(g.memory, "memory.limit_in_bytes"); err == nil && limit < unlimited {
		u.LimitBytes = limit
	}
	u.PeakBytes, err = number(g.memory, "memory.max_usage_in_bytes")
	return err
}

// readSecond reads version 2, whose times are microseconds. The root group has no limits and no
// memory counters.
func (g group) readSecond(u *Usage) error {
	cpu, err := keyed(g.cpu, "cpu.stat", "usage_usec", "nr_periods", "nr_throttled", "throttled_usec")
	if err != nil {
		return err
	}
	u.CPUNanos, u.Periods, u.ThrottledPeriods, u.ThrottledNanos = cpu["usage_usec"]*1000, cpu["nr_periods"], cpu["nr_throttled"], cpu["throttled_usec"]*1000
	if limit, err := os.ReadFile(filepath.Join(g.cpu, "cpu.max")); err == nil && !strings.HasPrefix(string(limit), "max") {
		var quota, period int64
		if _, err := fmt.Sscan(string(limit), &quota, &period); err != nil {
			return fmt.Errorf("cpu.max: %w", err)
		}
		u.QuotaNanos, u.PeriodNanos = quota*1000, period*1000
	}
	used, err := number(g.memory, "memory.current")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, err := keyed(g.memory, "memory.stat", "inactive_file", "file")
	if err != nil {
		return err
	}
	u.MemoryBytes, u.CacheBytes = max(0, used-stat["inactive_file"]), stat["file"]
	if peak, err := number(g.memory, "memory.peak"); err == nil {
		u.PeakBytes = peak
	}
	if limit, err := number(g.memory, "memory.max"); err == nil { // else it is "max"
		u.LimitBytes = limit
	}
	return nil
}

// unlimited is less than the limit that version 1 gives for a group without one: the largest number
// of pages.
const unlimited = 1 << 60

// number reads a file that holds one number.
func number(dir, file string) (int64, error) {
	content, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}

// keyed reads some numbers from a file that has a name and a number in each line. A name that this
// kernel does not have reads as 0.
func keyed(dir, file string, names ...string) (map[string]int64, error) {
	content, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for line := range strings.Lines(string(content)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !slices.Contains(names, name) {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}
		values[name] = n
	}
	return values, nil
}
