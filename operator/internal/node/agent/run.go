package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// doRun releases the client, in whichever way it is held.
func (c *clientRunner) doRun(ctx context.Context) {
	run, err := c.clock.awaitRun(ctx)
	if err != nil {
		return
	}
	d := c.directive()
	if d.Client == nil {
		return
	}
	zero := c.clock.monotonic(run.ZeroUnixNanos)
	var released int64
	if d.Client.WaitReady {
		released, err = c.writeStart(zero, run.Windows)
	} else {
		released, err = c.starter.startClient(ctx, d.Containers[0], zero-int64(run.WarmUp))
	}
	if err != nil {
		c.failUnlessDone(ctx, fmt.Errorf("release the client: %w", err))
		return
	}
	c.record(func(j *journal) {
		if j.Client == nil { // an agent that was restarted releases no client
			j.Client = &protocol.ClientRun{Released: time.Duration(released - zero)}
		}
	})
}

// smallFile is the most that the files take by which a client and its agent talk.
const smallFile = 64 << 10

// startClient starts a client's process at an instant, and returns when it was started.
func (s *starter) startClient(ctx context.Context, c protocol.Container, at int64) (started int64, err error) {
	if err := s.startProcess(ctx, c, at); err != nil {
		return 0, err
	}
	err = s.await(ctx, func() bool {
		started = s.launchers.process(c.Name).StartedAt
		return started != 0
	})
	return started, err
}

// writeStart tells a client at the barrier when t = 0 is, and returns when the client could know. A
// file that is there already stays: the client may have read it.
func (c *clientRunner) writeStart(zero int64, windows timeline.Windows) (written int64, err error) {
	path := c.inRunDir(protocol.StartFile)
	if there, err := os.Stat(path); err == nil {
		return launcher.Monotonic() - int64(c.config.Wall().Sub(there.ModTime())), nil
	}
	wall := c.config.Wall().UnixNano() + zero - launcher.Monotonic()
	content, err := json.Marshal(protocol.StartSignal{ZeroMonotonicNanos: zero, ZeroUnixNanos: wall, Windows: windows})
	if err != nil {
		return 0, err
	}
	err = writeAtomically(path, content, 0o644)
	return launcher.Monotonic(), err
}

// doProgress reads what the client tells about its progress.
func (c *clientRunner) doProgress(ctx context.Context) {
	if c.await(ctx, func() bool { return c.directiveLocked().Run != nil && c.directiveLocked().Client != nil }) != nil {
		return
	}
	for pause(ctx, progressSpacing/2) {
		content, err := c.readRun(filepath.Base(protocol.ProgressFile), smallFile)
		var progress protocol.Progress
		// Most clients tell nothing, and one that is writing will be done the next time.
		if err != nil || json.Unmarshal(content, &progress) != nil {
			continue
		}
		c.noteQuietly(func() {
			if c.volatile.progress == nil || *c.volatile.progress != progress {
				c.volatile.progress = &progress
			}
		})
	}
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
