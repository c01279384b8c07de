package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/<pid>/stat: USER_HZ is 100 on every architecture that
// Kubernetes runs on.
const tick = 10 * time.Millisecond

// kthreadd is the parent of the kernel's threads.
const kthreadd = 2

// process as /proc/<pid>/stat reports it.
type process struct {
	comm     string
	parent   int
	cpu      time.Duration // of its own, without its children
	children time.Duration // of ended children that it waited for
}

// parseStat reads a line of /proc/<pid>/stat, see proc(5). The name may hold spaces and
// parentheses.
func parseStat(line string) (process, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("%q has no name in parentheses", line)
	}
	fields := strings.Fields(line[end+1:]) // from the third field on: the state
	if len(fields) < 15 {
		return process{}, fmt.Errorf("%q has %d fields after the name, want 15 or more", line, len(fields))
	}
	var numbers [5]int64
	for i, at := range []int{1, 11, 12, 13, 14} { // ppid, utime, stime, cutime, cstime
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("%q: %w", line, err)
		}
		numbers[i] = n
	}
	return process{
		comm: line[open+1 : end], parent: int(numbers[0]),
		cpu: time.Duration(numbers[1]+numbers[2]) * tick, children: time.Duration(numbers[3]+numbers[4]) * tick,
	}, nil
}

// kernelThreads is the processor time of the kernel's threads on the whole machine. The kernel does
// not say for which program they write to disks and remove cgroups.
func kernelThreads(proc string) (time.Duration, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(proc, e.Name(), "stat"))
		if err != nil { // it ended
			continue
		}
		p, err := parseStat(string(text))
		if err != nil {
			return 0, err
		}
		if p.parent == kthreadd {
			sum += p.cpu
		}
	}
	return sum, nil
}

// processorTimes are the sums over all processors since the machine started: the whole time, and
// the time that the hypervisor gave to other machines when this one had work.
func processorTimes(proc string) (all, stolen time.Duration, err error) {
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu, user, nice, system, idle, iowait, irq, softirq, steal, and guests, which user includes
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("%s/stat begins with %q, want the times of all processors", proc, line)
	}
	for i, field := range fields[1:9] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s/stat: %w", proc, err)
		}
		all += time.Duration(n) * tick
		if i == 7 {
			stolen = time.Duration(n) * tick
		}
	}
	return all, stolen, nil
}

// launchers is the processor time of Assay's launchers in a container's cgroup, by process ID.
func launchers(proc, dir string) (map[int]time.Duration, error) {
	all, err := processes(proc, dir)
	if err != nil {
		return nil, err
	}
	found := map[int]time.Duration{}
	for pid, p := range all {
		if p.comm == "launcher" {
			found[pid] = p.cpu
		}
	}
	return found, nil
}

// services is the processor time of a node's long-lived programs, by row and process ID. It is for
// nodes where systemd gives them no cgroup with a counter, as with cgroup v1. Processes that the
// kubelet waited for, above all mounts, count as the kubelet's. The container runtime is the rest,
// since its programs are short-lived.
func services(proc, node string) (map[string]map[int]time.Duration, error) {
	all, err := processes(proc, node)
	if err != nil {
		return nil, err
	}
	found := map[string]map[int]time.Duration{rowKubelet: {}, rowNodes: {}}
	for pid, p := range all {
		switch {
		case p.comm == "kubelet":
			found[rowKubelet][pid] = p.cpu + p.children
		case strings.HasPrefix(p.comm, "systemd") && p.comm != "systemd-run": // the kubelet waits for systemd-run
			found[rowNodes][pid] = p.cpu
		}
	}
	return found, nil
}

// processes of a cgroup, by process ID, without those of deeper cgroups. A process that has ended
// has no children.
func processes(proc, dir string) (map[int]process, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[int]process{}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s/cgroup.procs: %w", dir, err)
		}
		stat, err := os.ReadFile(filepath.Join(proc, field, "stat"))
		if err != nil { // it ended
			continue
		}
		p, err := parseStat(string(stat))
		if err != nil {
			return nil, err
		}
		found[pid] = p
	}
	return found, nil
}
