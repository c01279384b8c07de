// Package idle decides whether the machines of a trial are idle enough to begin. It is pure.
package idle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Load is the last load that the agent of a pod reported.
type Load struct {
	Pod, Node string
	Load      *protocol.Load // nil: none yet
}

// Disturbance says which machine is not idle and why, or returns the empty string. The argument
// steal is the share of its processors that a machine's hypervisor may take (1: any). The argument
// others is the share that all but the trial's own processes may take, including the hypervisor.
//
// The pods of one machine see the same counters, read at slightly different times; the greatest
// counts. Nodes that are containers of one machine, as in kind, share a boot ID.
func Disturbance(loads []Load, steal, others float64) string {
	type machine struct{ cpus, busy, stolen, own float64 }
	machines := map[string]*machine{}
	names := map[string]string{} // of each machine: the name of one of its nodes
	for _, p := range loads {
		if p.Load == nil || p.Load.CPUs < 1 {
			return fmt.Sprintf("the agent of %s has not said yet how busy its machine is", p.Pod)
		}
		key := cmp.Or(p.Load.Machine, p.Node)
		m := machines[key]
		if m == nil {
			m = &machine{}
			machines[key], names[key] = m, p.Node
		}
		m.cpus, m.own = float64(p.Load.CPUs), m.own+p.Load.OwnCores
		m.busy, m.stolen = max(m.busy, p.Load.BusyCores), max(m.stolen, p.Load.StolenCores)
		names[key] = min(names[key], p.Node)
	}
	for _, key := range slices.Sorted(maps.Keys(machines)) {
		m := machines[key]
		if lost := m.stolen / m.cpus; steal < 1 && lost > steal {
			return fmt.Sprintf("the hypervisor of node %s took %.0f%% of its processors; tolerances.steal is %.4g%%", names[key], 100*lost, 100*steal)
		}
		if lost := (max(0, m.busy-m.own) + m.stolen) / m.cpus; others < 1 && lost > others {
			return fmt.Sprintf("others than the trial took %.0f%% of the processors of node %s; disturbances.idleThreshold is %.4g%%", 100*lost, names[key], 100*others)
		}
	}
	return ""
}

// lead is how long before the load begins the engine sends the run to the agents. It is long enough
// for a slow answer and a retry.
const lead = time.Second

// Lead is lead for a trial whose wait for idle machines ended with g; nil: the trial did not wait.
// Agents of idle machines are not slow, so half of lead is enough.
func Lead(g *v1alpha1.IdleGate) time.Duration {
	if g != nil && g.Idle {
		return lead / 2
	}
	return lead
}

// nearLead is lead for agents on the engine's own machine, which answer within a millisecond.
// armLead is the least time between sending the run and the first fault, in which agents prepare
// the fault.
const (
	nearLead = lead / 4
	armLead  = lead / 2
)

// NearLead is Lead for agents on the engine's own machine. first is how long after the start of the
// load the first fault is due.
func NearLead(g *v1alpha1.IdleGate, first time.Duration) time.Duration {
	if g != nil && !g.Idle {
		return Lead(g) // the agents may be slow
	}
	return max(nearLead, armLead-first)
}

// InVain returns a sentence about a wait for idle machines that ended in vain, or "".
func InVain(g *v1alpha1.IdleGate) string {
	if g == nil || g.Idle {
		return ""
	}
	return fmt.Sprintf(" It waited %v for idle machines in vain: %s.", time.Duration(g.WaitedMilliseconds)*time.Millisecond, g.Message)
}

// LoadsOf returns the loads that the agents of pods reported last. report returns the report of a
// pod, or nil.
func LoadsOf(names []string, pods map[string]*corev1.Pod, report func(pod string) *protocol.Report) []Load {
	var out []Load
	for _, name := range names {
		p := Load{Pod: name}
		if pod := pods[name]; pod != nil {
			p.Node = pod.Spec.NodeName
		}
		if rep := report(name); rep != nil {
			p.Load = rep.Load
		}
		out = append(out, p)
	}
	return out
}
