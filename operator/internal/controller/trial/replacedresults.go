package trial

import (
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
)

// describePredecessors tells of the pods that had a pod's name before it, what their agents said last under their UIDs, and what their processes printed last.
func (s *scope) describePredecessors(pod *results.Pod, logs map[string]string) {
	line := s.lines[pod.Name]
	if len(line) == 0 || len(line) == 1 && line[0].Gone == 0 {
		return
	}
	for i, m := range line {
		if m.Gone == 0 {
			pod.UID, pod.CameMillis, pod.ReadyMillis = string(m.UID), millis(m.Came), millis(m.Ready)
			continue
		}
		p := results.Predecessor{UID: string(m.UID), Node: m.Node, CameMillis: millis(m.Came), ReadyMillis: millis(m.Ready), GoneMillis: millis(m.Gone)}
		if i == 0 {
			p.CameMillis, p.ReadyMillis = 0, 0
		}
		if last := m.Last; last != nil {
			p.Heard, p.TCPResets = true, last.TCPResets
			p.ClockOffsetMillis, p.ClockErrorMillis = millis(last.ClockOffset), millis(last.ClockError)
			for _, c := range last.Containers {
				if c.Tail != "" {
					logs[fmt.Sprintf("%s@%s/%s", pod.Name, m.UID, c.Name)] = c.Tail
				}
			}
		}
		pod.Predecessors = append(pod.Predecessors, p)
	}
}

// judgeSuccessors says which pod was replaced and did not run by the end, or nothing. That it was replaced at all is the fault's to confirm, and how soon its replica serves
// again is the system's.
func (r *Reconciler) judgeSuccessors(s *scope) (reason, message string) {
	last := timeline.FromSchedule(s.trial.Spec.Schedule).LastRequest()
	for _, name := range s.replicaNames() {
		line := s.lines[name]
		if len(line) == 0 || lastGone(line) > last {
			continue // what happens after the last request changes nothing that is measured
		}
		switch rep := r.report(s, name); {
		case s.leaving[name]:
			return v1alpha1.ReasonRunLost, fmt.Sprintf("Pod %s, which a fault deleted, did not come back.", name)
		case len(line) == 1:
		case rep == nil:
			return v1alpha1.ReasonRunLost, fmt.Sprintf("Pod %s was replaced as planned, and the agent of the pod that took its place did not report.", name)
		case !allStarted(rep):
			return v1alpha1.ReasonRunLost, fmt.Sprintf("Pod %s was replaced as planned, and the processes of the pod that took its place were not started; it waited for %s.", name, rep.WaitingFor)
		}
	}
	return "", ""
}

// lastGone is when the last pod of a line that is gone was seen to be.
func lastGone(line []member) (gone time.Duration) {
	for _, m := range line {
		gone = max(gone, m.Gone)
	}
	return gone
}

func allStarted(rep *protocol.Report) bool {
	return !slices.ContainsFunc(rep.Containers, func(c protocol.ContainerState) bool { return c.Starts == 0 })
}
