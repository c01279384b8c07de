package agent

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem"
)

// isolation takes the pod off the network: the packet filter drops all packets that leave or enter
// the pod. Actions that need it share one isolation.
type isolation struct {
	mu      sync.Mutex
	filter  *netem.Silence
	held    bool      // it does not depend on the clock
	planned []planned // in any order
}

// prepare puts the disarmed filter in place. If an agent before this one has armed the filter, it
// stays armed.
func (i *isolation) prepare() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.filter.Prepare()
}

// plan makes the isolation begin at an instant of the monotonic clock, or at once, and returns the
// instant from which packets are dropped. The kernel uses the wall clock for that: see hold.
func (i *isolation) plan(instant int64) (planned, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	ahead := launcher.WallAhead(nil)
	if err := i.filter.ArmAt(time.Unix(0, instant+ahead)); err != nil {
		return planned{}, err
	}
	p := planned{at: max(instant, launcher.Monotonic()), wallAhead: ahead}
	i.planned = append(i.planned, p)
	return p, nil
}

// planned is an isolation that begins on its own, at its instant.
type planned struct {
	at        int64 // CLOCK_MONOTONIC
	wallAhead int64 // how far the wall clock was ahead of CLOCK_MONOTONIC when the isolation was planned
}

// hold makes an isolation that has begun independent of the clock. It fails if the clock was set
// since the isolation was planned: then the isolation began at another instant.
func (i *isolation) hold(p planned) error {
	const tolerance = time.Millisecond
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.held {
		if err := i.filter.Arm(); err != nil {
			return err
		}
		i.held = true
	}
	if set := time.Duration(launcher.WallAhead(nil) - p.wallAhead); set.Abs() > tolerance {
		return fmt.Errorf("the node's clock was set by %v while the pod was to leave the network, so that it began at another instant than planned; "+
			"slew the clock (chrony does) instead of setting it", set)
	}
	return nil
}

// disarm ends the isolation.
func (i *isolation) disarm() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.filter.Disarm(); err != nil {
		return err
	}
	i.held = false
	// The isolations of later kills stay planned.
	i.planned = slices.DeleteFunc(i.planned, func(p planned) bool { return p.at <= launcher.Monotonic() })
	for _, p := range i.planned {
		if err := i.filter.ArmAt(time.Unix(0, p.at+p.wallAhead)); err != nil {
			return err
		}
	}
	return nil
}

// remove ends the isolation and takes the filter away.
func (i *isolation) remove() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.filter.Remove(); err != nil {
		return err
	}
	i.held, i.planned = false, nil
	return nil
}
