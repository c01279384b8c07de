package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processes are all processes of the container but the launcher. Each call reads them from /proc,
// and remembers nothing.
type processes struct {
	// all: the launcher is process 1 of its PID namespace, so every other process there is one of
	// them. Otherwise only its descendants are (in tests, and in a pod that shares its PID
	// namespace).
	all bool
}

// straggler returns a process that is not in the wanted state. It does not check a process again
// that was seen in that state.
func (p processes) straggler(stopped bool, seen map[int]bool) (pid int, found bool) {
	for _, pid := range p.list() {
		if seen[pid] {
			continue
		}
		if stopped && childStopped(pid) {
			seen[pid] = true
			continue
		}
		for _, state := range states(pid) {
			// Dead threads and zombies neither stop nor run; "t" is stopped by a debugger.
			if state == "Z" || state == "X" {
				continue
			}
			isStopped := state == "T" || state == "t"
			if stopped && state == "D" && hasStoppedChild(pid) {
				// It waits for a child that was stopped before its exec (vfork), and will stop
				// itself when the child goes on.
				isStopped = true
			}
			if isStopped != stopped {
				return pid, true
			}
		}
		seen[pid] = true
	}
	return 0, false
}

// halted reports whether no thread returns to its program: in each process one thread has stopped,
// or the process has ended.
func (p processes) halted() bool {
	for _, pid := range p.list() {
		if childStopped(pid) {
			continue
		}
		live := func(state string) bool { return state != "Z" && state != "X" }
		of := states(pid)
		if slices.ContainsFunc(of, live) && !slices.Contains(of, "T") && !slices.Contains(of, "t") && !(slices.Contains(of, "D") && hasStoppedChild(pid)) {
			return false
		}
	}
	return true
}

// list returns the processes' numbers.
func (p processes) list() []int {
	if !p.all {
		return descendants(os.Getpid())
	}
	var found []int
	for _, pid := range numbers("/proc") {
		if pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// allIn reports whether every living process of the container is in the group: then the alarm has
// reached all.
func (p processes) allIn(group int) bool {
	for _, pid := range p.list() {
		if of, err := unix.Getpgid(pid); err == nil && of != group {
			return false
		}
	}
	return true
}

// signal sends a signal to all other processes of the container. For process 1 that is one system
// call, during which no process can fork. Otherwise (in tests, and in a pod that shares its PID
// namespace) it signals the tree from the top down. A caller that must reach all processes repeats
// it until it has.
func (p processes) signal(number unix.Signal) {
	if p.all {
		// ESRCH (no process is left) is no failure: the caller checks the outcome.
		_ = unix.Kill(-1, number)
		return
	}
	for _, pid := range descendants(os.Getpid()) {
		_ = unix.Kill(pid, number)
	}
}

// childStopped reports whether a process is a child of this one and has stopped with all of its
// threads. It takes one system call; /proc takes two for each thread.
func childStopped(pid int) bool {
	const stopped = 5 // CLD_STOPPED, sigaction(2)
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0 && info.Code == stopped
}

func hasStoppedChild(parent int) bool {
	for _, pid := range numbers("/proc") {
		if is, ok := parentOf(pid); ok && is == parent && slices.Contains(states(pid), "T") {
			return true
		}
	}
	return false
}

// descendants lists the processes below root, parents before children.
func descendants(root int) []int {
	children := map[int][]int{}
	for _, pid := range numbers("/proc") {
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	var found []int
	for next := []int{root}; len(next) > 0; next = next[1:] {
		found = append(found, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return found
}

// parentOf reads the parent's ID: the second field after the name.
func parentOf(pid int) (int, bool) {
	fields := statFields(fmt.Sprintf("/proc/%d/stat", pid))
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

// statFields reads the fields of a stat file of /proc after the name. The name is in parentheses
// and may contain any text. The first of these fields is the state.
func statFields(path string) []string {
	stat, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
}

// states returns the state of each thread of a process, from /proc/<pid>/task/<tid>/stat. It is
// empty if the process is gone.
func states(pid int) []string {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	var found []string
	for _, thread := range numbers(tasks) {
		if fields := statFields(filepath.Join(tasks, strconv.Itoa(thread), "stat")); len(fields) > 0 {
			found = append(found, fields[0])
		}
	}
	return found
}

// numbers lists the entries of a directory that are numbers.
func numbers(folder string) []int {
	directory, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer directory.Close()
	names, err := directory.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var found []int
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			found = append(found, number)
		}
	}
	return found
}
