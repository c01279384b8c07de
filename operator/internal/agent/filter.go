package agent

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/timeline"
)

// silencer is the silence of the pod, shared by the actions that need it.
type silencer struct {
	mu      sync.Mutex
	silence *netem.Silence
	held    bool      // it does not depend on the clock
	planned []planned // in any order
}

// prepare puts the disarmed silence in place. One that an agent before this one has armed stays so.
func (s *silencer) prepare() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silence.Prepare()
}

// plan makes the silence begin at an instant of the monotonic clock, or at once, and returns the
// instant from which packets are dropped. The kernel goes by the wall clock for it: see hold.
func (s *silencer) plan(instant int64) (planned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ahead := launcher.WallAhead(nil)
	if err := s.silence.ArmAt(time.Unix(0, instant+ahead)); err != nil {
		return planned{}, err
	}
	p := planned{at: max(instant, launcher.Monotonic()), wallAhead: ahead}
	s.planned = append(s.planned, p)
	return p, nil
}

// planned is a silence that begins by itself.
type planned struct {
	at        int64 // CLOCK_MONOTONIC
	wallAhead int64 // how far the wall clock was ahead of that when it was planned
}

// hold makes a silence that has begun last whatever happens to the clock, and fails if the clock
// was set since it was planned: then it began at another instant.
func (s *silencer) hold(p planned) error {
	const tolerance = time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held {
		if err := s.silence.Arm(); err != nil {
			return err
		}
		s.held = true
	}
	if set := time.Duration(launcher.WallAhead(nil) - p.wallAhead); set.Abs() > tolerance {
		return fmt.Errorf("the node's clock was set by %v while the silence of the pod was due, so that it began at another instant than planned; "+
			"slew the clock (chrony does) instead of setting it", set)
	}
	return nil
}

// disarm ends the silence.
func (s *silencer) disarm() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.silence.Disarm(); err != nil {
		return err
	}
	s.held = false
	// Those of later kills stay planned.
	s.planned = slices.DeleteFunc(s.planned, func(p planned) bool { return p.at <= launcher.Monotonic() })
	for _, p := range s.planned {
		if err := s.silence.ArmAt(time.Unix(0, p.at+p.wallAhead)); err != nil {
			return err
		}
	}
	return nil
}

// remove ends the silence and takes it away.
func (s *silencer) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.silence.Remove(); err != nil {
		return err
	}
	s.held, s.planned = false, nil
	return nil
}

// prepareFilters puts in place what the run's actions need of the packet filter, and tells at once
// when that is not possible here.
func (a *Agent) prepareFilters(actions []timeline.Action) {
	has := func(kind timeline.Kind) bool {
		return slices.ContainsFunc(actions, func(action timeline.Action) bool { return action.Kind == kind && !action.WithoutSilence })
	}
	if !has(timeline.Kill) && !has(timeline.Cut) {
		return
	}
	a.record(func(j *journal) { j.Filtered = true })
	if has(timeline.Kill) {
		if err := a.silence.prepare(); err != nil {
			a.fail(fmt.Errorf("this pod cannot be silenced, as its faults need: %w", err))
		}
	}
	if has(timeline.Cut) {
		if err := a.cuts.prepare(); err != nil {
			a.fail(fmt.Errorf("this pod's links cannot be cut, as its faults need: %w", err))
		}
	}
}
