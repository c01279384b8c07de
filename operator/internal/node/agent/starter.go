package agent

import (
	"context"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// restartPause is the wait between two checks whether the process of a restarted container may
// start.
const restartPause = 100 * time.Millisecond

// starter starts the pod's processes. It starts them again after a fault has restarted their
// containers.
type starter struct {
	*state
	clock     *runClock
	launchers *launchers
	resolver  *resolver
	roles     *roleWatcher
}

// prepared reports whether files and names are as the directive says, and no step that could
// disturb a process is left. The caller holds the lock.
func (s *starter) prepared() bool {
	d := s.directiveLocked()
	tried := s.journal.Network != nil && s.journal.Network.Tried
	return s.volatile.directiveSeen && tried && len(d.Containers) > 0 && d.FilesDigest == s.journal.FilesDigest && len(s.resolver.unresolved()) == 0
}

// startProcess tells a launcher to start its process, now or at an instant, once no fault keeps the
// process down. First it writes the launcher's incarnation into the journal.
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
