package engine

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
)

// resets of nodes that the trial's faults want. Which nodes these are is known when the pods run.
func (s *scope) resets() Resets { return resetsOf(s.actions(), s.pods) }

// onResetNode reports whether a pod shares the fate of a node that is reset, target or not.
func (s *scope) onResetNode(pod string) bool { return s.resets().Hits(s.pods[pod]) }

// actions of the trial as its backend carries them out. Actions that count from a mark are left out
// until the mark has come.
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

// laterActions are the actions that count from marks still to come.
func (s *scope) laterActions() []timeline.Action {
	s.actions()
	return s.later
}

// marks of the trial that have come, in order of time.
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
