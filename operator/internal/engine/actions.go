package engine

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// resets returns the resets of nodes that the trial's faults ask for. Which nodes these are is
// known when the pods run.
func (s *scope) resets() Resets { return resetsOf(s.actions(), s.pods) }

// onResetNode reports whether the node of a pod is reset, also if another pod is the target.
func (s *scope) onResetNode(pod string) bool { return s.resets().Hits(s.pods[pod]) }

// actions returns the actions of the trial in the form that its backend carries out. It leaves out
// actions that count from a mark which has not come yet.
func (s *scope) actions() []timeline.Action {
	if s.inForce == nil && s.rendered != nil {
		var side shaping.Side
		if n := s.trial.Status.Network; n != nil && n.Backend != "" {
			side = shaping.Backend(n.Backend).Side()
		}
		s.inForce, s.later = timeline.Dated(timeline.InForce(s.rendered.trial.Actions, side), s.marks())
	}
	return s.inForce
}

// laterActions returns the actions that count from marks which have not come yet.
func (s *scope) laterActions() []timeline.Action {
	s.actions()
	return s.later
}

// plannedRestarts returns how often containers of a pod may have restarted until now. Each reset of
// the node restarts each container once. Other faults add their own restarts.
func (s *scope) plannedRestarts(pod string) int32 {
	p := s.pods[pod]
	if p == nil || s.trial.Status.ZeroUnixNanos == 0 {
		return 0
	}
	past := s.resets().Past(p.Spec.NodeName, s.now.Sub(s.zero()))
	return int32(past*(len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses))) + s.history.PlannedRestarts(p, pod)
}

// agentInterrupted reports whether a planned fault ends the agent of the pod during the run. The
// agent's own data is then lost.
func (s *scope) agentInterrupted(pod string) bool {
	return s.onResetNode(pod) || s.history.AgentRestarts(pod)
}

// interrupted reports whether a planned fault ends the agent or a container of the pod during the
// run. The use of such a pod is not known for all of the window.
func (s *scope) interrupted(pod string) bool {
	return s.onResetNode(pod) || s.history.Restarts(pod)
}

// recordOf returns the record of an action. The agent of the node reports a reset, and the manager
// sees what Chaos Mesh does. The agent of the pod reports all other actions.
func (s *scope) recordOf(a timeline.Action) *protocol.ActionRecord {
	if a.Kind.ByChaosMesh() {
		return s.injection.Record(a)
	}
	if p := s.pods[a.Pod]; a.Kind.By() == timeline.MachineAgent && p != nil {
		return s.report(render.MachineAgent(p.Spec.NodeName)).Action(a.ID)
	}
	return s.report(a.Pod).Action(a.ID)
}

// marks returns the marks of the trial that have come, in order of time.
func (s *members) marks() []timeline.Mark {
	var all []timeline.Mark
	for _, name := range s.everyName() {
		if rep := s.report(name); rep != nil {
			all = append(all, rep.Marks...)
		}
	}
	slices.SortStableFunc(all, func(a, b timeline.Mark) int { return cmp.Compare(a.At, b.At) })
	return all
}
