package agent

import (
	"context"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// restartPause is how often a container that came anew is looked at until its process may be
// started.
const restartPause = 100 * time.Millisecond

// starter starts the pod's processes, and starts them again where a fault restarts containers.
type starter struct {
	*state
	clock     *runClock
	launchers *launchers
	resolver  *resolver
	roles     *roleWatcher
}

// prepared reports whether files and names are as the directive wants them, and nothing that
// disturbs a process is left to do. The caller holds the lock.
func (s *starter) prepared() bool {
	d := s.directiveLocked()
	tried := s.journal.Network != nil && s.journal.Network.Tried
	return s.volatile.directiveSeen && tried && len(d.Containers) > 0 && d.FilesDigest == s.journal.FilesDigest && len(s.resolver.unresolved()) == 0
}

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
