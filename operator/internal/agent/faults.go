package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

// silenceLead is how long before the kill the silence begins: long enough for the packets that are
// on their way through the kernel.
const silenceLead = 100 * time.Microsecond

// kill makes the pod vanish: silent first, then dead. Whatever takes time is done before: at the
// instant the kernel's packet filter looks at its clock, and the launchers' timers go off. Nobody
// waits for anybody, as three pods on one busy processor would.
//
//	T - armLead        silence planned in the kernel, kill planned in every launcher, with its permit
//	T - silenceLead    no packet leaves or enters any more                    -> Started
//	T                  SIGKILL                                                -> Confirmed, by what follows
//	                   last process reaped                                    -> Reaped
//	                   the silence made to last
//	                   volumes emptied, as the loss of power, or of the disk, does
//	                   sockets without an owner destroyed
//
// All of it may be repeated by an agent that was restarted half way. An agent that may not touch
// the pod's network leaves the silence out: at T the pod's kernel closes the connections, and the
// peers know.
func (a *Agent) kill(ctx context.Context, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	if !action.WithoutSilence {
		if err := a.silence.prepare(); err != nil {
			return record, err
		}
	}
	names := a.containerNames()
	results := make([]launcher.KillResult, len(names))
	failures := make([]error, len(names))
	var kills sync.WaitGroup
	for i, name := range names {
		kills.Go(func() {
			request := launcher.Request{Kill: &launcher.Kill{ID: action.ID, AtMonotonicNanos: instant, AwaitPermit: !action.WithoutSilence}}
			if i == 0 {
				request.Kill.Empty = lostVolumes(a.directive().Volumes, action.LoseDisk)
			}
			results[i], failures[i] = a.askKill(ctx, name, request)
		})
	}
	silence := planned{at: math.MaxInt64}
	if !action.WithoutSilence {
		if silence, err = a.silence.plan(instant - int64(silenceLead)); err != nil {
			return record, err // the launchers still wait for their permit, and never get it
		}
		for _, name := range names {
			if !a.permitKill(name, instant) {
				kills.Go(func() { a.permitKillLater(ctx, name, instant) })
			}
		}
	}
	kills.Wait()
	if err := errors.Join(failures...); err != nil {
		return record, err
	}
	if !action.WithoutSilence {
		if err := a.silence.hold(silence); err != nil {
			return record, err
		}
	}
	silent, dead, reaped := silence.at, int64(0), int64(0)
	for _, result := range results {
		dead, reaped = max(dead, result.ConfirmedAt), max(reaped, result.ReapedAt)
		// An agent before this one may have planned both.
		silent = min(silent, result.KilledAt)
	}
	if action.WithoutSilence {
		// Their connections are closed, and it may not look for orphans.
	} else if err := netem.DestroyOrphans(); err != nil {
		a.config.Log.Warn("Connections of killed processes stay in the kernel; after a revival they may say goodbye", "error", err)
	}
	record = recordAt(action, instant, silent, dead)
	record.Reaped = action.At + time.Duration(reaped-instant)
	return record, nil
}

// lostVolumes are those that a kill empties.
func lostVolumes(volumes []protocol.Volume, disk bool) []string {
	var paths []string
	for _, volume := range volumes {
		if volume.Memory || disk {
			paths = append(paths, volume.Path)
		}
	}
	return paths
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

// permitKill permits it at once, unless the launcher is out of reach just now.
func (a *Agent) permitKill(name string, instant int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.boxes[name]
	if b == nil || b.client == nil {
		return false
	}
	b.client.Permit(instant)
	return true
}

// permitKillLater gives up with the action, whose own request of that launcher then says why.
func (a *Agent) permitKillLater(ctx context.Context, name string, instant int64) {
	for !a.permitKill(name, instant) && pause(ctx, boxPause) {
	}
}

// revive gives the pod its network back and starts its processes again, in order.
func (a *Agent) revive(ctx context.Context, run protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	a.loseRoles()
	if err := launcher.SleepUntil(ctx, instant); err != nil {
		return record, err
	}
	if other := a.otherKill(run, action.Ends); other != "" {
		return record, fmt.Errorf("the pod stays down, since %q holds it down, too", other)
	}
	began := launcher.Monotonic()
	if !action.WithoutSilence {
		if err := a.silence.disarm(); err != nil {
			return record, err
		}
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
	return recordAt(action, instant, began, running), nil
}

// otherKill names another kill of the pod that is in force. Two faults that target a role may both
// hit this replica.
func (a *Agent) otherKill(run protocol.Run, id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, action := range run.Actions {
		if record, recorded := a.recordedLocked(action.ID); action.Kind != timeline.Kill || action.ID == id || !recorded || record.Skipped || record.Error != "" {
			continue
		}
		if !slices.ContainsFunc(run.Actions, func(end timeline.Action) bool {
			_, over := a.recordedLocked(end.ID)
			return end.Ends == action.ID && over
		}) {
			return action.ID
		}
	}
	return ""
}

func (a *Agent) containerNames() []string {
	var names []string
	for _, c := range a.directive().Containers {
		names = append(names, c.Name)
	}
	return names
}
