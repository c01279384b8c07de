package trial

import (
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/chaosmesh"
)

const (
	// partitionMargin at both ends of a partition is left to packets that are under way, and to the second that Chaos Mesh takes to begin and to end.
	partitionMargin = time.Second
	// canaryEvery is how often each pod probes each other one in the window.
	canaryEvery = time.Second
	// fewestExpected is how many probes of a pair must have been sent into a partition for their loss to be expected.
	fewestExpected = 2
)

// judgePartitions says which partition, that Chaos Mesh says was in force, the trial's own probes passed, or nothing. Every pod probes every other one each second of the
// window, whatever its network, and a probe is lost whichever way is cut.
func (r *Reconciler) judgePartitions(s *scope) (reason, message string) {
	if s.rendered == nil {
		return "", ""
	}
	var pairs []pair
	for _, t := range s.times {
		var rec *chaosRecord
		r.remember(s.trial, func(m *memo) { rec = m.chaosRecords[t.id] })
		expected := s.probesInto(rec)
		if !chaosmesh.Separates(t.fault) || expected < fewestExpected {
			continue
		}
		if pairs == nil {
			pairs = r.pairs(s)
		}
		for _, p := range pairs {
			if !t.separates(p.a, p.b) || s.agentActs(p.a) || s.agentActs(p.b) {
				continue
			}
			for _, v := range p.views() {
				if v.said != nil && v.said.CanarySent > 0 && 2*v.said.CanaryLost < expected {
					return v1alpha1.ReasonFaultNotConfirmed, fmt.Sprintf(
						"Chaos Mesh said that fault %s (%s, time %d) was in force, and of %d probes that %s sent to %s in that time or more, %d were lost in all.",
						t.fault.Name, chaosmesh.Describe(t.fault), t.time, expected, v.from, v.to, v.said.CanaryLost)
				}
			}
		}
	}
	return "", ""
}

// agentActs reports whether the pod's own agent carries out a fault: what its probes see then is counted apart.
func (s *scope) agentActs(pod string) bool { return len(s.actionsOf(pod)) > 0 }

// probesInto is how many probes of a pair were sent at least while a fault was in force within the window.
func (s *scope) probesInto(rec *chaosRecord) int {
	if rec == nil || rec.Confirmed == 0 || rec.Ended == 0 {
		return 0
	}
	from := max(0, time.Duration(rec.Confirmed-s.trial.Status.ZeroUnixNanos)) + partitionMargin
	to := min(time.Duration(rec.Ended-s.trial.Status.ZeroUnixNanos), s.trial.Spec.Schedule.Measure.OrZero()) - partitionMargin
	return int(max(0, to-from) / canaryEvery)
}

// separates reports whether two pods are on the two sides.
func (t *chaosTime) separates(a, b string) bool {
	here, there := slices.Contains(t.pods, a), slices.Contains(t.pods, b)
	if len(t.peers) == 0 {
		return here || there
	}
	return here && slices.Contains(t.peers, b) || there && slices.Contains(t.peers, a)
}
