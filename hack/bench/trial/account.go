package main

import (
	"time"
)

// Rows of the breakdown, in their order in the table.
const (
	rowRuntime   = "container runtime: containerd, shims, runc, CNI"
	rowKubelet   = "kubelets"
	rowAPIServer = "kube-apiserver"
	rowEtcd      = "etcd"
	rowManagers  = "Assay: managers"
	rowAgents    = "Assay: agents"
	rowLaunchers = "Assay: launchers"
	rowSystem    = "system: replicas"
	rowPrepare   = "system: prepare step"
	rowClients   = "clients: load generators and drivers"
	rowOthers    = "other pods: scheduler, controllers, DNS, proxies"
	rowSandboxes = "sandboxes, and containers in their last moment"
	rowNodes     = "systemd, mounts and others of the nodes"
)

var rows = []string{
	rowRuntime, rowKubelet, rowAPIServer, rowEtcd, rowManagers, rowAgents, rowLaunchers, rowSystem, rowPrepare, rowClients, rowOthers, rowSandboxes, rowNodes,
}

// counter is a rising usage, with its first and its last value.
type counter struct{ first, last time.Duration }

// account of a time: the readings of each cgroup and launcher. The usage of a cgroup that appears
// later counts from zero.
type account struct {
	begun     bool
	cgroups   map[string]*counter
	kinds     map[string]cgroup
	launchers map[string]map[int]*counter // by the container's ID
	services  map[string]map[int]*counter // by row
}

func newAccount() *account {
	return &account{cgroups: map[string]*counter{}, kinds: map[string]cgroup{}, launchers: map[string]map[int]*counter{}, services: map[string]map[int]*counter{}}
}

// add a reading of a node's cgroups. The first readings of all nodes come before begin.
func (a *account) add(read []cgroup) {
	for _, c := range read {
		count := a.cgroups[c.path]
		if count == nil {
			count = &counter{}
			if !a.begun {
				count.first = c.usage
			}
			a.cgroups[c.path], a.kinds[c.path] = count, c
		}
		count.last = max(count.last, c.usage)
	}
}

func (a *account) addLaunchers(id string, found map[int]time.Duration) {
	a.addProcesses(a.launchers, id, found)
}

func (a *account) addServices(found map[string]map[int]time.Duration) {
	for row, processes := range found {
		a.addProcesses(a.services, row, processes)
	}
}

func (a *account) addProcesses(to map[string]map[int]*counter, key string, found map[int]time.Duration) {
	if to[key] == nil {
		to[key] = map[int]*counter{}
	}
	for pid, cpu := range found {
		count := to[key][pid]
		if count == nil {
			count = &counter{}
			if !a.begun {
				count.first = cpu
			}
			to[key][pid] = count
		}
		count.last = max(count.last, cpu)
	}
}

// breakdown of the time that has passed, by row. rowOf returns the row of a container; an unknown
// container is a sandbox.
func (a *account) breakdown(rowOf func(id string) string) map[string]time.Duration {
	sum := map[string]time.Duration{}
	var nodes, allPods, accounted, inPods time.Duration
	for path, count := range a.cgroups {
		spent := count.last - count.first
		switch c := a.kinds[path]; c.kind {
		case whole:
			nodes += spent
			continue
		case pods:
			allPods += spent
			continue
		case engine:
			sum[rowRuntime] += spent
		case kubelet:
			sum[rowKubelet] += spent
		default:
			row := rowOf(c.id)
			if row == "" {
				continue
			}
			for _, l := range a.launchers[c.id] {
				sum[rowLaunchers] += l.last - l.first
				sum[row] -= l.last - l.first
			}
			sum[row] += spent
			inPods += spent
			continue
		}
		accounted += spent
	}
	sum[rowSandboxes] = max(0, allPods-inPods)
	rest := max(0, nodes-allPods-accounted)
	if accounted > 0 { // systemd's services have cgroups of their own
		sum[rowNodes] = rest
		return sum
	}
	for row, processes := range a.services {
		for _, p := range processes {
			sum[row] += p.last - p.first
			rest -= p.last - p.first
		}
	}
	sum[rowRuntime] += max(0, rest)
	return sum
}

func total(breakdown map[string]time.Duration) time.Duration {
	var sum time.Duration
	for _, spent := range breakdown {
		sum += spent
	}
	return sum
}
