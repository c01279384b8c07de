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

// runClock converts times of the run with the coordinator's clock.
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
		// The clock must be of the manager that the agent talks to, as t = 0 is for all agents.
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

// afterEnd is how much longer than the run the agent measures. Readings are one second apart, so
// one must follow the window's end.
const afterEnd = 1200 * time.Millisecond

// whileRunning is a context that is also done when the run ends before its window does.
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
			_ = c.until(running, run.ZeroUnixNanos+int64(run.Ended+afterEnd)) // the caller may cancel it before that
			stop()
		}
	}()
	return running, stop
}

// until sleeps to an instant of the coordinator's clock. It converts the instant again on the way,
// with the newest samples.
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

// zero is t = 0 on CLOCK_MONOTONIC and on the pod's wall clock. It is the value that the client
// got, or else the best known one.
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

// mayStart reports whether no fault keeps the processes of the containers down now.
func (c *runClock) mayStart() bool {
	run := c.directive().Run
	if run == nil || len(run.Restarts) == 0 {
		return true
	}
	now := c.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
	return !slices.ContainsFunc(run.Restarts, func(r protocol.Restart) bool { return r.From <= now && (now < r.Until || r.Until == 0) })
}

// smallFile bounds the files by which a client and its agent talk.
const smallFile = 64 << 10
