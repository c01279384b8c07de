package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// lastWords is how long the agent waits for the output of a failed step. The launcher of a busy
// node reports the exit before it has read all output. A process that the step left behind may hold
// the output open for ever.
const lastWords = 2 * time.Second

// doPrepare waits for the prepare step and sends what it made.
func (c *clientRunner) doPrepare(ctx context.Context) {
	if c.await(ctx, func() bool { return c.directiveLocked().Prepare != nil && c.volatile.processes }) != nil {
		return
	}
	c.mu.Lock()
	sent := c.journal.Sent
	c.mu.Unlock()
	if sent {
		return
	}
	d := c.directive()
	err := c.sendPrepared(ctx, d.Containers[0].Name, *d.Prepare)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.fail(err)
	}
	c.record(func(j *journal) { j.Over, j.Sent = true, err == nil })
}

// printed says what a process printed last.
func printed(tail string) string {
	if tail = strings.TrimSpace(tail); tail == "" {
		return "it printed nothing"
	}
	return "it printed: " + tail
}

func (c *clientRunner) sendPrepared(ctx context.Context, name string, step protocol.Prepare) error {
	state, err := c.awaitStep(ctx, name, step)
	if err != nil {
		return err
	}
	if state.ExitCode != 0 {
		return unreadable(fmt.Errorf("the prepare step exited with %d; %s", state.ExitCode, printed(state.Tail)))
	}
	response, err := c.launchers.ask(ctx, name, launcher.Request{Archive: &launcher.Archive{Path: step.OutputPath, Limit: protocol.PreparedLimit}})
	if err != nil {
		return unreadable(fmt.Errorf("pack the prepare step's output: %w", err))
	}
	packed, err := c.readShared(response.File, protocol.PreparedLimit)
	if err != nil {
		return fmt.Errorf("read the prepare step's packed output: %w", err)
	}
	if err := c.coordinator.sendUntilTaken(ctx, "/v1/prepared", packed); err != nil {
		return unreadable(fmt.Errorf("send the prepare step's output: %w", err)) // the manager refuses it
	}
	return nil
}

// awaitStep returns the state of the step when it has exited. It ends a step that takes too long.
func (c *clientRunner) awaitStep(ctx context.Context, name string, step protocol.Prepare) (state launcher.State, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if step.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, step.Timeout)
	}
	defer cancel()
	exited := func() bool {
		state = c.launchers.process(name)
		return state.Process == launcher.Exited
	}
	err = c.await(limited, exited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		_, err := c.launchers.ask(ctx, name, launcher.Request{Stop: &launcher.Stop{Signal: "SIGKILL"}})
		if err == nil {
			// Its output is complete now.
			err = c.await(ctx, func() bool { return exited() && state.Stopped })
		}
		if err != nil {
			return state, fmt.Errorf("end the prepare step, which took longer than %v: %w", step.Timeout, err)
		}
		return state, unreadable(fmt.Errorf("the prepare step took longer than %v; %s", step.Timeout, printed(state.Tail)))
	}
	if err == nil && state.ExitCode != 0 {
		said, cancel := context.WithTimeout(ctx, lastWords)
		defer cancel()
		_ = c.await(said, func() bool { return exited() && state.OutputComplete }) // or the output so far must do
	}
	return state, err
}
