package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

const (
	// armLead is how long before a kill its parts are put in place.
	armLead = 2 * time.Second
	// silenceLead is how long before the kill the silence begins: what adding one rule takes, with a margin for a loaded node. When it is not
	// enough the kill waits for the silence, never the other way round.
	silenceLead = 500 * time.Microsecond
)

// doActions carries out the run's actions in the order of their instants. One that is late, because the agent was not there, is carried
// out at once: the record shows it, and the coordinator judges.
//
// Whether they are possible here at all is found out as soon as the run is known, not when they are due.
func (a *Agent) doActions(ctx context.Context) {
	run, err := a.awaitRun(ctx)
	if err != nil {
		return
	}
	if kills(&run) {
		if err := a.silence.Check(); err != nil {
			a.fail(fmt.Errorf("this pod cannot be silenced, as its faults need: %w", err))
		}
	}
	for {
		var next *timeline.Action
		if a.await(ctx, func() bool {
			next = a.nextAction()
			return next != nil
		}) != nil {
			return
		}
		record, err := a.carryOut(ctx, run, *next)
		if ctx.Err() != nil {
			return
		}
		record.ID, record.Planned = next.ID, next.At
		if err != nil {
			record.Error = err.Error()
		}
		a.record(func(j *journal) { j.Actions = append(j.Actions, record) })
	}
}

func kills(run *protocol.Run) bool {
	return run != nil && slices.ContainsFunc(run.Actions, func(action timeline.Action) bool { return action.Kind == timeline.Kill })
}

// restoreNetwork ends a silence that may be there. Without a kill in the run there is none, and perhaps not even the right to look.
func (a *Agent) restoreNetwork() error {
	if !kills(a.directive().Run) {
		return nil
	}
	return a.silence.Remove()
}

// nextAction finds the earliest action that is not recorded. The caller holds a.mu.
func (a *Agent) nextAction() *timeline.Action {
	d := a.directiveLocked()
	if d.Run == nil {
		return nil
	}
	var next *timeline.Action
	for i, action := range d.Run.Actions {
		done := slices.ContainsFunc(a.journal.Actions, func(r protocol.ActionRecord) bool { return r.ID == action.ID })
		if !done && (next == nil || action.At < next.At) {
			next = &d.Run.Actions[i]
		}
	}
	return next
}

func (a *Agent) carryOut(ctx context.Context, run protocol.Run, action timeline.Action) (protocol.ActionRecord, error) {
	switch action.Kind {
	case timeline.Kill:
		return a.kill(ctx, run, action)
	case timeline.Revive:
		return a.revive(ctx, run, action)
	default:
		return protocol.ActionRecord{}, fmt.Errorf("this agent does not know the action %q; agent and manager must be of the same release", action.Kind)
	}
}

// kill makes the pod vanish: silent first, then dead.
//
//	T - armLead        table prepared, every launcher has its kill planned
//	T - silenceLead    one rule added: no packet leaves or enters any more     -> Started
//	                   "go" to the launchers
//	T                  SIGKILL, by the launchers' own timers
//	                   last process reaped                                    -> Confirmed
//	                   sockets without an owner destroyed
//
// All of it may be repeated by an agent that was restarted half way.
func (a *Agent) kill(ctx context.Context, run protocol.Run, action timeline.Action) (record protocol.ActionRecord, err error) {
	at := run.ZeroUnixNanos + int64(action.At)
	if err := a.until(ctx, at-int64(armLead)); err != nil {
		return record, err
	}
	if err := a.silence.Prepare(); err != nil {
		return record, err
	}
	instant := a.clock.monotonic(at)
	names := a.containerNames()
	results := make([]launcher.KillResult, len(names))
	failures := make([]error, len(names))
	var kills sync.WaitGroup
	for i, name := range names {
		kills.Go(func() {
			request := launcher.Request{Kill: &launcher.Kill{ID: action.ID, AtMonotonicNanos: instant, AwaitGo: true}}
			results[i], failures[i] = a.askKill(ctx, name, request)
		})
	}
	silent, err := a.beginSilence(ctx, instant-int64(silenceLead))
	if err != nil {
		return record, err // the launchers still wait for their go, and never get it
	}
	for _, name := range names {
		kills.Go(func() { a.permitKill(ctx, name, action.ID) })
	}
	kills.Wait()
	if err := errors.Join(failures...); err != nil {
		return record, err
	}
	var dead int64
	for _, result := range results {
		dead = max(dead, result.ConfirmedAt)
		silent = min(silent, result.KilledAt)
	}
	if err := netem.DestroyOrphans(); err != nil {
		a.config.Log.Warn("Connections of killed processes stay in the kernel; after a revival they may say goodbye", "error", err)
	}
	// Both against the instant that was planned for, on the clock that does not jump: a new estimate of the coordinator's clock between plan and
	// record is no lateness. How far the estimate may be off is reported by itself (Report.ClockError).
	record.Started = action.At + time.Duration(silent-instant)
	record.Confirmed = action.At + time.Duration(dead-instant)
	return record, nil
}

