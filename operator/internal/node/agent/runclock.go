package agent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// runClock tells when something of the run is due, by the coordinator's clock.
type runClock struct {
	*state
	*clock
}

// awaitRun returns the agreed run when there is one and the coordinator's clock is known.
func (c *runClock) awaitRun(ctx context.Context) (run protocol.Run, err error) {
	err = c.await(ctx, func() bool {
		d := c.directiveLocked()
		best, known := c.clock.best()
		if d.Run == nil || !known {
			return false
		}
		// t = 0 is an instant of the manager's clock that is talked to, as all agents are.
		if manager, _ := c.clock.base(); manager == "" && c.volatile.manager != "" && best.Manager != c.volatile.manager {
			return false
		}
		run = *d.Run
		return true
	})
	if err == nil {
		c.clock.settle()
	}
	return run, err
}

// afterEnd is how much longer is measured than the run lasts: the window's end lies between two
// readings, one a second.
const afterEnd = 1200 * time.Millisecond

// whileRunning is a context that is also done when the run is over before its window is.
func (c *runClock) whileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	running, stop := context.WithCancel(ctx)
	go func() {
		var run protocol.Run
		err := c.await(running, func() bool {
			d := c.directiveLocked()
			if d.Run == nil || d.Run.Ended == 0 {
				return false
			}
			run = *d.Run
			return true
		})
		if err == nil {
			_ = c.until(running, run.ZeroUnixNanos+int64(run.Ended+afterEnd)) // stopped before that is stopped
			stop()
		}
	}()
	return running, stop
}

// until sleeps to an instant of the coordinator's clock. It converts again on the way, with what is
// known of the clocks by then.
func (c *runClock) until(ctx context.Context, unixNanos int64) error {
	for {
		at := c.clock.monotonic(unixNanos)
		left := time.Duration(at - launcher.Monotonic())
		if left < clockRefresh {
			return launcher.SleepUntil(ctx, at)
		}
		if !pause(ctx, clockRefresh/2) {
			return ctx.Err()
		}
	}
}

// zero is t = 0 on CLOCK_MONOTONIC and on the pod's wall clock: as the client was told, if it was
// told, else as it is known best.
func (c *runClock) zero(run protocol.Run) (monotonic, wall int64) {
	var told protocol.StartSignal
	if content, err := c.readRun(filepath.Base(protocol.StartFile), smallFile); err == nil && json.Unmarshal(content, &told) == nil {
		return told.ZeroMonotonicNanos, told.ZeroUnixNanos
	}
	monotonic = c.clock.monotonic(run.ZeroUnixNanos)
	return monotonic, c.config.Wall().UnixNano() + monotonic - launcher.Monotonic()
}

// due reports whether the instant of an action has passed.
func (c *runClock) due(run protocol.Run, action timeline.Action) bool {
	return c.clock.since(run.ZeroUnixNanos, launcher.Monotonic()) >= action.At
}

// restartPlanned reports whether a planned restart of the pod's containers has begun. The caller
// holds the lock.
func (c *runClock) restartPlanned() bool {
	run := c.directiveLocked().Run
	if _, known := c.clock.best(); run == nil || !known {
		return false
	}
	now := c.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
	return slices.ContainsFunc(run.Restarts, func(r protocol.Restart) bool { return r.From <= now })
}

// mayStart reports whether no fault wants the containers to be without their processes now.
func (c *runClock) mayStart() bool {
	run := c.directive().Run
	if run == nil || len(run.Restarts) == 0 {
		return true
	}
	now := c.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
	return !slices.ContainsFunc(run.Restarts, func(r protocol.Restart) bool { return r.From <= now && (now < r.Until || r.Until == 0) })
}

// smallFile is the most that the files take by which a client and its agent talk.
const smallFile = 64 << 10
