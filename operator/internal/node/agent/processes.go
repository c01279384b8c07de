package agent

import (
	"context"
	"fmt"
	"os"

	"assay.dev/assay/operator/internal/node/protocol"
)

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
		// The launcher is the barrier of such a client.
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
