package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
)

// quietPoll is how often the agents' loads are looked at: they are reported once a second, and such a report wakes nobody up.
const quietPoll = 500 * time.Millisecond

// podLoad is the load that the agent of one pod has reported last.
type podLoad struct {
	pod, node string
	load      *protocol.Load // nil: none yet
}

// disturbance says which machine is not quiet and why, or nothing. Steal is the share of its processors that a machine's hypervisor may take (1: any), others that
// which all but the trial's own processes may, its hypervisor's part included.
//
// The pods of one machine see the same counters, read at slightly different times; the greatest counts. Nodes that are containers of one machine, as kind's
// are, share a boot ID.
func disturbance(loads []podLoad, steal, others float64) string {
	type machine struct{ cpus, busy, stolen, own float64 }
	machines := map[string]*machine{}
	names := map[string]string{} // of a machine: a node of it
	for _, p := range loads {
		if p.load == nil || p.load.CPUs < 1 {
			return fmt.Sprintf("the agent of %s has not said yet how busy its machine is", p.pod)
		}
		key := cmp.Or(p.load.Machine, p.node)
		m := machines[key]
		if m == nil {
			m = &machine{}
			machines[key], names[key] = m, p.node
		}
		m.cpus, m.own = float64(p.load.CPUs), m.own+p.load.OwnCores
		m.busy, m.stolen = max(m.busy, p.load.BusyCores), max(m.stolen, p.load.StolenCores)
		names[key] = min(names[key], p.node)
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

// quiet decides whether the trial, which is ready at the barrier, may start: when the machines are quiet, or when it has waited for long enough. It writes how
// the wait ended into the status.
func (r *Reconciler) quiet(s *scope) bool {
	spec, status := &s.trial.Spec, &s.trial.Status
	if status.Times.Barrier == nil {
		t := metav1.NewMicroTime(s.now)
		status.Times.Barrier = &t
	}
	limit, waited := spec.QuietWait.OrZero(), s.now.Sub(status.Times.Barrier.Time)
	if limit == 0 {
		return true
	}
	disturbed := disturbance(s.loads(), spec.Tolerances.Steal.OrZero(), spec.QuietLoad.OrZero())
	if disturbed != "" && waited < limit {
		s.set(v1alpha1.TrialRunning, metav1.ConditionFalse, v1alpha1.ReasonWaitingForQuiet,
			"Everything is ready. Waiting for a quiet moment on the machines, for %s at most (disturbances.quietWait).", spec.QuietWait)
		return false
	}
	status.Quiet = &v1alpha1.QuietMoment{Found: disturbed == "", WaitedMilliseconds: waited.Milliseconds(), Message: disturbed}
	return true
}

// barrierLimit is how long after its steps a trial may lack what it needs at the barrier. A manager that takes over hears from the agents anew, which may be late in a
// wait for a quiet moment.
func (s *scope) barrierLimit() time.Duration {
	if s.trial.Status.Times.Barrier == nil {
		return barrierTimeout
	}
	return barrierTimeout + s.trial.Spec.QuietWait.OrZero()
}

func (s *scope) loads() []podLoad {
	var out []podLoad
	for _, name := range s.everyName() {
		p := podLoad{pod: name}
		if pod := s.pods[name]; pod != nil {
			p.node = pod.Spec.NodeName
		}
		if rep := s.report(name); rep != nil {
			p.load = rep.Load
		}
		out = append(out, p)
	}
	return out
}

// inVain says how the wait for a quiet moment ended, where that is worth a sentence.
func inVain(q *v1alpha1.QuietMoment) string {
	if q == nil || q.Found {
		return ""
	}
	return fmt.Sprintf(" It waited %v for a quiet moment in vain: %s.", time.Duration(q.WaitedMilliseconds)*time.Millisecond, q.Message)
}
