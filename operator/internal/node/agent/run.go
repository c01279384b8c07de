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

// doRun releases the client from its barrier.
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

// writeStart writes t = 0 for a client at the barrier, and returns when the client could know it.
// It leaves an existing file in place: the client may have read it.
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

// doProgress reads the progress that the client reports.
func (c *clientRunner) doProgress(ctx context.Context) {
	if c.await(ctx, func() bool { return c.directiveLocked().Run != nil && c.directiveLocked().Client != nil }) != nil {
		return
	}
	for pause(ctx, progressSpacing/2) {
		content, err := c.readRun(filepath.Base(protocol.ProgressFile), smallFile)
		var progress protocol.Progress
		// Most clients report no progress, and a file that is half written will be complete the
		// next time.
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
