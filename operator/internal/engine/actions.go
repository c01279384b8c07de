package engine

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
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