func (a *Agent) askKill(ctx context.Context, name string, request launcher.Request) (launcher.KillResult, error) {
	response, err := a.ask(ctx, name, request)
	switch {
	case err != nil:
		return launcher.KillResult{}, fmt.Errorf("kill container %s: %w", name, err)
	case response.Kill == nil || response.Kill.Error != "":
		reason := "its launcher does not say how it went"
		if response.Kill != nil {
			reason = response.Kill.Error
		}
		return launcher.KillResult{}, fmt.Errorf("kill container %s: %s", name, reason)
	}
	return *response.Kill, nil
}

func (a *Agent) permitKill(ctx context.Context, name, id string) {
	if _, err := a.ask(ctx, name, launcher.Request{Go: &launcher.Go{ID: id}}); err != nil && ctx.Err() == nil {
		a.config.Log.Error("A launcher was not told to kill", "container", name, "error", err)
	}
}

// beginSilence arms the silence at an instant and returns when the first packet could have been dropped.
func (a *Agent) beginSilence(ctx context.Context, at int64) (int64, error) {
	if armed, err := a.silence.Armed(); err != nil {
		return 0, err
	} else if armed {
		// An agent before this one did it; the launchers know when they killed.
		return launcher.Monotonic(), nil
	}
	if err := launcher.SleepUntil(ctx, at); err != nil {
		return 0, err
	}
	began := launcher.Monotonic()
	return began, a.silence.Arm()
}

// revive gives the pod its network back and starts its processes again, in order.
func (a *Agent) revive(ctx context.Context, run protocol.Run, action timeline.Action) (record protocol.ActionRecord, err error) {
	if err := a.until(ctx, run.ZeroUnixNanos+int64(action.At)); err != nil {
		return record, err
	}
	began := launcher.Monotonic()
	if err := a.silence.Remove(); err != nil {
		return record, err
	}
	var running int64
	for _, name := range a.containerNames() {
		response, err := a.ask(ctx, name, launcher.Request{Revive: &launcher.Revive{ID: action.ID}})
		switch {
		case err != nil:
			return record, fmt.Errorf("revive container %s: %w", name, err)
		case response.Revive == nil || response.Revive.Error != "":
			reason := "its launcher does not say how it went"
			if response.Revive != nil {
				reason = response.Revive.Error
			}
			return record, fmt.Errorf("revive container %s: %s", name, reason)
		}
		running = max(running, response.Revive.StartedAt)
	}
	record.Started, record.Confirmed = a.clock.since(run.ZeroUnixNanos, began), a.clock.since(run.ZeroUnixNanos, running)
	return record, nil
}

func (a *Agent) containerNames() []string {
	var names []string
	for _, c := range a.directive().Containers {
		names = append(names, c.Name)
	}
	return names
}
