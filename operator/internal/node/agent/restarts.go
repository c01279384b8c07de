package agent

import (
	"context"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/node/protocol"
)

// doRestarts starts the processes again in containers that a planned fault restarted. The
// coordinator judges by the kubelet's count whether there were more restarts than planned. Files
// and volumes stay as they were, since they belong to the pod.
func (s *starter) doRestarts(ctx context.Context) {
	if s.await(ctx, func() bool { return s.volatile.processes }) != nil {
		return // until then doProcesses starts the processes, with any launcher
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

// restarted lists, in order, the containers with a new launcher because of a planned restart. The
// caller holds the lock.
func (s *starter) restarted() []protocol.Container {
	return slices.DeleteFunc(slices.Clone(s.directiveLocked().Containers), func(c protocol.Container) bool {
		b, started := s.launchers.conns[c.Name], s.journal.Launchers[c.Name]
		return b == nil || b.state == nil || b.lost || started == "" || started == b.state.Incarnation
	})
}
