package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// commandRunner runs the commands of the System's steps.
type commandRunner struct {
	*state
	launchers *launchers
	gates     *gates
	starter   *starter
}

// doCommands runs the directive's commands, once each, in order. A replica's commands wait until
// the replica is ready. A client starts after its commands, so they wait only for files and names.
func (cr *commandRunner) doCommands(ctx context.Context) {
	for {
		var next *protocol.Command
		if cr.await(ctx, func() bool {
			d := cr.directiveLocked()
			if ready, _ := cr.gates.readiness(d); !cr.starter.prepared() || d.Client == nil && !ready {
				return false
			}
			i := slices.IndexFunc(d.Commands, func(c protocol.Command) bool {
				return !slices.ContainsFunc(cr.journal.Commands, func(r protocol.CommandResult) bool { return r.ID == c.ID })
			})
			if i >= 0 {
				next = &d.Commands[i]
			}
			return next != nil
		}) != nil {
			return
		}
		result := cr.runCommand(ctx, *next)
		if ctx.Err() != nil {
			return
		}
		cr.record(func(j *journal) { j.Commands = append(j.Commands, result) })
	}
}

// runCommand runs one command until it is done. The attempts of a command that is repeated share
// one timeout.
func (cr *commandRunner) runCommand(ctx context.Context, command protocol.Command) protocol.CommandResult {
	first := cr.directive().Containers[0].Name
	deadline := launcher.Monotonic() + int64(command.Timeout)
	for attempt := 0; ; attempt++ {
		try := command
		if command.Until == "Retry" {
			// The agent's incarnation is part of the name: after a restart an attempt is a new one.
			try.ID = fmt.Sprintf("%s/%s/%d", command.ID, cr.volatile.incarnation, attempt)
			try.Timeout = max(time.Duration(deadline-launcher.Monotonic()), time.Millisecond)
		}
		result, err := cr.launchers.runIn(ctx, first, try)
		result.ID = command.ID
		if err != nil {
			result.Error = err.Error()
			return result
		}
		if command.Until != "Retry" || result.ExitCode == 0 && result.Error == "" {
			return result
		}
		if launcher.Monotonic()+int64(commandPause) >= deadline {
			result.Error = fmt.Sprintf("did not exit with 0 within %v, in %d attempts", command.Timeout, attempt+1)
			return result
		}
		if !pause(ctx, commandPause) {
			return result
		}
	}
}
