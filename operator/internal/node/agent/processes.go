package agent

import (
	"context"
	"fmt"
	"os"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// starter starts the pod's processes, and starts them again where a fault restarts containers.
type starter struct {
	*state
	clock     *runClock
	launchers *launchers
	resolver  *resolver
	roles     *roleWatcher
}

// doProcesses starts the pod's processes in order, each when the one before runs. A client that is
// held until the release is left out: doRun starts it.
func (s *starter) doProcesses(ctx context.Context) {
	if s.await(ctx, func() bool { return s.directiveLocked().Start && s.prepared() }) != nil {
		return
	}
	d := s.directive()
	for i, c := range d.Containers {
		if i == 0 && heldUntilRelease(d) {
			continue
		}
		if err := s.startProcess(ctx, c, 0); err != nil {
			s.failUnlessDone(ctx, fmt.Errorf("start container %s: %w", c.Name, err))
			return
		}
		if s.await(ctx, func() bool { return s.launchers.process(c.Name).Starts > 0 }) != nil {
			return
		}
	}
	if heldUntilRelease(d) {
		// The barrier of such a client is its launcher.
		first := d.Containers[0].Name
		if s.await(ctx, func() bool { return s.launchers.conns[first] != nil && s.launchers.conns[first].state != nil }) != nil {
			return
		}
		s.note(func() { s.volatile.processes, s.volatile.atBarrier = true, true })
		return
	}
	s.note(func() { s.volatile.processes = true })
	if d.Client != nil {
		s.awaitReadyFile(ctx)
	}
}

// prepared reports whether files and names are as the directive wants them, and nothing that
// disturbs a process is left to do. The caller holds the lock.
func (s *starter) prepared() bool {
	d := s.directiveLocked()
	tried := s.journal.Network != nil && s.journal.Network.Tried
	return s.volatile.directiveSeen && tried && len(d.Containers) > 0 && d.FilesDigest == s.journal.FilesDigest && len(s.resolver.unresolved()) == 0
}

// heldUntilRelease reports whether the pod's first process starts with the run only.
func heldUntilRelease(d protocol.Directive) bool { return d.Client != nil && !d.Client.WaitReady }

// startProcess tells a launcher to start its process, now or at an instant, as soon as no fault
// wants the container to be without. Which launcher that is goes into the journal first.
func (s *starter) startProcess(ctx context.Context, c protocol.Container, at int64) error {
	for !s.clock.mayStart() {
		if !pause(ctx, restartPause) {
			return ctx.Err()
		}
	}
	var incarnation string
	if err := s.await(ctx, func() bool {
		b := s.launchers.conns[c.Name]
		if b == nil || b.state == nil {
			return false
		}
		incarnation = b.state.Incarnation
		return true
	}); err != nil {
		return err
	}
	s.record(func(j *journal) {
		if !s.launchers.conns[c.Name].lost {
			j.Launchers[c.Name] = incarnation
		}
	})
	start := launcher.Start{Command: c.Command, Env: c.Env, Dir: c.Dir, AtMonotonicNanos: at, Processors: (*launcher.Processors)(c.Processors), Respawn: c.Respawn}
	if d := s.directive(); d.Client != nil && c.Name == d.Containers[0].Name {
		start.Arrivals = d.Client.ByArrival()
	}
	_, err := s.launchers.ask(ctx, c.Name, launcher.Request{Start: &start})
	return err
}

// awaitReadyFile notices that the client waits at the barrier.
func (s *starter) awaitReadyFile(ctx context.Context) {
	for {
		if _, err := os.Stat(s.inRunDir(protocol.ReadyFile)); err == nil {
			s.note(func() { s.volatile.atBarrier = true })
			return
		}
		if !pause(ctx, connPause) {
			return
		}
	}
}
