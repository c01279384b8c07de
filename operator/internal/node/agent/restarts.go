package agent

import (
	"context"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/node/protocol"
)

// doRestarts starts processes again whose containers were restarted by a fault that the run plans.
// Whether they were restarted more often than it plans, the coordinator judges, by the kubelet's
// count. Files and volumes are as they were: they are the pod's.
func (s *starter) doRestarts(ctx context.Context) {
	if s.await(ctx, func() bool { return s.volatile.processes }) != nil {
		return // until then doProcesses starts them, in whichever launcher it finds
	}
	for {
		var anew []protocol.Container
		if s.await(ctx, func() bool {
			anew = s.restarted()
			return len(anew) > 0
		}) != nil {
			return
		}
		s.roles.loseRoles()
		for _, c := range anew {
			if err := s.startProcess(ctx, c, 0); err != nil {
				s.failUnlessDone(ctx, fmt.Errorf("start container %s again: %w", c.Name, err))
				return
			}
		}
	}
}

// restarted lists the containers, in order, whose launcher is another one than their process was
// started in, as planned. The caller holds the lock.
func (s *starter) restarted() []protocol.Container {
	return slices.DeleteFunc(slices.Clone(s.directiveLocked().Containers), func(c protocol.Container) bool {
		b, started := s.launchers.conns[c.Name], s.journal.Launchers[c.Name]
		return b == nil || b.state == nil || b.lost || started == "" || started == b.state.Incarnation
	})
}
