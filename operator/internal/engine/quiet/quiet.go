// Package quiet says whether the machines of a trial are quiet enough to begin. It is pure.
package quiet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
)

// Load is the load that the agent of one pod has reported last.
type Load struct {
	Pod, Node string
	Load      *protocol.Load // nil: none yet
}

// Disturbance says which machine is not quiet and why, or nothing. Steal is the share of its
// processors that a machine's hypervisor may take (1: any), others that which all but the trial's
// own processes may, its hypervisor's part included.
//
// The pods of one machine see the same counters, read at slightly different times; the greatest
// counts. Nodes that are containers of one machine, as kind's are, share a boot ID.
func Disturbance(loads []Load, steal, others float64) string {
	type machine struct{ cpus, busy, stolen, own float64 }
	machines := map[string]*machine{}
	names := map[string]string{} // of a machine: a node of it
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
			return fmt.Sprintf("others than the trial took %.0f%% of the processors of node %s; disturbances.quietLoad is %.4g%%", 100*lost, names[key], 100*others)
		}
	}
	return ""
}

// lead is how long before the load begins the run is sent to the agents: long enough for a slow
// answer and a retry.
const lead = time.Second

// Lead is that of a trial whose wait ended so; nil: it was not to wait. Agents of machines that are
// quiet at this moment are not slow, and half of it is enough.
func Lead(q *v1alpha1.QuietMoment) time.Duration {
	if q != nil && q.Found {
		return lead / 2
	}
	return lead
}

// InVain says how the wait for a quiet moment ended, where that is worth a sentence.
func InVain(q *v1alpha1.QuietMoment) string {
	if q == nil || q.Found {
		return ""
	}
	return fmt.Sprintf(" It waited %v for a quiet moment in vain: %s.", time.Duration(q.WaitedMilliseconds)*time.Millisecond, q.Message)
}

// LoadsOf is what the agents of pods have reported last. report is that of a pod, or nil.
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
