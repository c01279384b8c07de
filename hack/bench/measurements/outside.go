package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pollEvery is how often the kernel's files are read.
const pollEvery = 100 * time.Millisecond

// outside has readings of the servers from outside of their pods, by their index.
type outside struct {
	servers map[string]*server
}

// server has the readings of one server, in order of time.
type server struct {
	readings []reading
	// volume is the last output of du.
	volume float64
	sized  time.Time
}

// reading at an instant. Two values are counters: cpu in seconds, and network in bytes. memory and
// pages are in bytes.
type reading struct {
	at                          time.Time
	cpu, received, sent         float64
	workingSet, pages           float64
	hasCPU, hasMemory, hasBytes bool
}

// poll reads until ctx is done.
func poll(ctx context.Context) *outside {
	o := &outside{servers: map[string]*server{}}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return o
		case <-tick.C:
			o.read()
		}
	}
}

// read searches for the servers, which are processes of this machine, and reads each one's numbers.
func (o *outside) read() {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline") // only a wrong pattern is an error
	for _, file := range commands {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		if len(args) != 3 || !strings.HasSuffix(args[0], "/pod") || args[1] != "serve" {
			continue
		}
		if o.servers[args[2]] == nil {
			o.servers[args[2]] = &server{}
		}
		o.servers[args[2]].read(filepath.Dir(file))
	}
}

func (s *server) read(proc string) {
	r := reading{at: time.Now()}
	groups := groupsOf(proc)
	if used, err := number(groups["cpuacct"], "cpuacct.usage"); err == nil {
		r.cpu, r.hasCPU = used/1e9, true
	} else if used, err := field(groups[""], "cpu.stat", "usage_usec"); err == nil {
		r.cpu, r.hasCPU = used/1e6, true
	}
	used, errUsed := number(groups["memory"], "memory.usage_in_bytes")
	idle, errIdle := field(groups["memory"], "memory.stat", "total_inactive_file")
	pages, errPages := field(groups["memory"], "memory.stat", "total_cache")
	if errUsed != nil {
		used, errUsed = number(groups[""], "memory.current")
		idle, errIdle = field(groups[""], "memory.stat", "inactive_file")
		pages, errPages = field(groups[""], "memory.stat", "file")
	}
	r.workingSet, r.pages, r.hasMemory = used-idle, pages, errUsed == nil && errIdle == nil && errPages == nil
	if text, err := os.ReadFile(filepath.Join(proc, "net/dev")); err == nil {
		for line := range strings.Lines(string(text)) {
			columns := strings.Fields(strings.Replace(line, ":", " ", 1))
			if len(columns) > 9 && columns[0] != "lo" {
				in, errIn := strconv.ParseFloat(columns[1], 64)
				out, errOut := strconv.ParseFloat(columns[9], 64)
				if errIn == nil && errOut == nil {
					r.received, r.sent, r.hasBytes = r.received+in, r.sent+out, true
				}
			}
		}
	}
	s.readings = append(s.readings, r)
	if time.Since(s.sized) > 5*time.Second {
		s.sized = time.Now()
		if out, err := exec.Command("du", "-sx", "--block-size=1", filepath.Join(proc, "root/data")).Output(); err == nil { // #nosec G204 -- a path of this machine
			if n, err := strconv.ParseFloat(strings.Fields(string(out))[0], 64); err == nil {
				s.volume = n
			}
		}
	}
}

// groupsOf are the directories of a process's control groups, by controller. The group of version 2
// has no controller's name.
func groupsOf(proc string) map[string]string {
	text, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return nil
	}
	groups := map[string]string{}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			groups[controller] = filepath.Join("/sys/fs/cgroup", controller, parts[2])
		}
	}
	return groups
}

func number(dir, file string) (float64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
}

func field(dir, file, name string) (float64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if columns := strings.Fields(line); len(columns) == 2 && columns[0] == name {
			return strconv.ParseFloat(columns[1], 64)
		}
	}
	return 0, os.ErrNotExist
}
