package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// sampleSpacing bounds the use that is missed when a container ends. It also bounds the cost of
// sampling: some 1% of a processor.
const sampleSpacing = 500 * time.Millisecond

// machine is this machine, where the nodes' processes are visible.
type machine struct {
	proc      string
	hierarchy hierarchy
	nodes     []string // their cgroups
}

// findMachine finds the cgroups of the nodes, which must be containers of the local docker, as in
// kind.
func findMachine(ctx context.Context, nodes []string) (*machine, error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, err
	}
	m := &machine{proc: "/proc"}
	if m.hierarchy, err = findHierarchy(string(mounts)); err != nil {
		return nil, err
	}
	for _, node := range nodes {
		out, err := exec.CommandContext(ctx, "docker", "inspect", "--format", "{{.Id}} {{.State.Pid}}", node).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("node %s is no container of the docker here, as a node of kind is (docker inspect: %w: %s): only those can be measured from outside",
				node, err, strings.TrimSpace(string(out)))
		}
		id, pid, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		text, err := os.ReadFile("/proc/" + pid + "/cgroup")
		if err != nil {
			return nil, fmt.Errorf("node %s: docker runs on another machine, or its processes are hidden: %w", node, err)
		}
		dir, err := m.hierarchy.nodeDir(string(text), id)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", node, err)
		}
		m.nodes = append(m.nodes, dir)
	}
	return m, nil
}

// spent is the use in a time.
type spent struct {
	wall   time.Duration
	rows   map[string]time.Duration
	kernel time.Duration // by threads of the kernel, of the whole machine
	stolen float64       // share of the processors' time that other machines took
}

// measure the nodes' use while do runs.
func (m *machine) measure(ctx context.Context, o *owners, do func(context.Context) error) (spent, error) {
	a := newAccount()
	begun := time.Now()
	if err := m.sample(a, o); err != nil {
		return spent{}, err
	}
	a.begun = true
	before, err := kernelThreads(m.proc)
	if err != nil {
		return spent{}, err
	}
	allBefore, stolenBefore, err := processorTimes(m.proc)
	if err != nil {
		return spent{}, err
	}
	while, stop := context.WithCancel(ctx)
	sampled := make(chan error, 1)
	go func() { sampled <- m.keepSampling(while, a, o) }()
	err = do(ctx)
	stop()
	if failed := <-sampled; err == nil {
		err = failed
	}
	if err != nil {
		return spent{}, err
	}
	if err := m.sample(a, o); err != nil {
		return spent{}, err
	}
	wall := time.Since(begun)
	all, stolen, err := processorTimes(m.proc)
	if err != nil {
		return spent{}, err
	}
	after, err := kernelThreads(m.proc)
	return spent{wall: wall, rows: a.breakdown(o.of), kernel: after - before, stolen: float64(stolen-stolenBefore) / float64(all-allBefore)}, err
}

func (m *machine) keepSampling(ctx context.Context, a *account, o *owners) error {
	ticker := time.NewTicker(sampleSpacing)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := m.sample(a, o); err != nil {
				return err
			}
		}
	}
}

// sample reads all nodes once.
func (m *machine) sample(a *account, o *owners) error {
	for _, node := range m.nodes {
		read, err := m.hierarchy.read(node)
		if err != nil {
			return err
		}
		a.add(read)
		found, err := services(m.proc, node)
		if err != nil {
			return err
		}
		a.addServices(found)
		for _, c := range read {
			if row := o.of(c.id); row != rowSystem && row != rowClients && row != rowPrepare {
				continue
			}
			found, err := launchers(m.proc, c.path)
			if err != nil {
				return err
			}
			a.addLaunchers(c.id, found)
		}
	}
	return nil
}
