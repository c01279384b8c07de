package agent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// exactly is how late a reset may be and still count as begun at its planned instant. The agent
	// wrote that instant down before.
	exactly = time.Millisecond
	// tooLate is the delay after which the agent skips a reset that it missed. A machine that comes
	// back must never be reset because of its journal.
	tooLate = time.Second
	// downWithin is how long a machine may go on after its reset before the reset counts as failed.
	downWithin = 10 * time.Second
)

// Machine is a node that the agent resets. RunMachine is the life of such an agent, instead of Run.
// All fields are required.
type Machine struct {
	// Node is the name of the node that the agent runs on.
	Node string
	// Reset resets the machine and does not return, or says why it cannot.
	Reset func() error
	// Identity tells one life of the machine from the next.
	Identity func() (string, error)
}

// rebooter resets the machine that the agent runs on.
type rebooter struct {
	*state
	clock *runClock
}

// doMachine carries out the resets of the directive. came is when this agent started, on
// CLOCK_MONOTONIC.
func (b *rebooter) doMachine(ctx context.Context, m Machine, came int64) error {
	var named protocol.Machine
	if err := b.await(ctx, func() bool {
		d := b.directiveLocked()
		if d.Machine != nil {
			named = *d.Machine
		}
		return d.Machine != nil
	}); err != nil {
		return err
	}
	if named.Node != m.Node || m.Node == "" {
		return fmt.Errorf("the directive is for node %q, and this agent runs on node %q; it resets nothing", named.Node, m.Node)
	}
	identity, err := m.Identity()
	if err != nil {
		return fmt.Errorf("identify this boot of the machine: %w", err)
	}
	b.note(func() { b.volatile.gatesHold = true })
	run, err := b.clock.awaitRun(ctx)
	if err != nil {
		return err
	}
	b.settle(run, identity, b.clock.since(run.ZeroUnixNanos, came))
	for {
		var next timeline.Action
		if err := b.await(ctx, func() (found bool) {
			next, found = b.nextAction(nil)
			return found
		}); err != nil {
			return err
		}
		if err := b.clock.until(ctx, run.ZeroUnixNanos+int64(next.At-armLead)); err != nil {
			return err
		}
		if err := b.resetMachine(ctx, m, run, next.At, identity); err != nil {
			return err
		}
	}
}

// settle records the outcome of a reset that an agent before this one wrote down. came is when this
// agent started.
func (b *rebooter) settle(run protocol.Run, identity string, came time.Duration) {
	b.mu.Lock()
	mark := b.journal.Reset
	b.mu.Unlock()
	if mark == nil || mark.Machine == identity && came < mark.Started {
		return // there was no reset, or it is still to come
	}
	record := protocol.ActionRecord{Started: mark.Started, Confirmed: came}
	if mark.Machine == identity {
		record = protocol.ActionRecord{Error: "the agent that would have reset the machine was restarted, and the machine did not go down"}
	}
	b.recordResets(run, mark.Actions, record)
}

// recordResets gives all of the actions the same record, unless they have one.
func (b *rebooter) recordResets(run protocol.Run, ids []string, record protocol.ActionRecord) {
	b.record(func(j *journal) {
		actions := slices.Clip(j.Actions)
		for _, action := range run.Actions {
			if _, recorded := b.recordedLocked(action.ID); recorded || !slices.Contains(ids, action.ID) {
				continue
			}
			record.ID, record.Planned = action.ID, action.At
			actions = append(actions, record)
		}
		j.Actions = actions
	})
}

// resetMachine resets the machine at an instant for every action that is planned for it. It returns
// only when the reset failed, with the reason in the record. It returns an error only when ctx is
// done.
func (b *rebooter) resetMachine(ctx context.Context, m Machine, run protocol.Run, at time.Duration, identity string) error {
	var ids []string
	for _, action := range run.Actions {
		if action.At == at && action.Kind == timeline.Reset {
			ids = append(ids, action.ID)
		}
	}
	failed := func(format string, args ...any) error {
		b.recordResets(run, ids, protocol.ActionRecord{Error: fmt.Sprintf(format, args...)})
		return nil
	}
	instant := b.clock.monotonic(run.ZeroUnixNanos + int64(at))
	if late := time.Duration(launcher.Monotonic() - instant); late > tooLate {
		return failed("the agent was not there in time: %v late; a reset that was missed is not made up for", late.Round(time.Millisecond))
	}
	mark := rebootMarker{Actions: ids, Started: at, Machine: identity}
	b.record(func(j *journal) { j.Reset = &mark })
	if err := launcher.SleepUntil(ctx, instant); err != nil {
		return err
	}
	b.mu.Lock()
	finish, failure := b.directiveLocked().Finish, b.volatile.failure
	b.mu.Unlock()
	if finish {
		return failed("the trial had ended before")
	}
	if failure != "" {
		return failed("%s", failure) // the disk did not take the marker that the agent needs after the reset
	}
	if late := time.Duration(launcher.Monotonic() - instant); late > exactly {
		mark.Started += late
		b.record(func(j *journal) { j.Reset = &rebootMarker{Actions: ids, Started: mark.Started, Machine: identity} })
	}
	refused := make(chan error, 1)
	go func() { refused <- m.Reset() }()
	select {
	case err := <-refused:
		return failed("reset the machine: %v", err)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(downWithin):
		return failed("the machine was told to reset and still ran %v later", downWithin)
	}
}

// MachineIdentity differs from one life of a machine to the next. It has the kernel's boot ID and
// the start time of the first process, for machines that are containers. Call it in the machine's
// own PID namespace.
func MachineIdentity() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	stat, err := os.ReadFile("/proc/1/stat")
	if err != nil {
		return "", err
	}
	started, err := startOf(string(stat))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + started, nil
}

// startOf reads when a process started out of /proc/<pid>/stat: the 22nd field. The second, the
// command, is in brackets and may hold anything.
func startOf(stat string) (string, error) {
	const start = 22 - 3 // the first field after the command is the third
	end := strings.LastIndexByte(stat, ')')
	if fields := strings.Fields(stat[end+1:]); end >= 0 && len(fields) > start {
		return fields[start], nil
	}
	return "", fmt.Errorf("read /proc/1/stat: %q is not as proc(5) says", stat)
}
