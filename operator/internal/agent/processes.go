package agent

import (
	"context"
	"fmt"
	"os"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
)

// doProcesses starts the pod's processes in order, each when the one before runs. A client that is
// held until the release is left out: doRun starts it.
func (a *Agent) doProcesses(ctx context.Context) {
	if a.await(ctx, func() bool { return a.directiveLocked().Start && a.prepared() }) != nil {
		return
	}
	d := a.directive()
	for i, c := range d.Containers {
		if i == 0 && heldUntilRelease(d) {
			continue
		}
		if err := a.startProcess(ctx, c, 0); err != nil {
			a.failUnlessDone(ctx, fmt.Errorf("start container %s: %w", c.Name, err))
			return
		}
		if a.await(ctx, func() bool { return a.process(c.Name).Starts > 0 }) != nil {
			return
		}
	}
	if heldUntilRelease(d) {
		// The barrier of such a client is its launcher.
		first := d.Containers[0].Name
		if a.await(ctx, func() bool { return a.boxes[first] != nil && a.boxes[first].state != nil }) != nil {
			return
		}
		a.note(func() { a.seen.processes, a.seen.atBarrier = true, true })
		return
	}
	a.note(func() { a.seen.processes = true })
	if d.Client != nil {
		a.awaitReadyFile(ctx)
	}
}

// prepared reports whether files and names are as the directive wants them, and nothing that
// disturbs a process is left to do. The caller holds a.mu.
func (a *Agent) prepared() bool {
	d := a.directiveLocked()
	tried := a.journal.Network != nil && a.journal.Network.Tried
	return a.seen.directiveSeen && tried && len(d.Containers) > 0 && d.FilesDigest == a.journal.FilesDigest && len(a.unresolved()) == 0
}

// heldUntilRelease reports whether the pod's first process starts with the run only.
func heldUntilRelease(d protocol.Directive) bool { return d.Client != nil && !d.Client.WaitReady }

// startProcess tells a launcher to start its process, now or at an instant, as soon as no fault
// wants the container to be without. Which launcher that is goes into the journal first.
func (a *Agent) startProcess(ctx context.Context, c protocol.Container, at int64) error {
	for !a.mayStart() {
		if !pause(ctx, restartPause) {
			return ctx.Err()
		}
	}
	var incarnation string
	if err := a.await(ctx, func() bool {
		b := a.boxes[c.Name]
		if b == nil || b.state == nil {
			return false
		}
		incarnation = b.state.Incarnation
		return true
	}); err != nil {
		return err
	}
	a.record(func(j *journal) {
		if !a.boxes[c.Name].lost {
			j.Launchers[c.Name] = incarnation
		}
	})
	start := launcher.Start{Command: c.Command, Env: c.Env, Dir: c.Dir, AtMonotonicNanos: at, Processors: (*launcher.Processors)(c.Processors), Respawn: c.Respawn}
	if d := a.directive(); d.Client != nil && c.Name == d.Containers[0].Name {
		start.Arrivals = d.Client.ByArrival()
	}
	_, err := a.ask(ctx, c.Name, launcher.Request{Start: &start})
	return err
}

// awaitReadyFile notices that the client waits at the barrier.
func (a *Agent) awaitReadyFile(ctx context.Context) {
	for {
		if _, err := os.Stat(a.inRunDir(protocol.ReadyFile)); err == nil {
			a.note(func() { a.seen.atBarrier = true })
			return
		}
		if !pause(ctx, boxPause) {
			return
		}
	}
}

// failUnlessDone reports an error that is not just the end of the stage.
func (a *Agent) failUnlessDone(ctx context.Context, err error) {
	if ctx.Err() == nil {
		a.fail(err)
	}
}
