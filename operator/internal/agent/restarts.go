package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
)

// restartPause is how often a container that came anew is looked at until its process may be
// started.
const restartPause = 100 * time.Millisecond

// doRestarts starts processes again whose containers were restarted by a fault that the run plans.
// Whether they were restarted more often than it plans, the coordinator judges, by the kubelet's
// count. Files and volumes are as they were: they are the pod's.
func (a *Agent) doRestarts(ctx context.Context) {
	if a.await(ctx, func() bool { return a.seen.processes }) != nil {
		return // until then doProcesses starts them, in whichever launcher it finds
	}
	for {
		var anew []protocol.Container
		if a.await(ctx, func() bool {
			anew = a.cameAnew()
			return len(anew) > 0
		}) != nil {
			return
		}
		a.loseRoles()
		for _, c := range anew {
			if err := a.startProcess(ctx, c, 0); err != nil {
				a.failUnlessDone(ctx, fmt.Errorf("start container %s again: %w", c.Name, err))
				return
			}
		}
	}
}

// cameAnew lists the containers, in order, whose launcher is another one than their process was
// started in, as planned. The caller holds a.mu.
func (a *Agent) cameAnew() []protocol.Container {
	return slices.DeleteFunc(slices.Clone(a.directiveLocked().Containers), func(c protocol.Container) bool {
		b, started := a.boxes[c.Name], a.journal.Launchers[c.Name]
		return b == nil || b.state == nil || b.lost || started == "" || started == b.state.Incarnation
	})
}

// restartPlanned reports whether a planned restart of the pod's containers has begun. The caller
// holds a.mu.
func (a *Agent) restartPlanned() bool {
	run := a.directiveLocked().Run
	if _, known := a.clock.best(); run == nil || !known {
		return false
	}
	now := a.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
	return slices.ContainsFunc(run.Restarts, func(r protocol.Restart) bool { return r.From <= now })
}

// mayStart reports whether no fault wants the containers to be without their processes now.
func (a *Agent) mayStart() bool {
	run := a.directive().Run
	if run == nil || len(run.Restarts) == 0 {
		return true
	}
	now := a.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
	return !slices.ContainsFunc(run.Restarts, func(r protocol.Restart) bool { return r.From <= now && (now < r.Until || r.Until == 0) })
}
