package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/protocol"
)

// isolationLead is how long before the kill the isolation begins: long enough for the packets that
// are on their way through the kernel.
const isolationLead = 100 * time.Microsecond

// kill makes the pod vanish: the network is cut first, then the processes die. The agent does all
// slow steps before. At the instant, the kernel's packet filter starts to drop, and the launchers'
// timers fire. No step waits for another step, since three pods may share one busy processor.
//
//	T - armLead        isolation planned in the kernel, kill planned in every launcher, with a go
//	T - isolationLead  no packet leaves or enters any more                    -> Started
//	T                  SIGKILL                                                -> Confirmed, by what follows
//	                   last process reaped                                    -> Reaped
//	                   the isolation made to last
//	                   volumes emptied, as the loss of power, or of the disk, does
//	                   sockets without an owner destroyed
//
// An agent that was restarted half way may repeat all of it. An agent without the right to change
// the pod's network makes no isolation. Then the pod's kernel closes the connections at T, and the
// peers notice.
func (f *faultScheduler) kill(ctx context.Context, _ protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	if !action.WithoutSilence {
		if err := f.isolation.prepare(); err != nil {
			return record, err
		}
	}
	names := f.containerNames()
	results := make([]launcher.KillResult, len(names))
	failures := make([]error, len(names))
	var kills sync.WaitGroup
	for i, name := range names {
		kills.Go(func() {
			request := launcher.Request{Kill: &launcher.Kill{ID: action.ID, AtMonotonicNanos: instant, AwaitPermit: !action.WithoutSilence}}
			if i == 0 {
				request.Kill.Empty = lostVolumes(f.directive().Volumes, action.LoseDisk)
			}
			results[i], failures[i] = f.askKill(ctx, name, request)
		})
	}
	isolated := planned{at: math.MaxInt64}
	if !action.WithoutSilence {
		if isolated, err = f.isolation.plan(instant - int64(isolationLead)); err != nil {
			return record, err // the launchers still wait for their go, and never get it
		}
		for _, name := range names {
			if !f.allowKill(name, instant) {
				kills.Go(func() { f.allowKillLater(ctx, name, instant) })
			}
		}
	}
	kills.Wait()
	if err := errors.Join(failures...); err != nil {
		return record, err
	}
	if !action.WithoutSilence {
		if err := f.isolation.hold(isolated); err != nil {
			return record, err
		}
	}
	cut, dead, reaped := isolated.at, int64(0), int64(0)
	for _, result := range results {
		dead, reaped = max(dead, result.ConfirmedAt), max(reaped, result.ReapedAt)
		// An agent before this one may have planned both the cut and the kills.
		cut = min(cut, result.KilledAt)
	}
	if action.WithoutSilence {
		// The kill has closed the connections of the processes, and this agent has no right to look
		// for orphans.
	} else if err := netem.DestroyOrphans(); err != nil {
		f.config.Log.Warn("Connections of killed processes stay in the kernel; after a revival they may say goodbye", "error", err)
	}
	record = recordAt(action, instant, cut, dead)
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

func (f *faultScheduler) askKill(ctx context.Context, name string, request launcher.Request) (launcher.KillResult, error) {
	response, err := f.launchers.ask(ctx, name, request)
	switch {
	case err != nil:
		return launcher.KillResult{}, fmt.Errorf("kill container %s: %w", name, err)
	case response.Kill == nil || response.Kill.Error != "":
		reason := "its launcher does not report a result"
		if response.Kill != nil {
			reason = response.Kill.Error
		}
		return launcher.KillResult{}, fmt.Errorf("kill container %s: %s", name, reason)
	}
	return *response.Kill, nil
}

// allowKill sends a launcher its go for a kill. It returns false if it cannot reach the launcher
// now.
func (f *faultScheduler) allowKill(name string, instant int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.launchers.conns[name]
	if b == nil || b.client == nil {
		return false
	}
	b.client.Permit(instant)
	return true
}

// allowKillLater retries until it reaches the launcher. It ends with the action: then the action's
// own request to that launcher gives the reason.
func (f *faultScheduler) allowKillLater(ctx context.Context, name string, instant int64) {
	for !f.allowKill(name, instant) && pause(ctx, connPause) {
	}
}

// revive gives the pod its network back and starts its processes again, in order.
func (f *faultScheduler) revive(ctx context.Context, run protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	f.roles.loseRoles()
	if err := launcher.SleepUntil(ctx, instant); err != nil {
		return record, err
	}
	if other := f.otherKill(run, action.Ends); other != "" {
		return record, fmt.Errorf("the pod stays down, since %q holds it down, too", other)
	}
	began := launcher.Monotonic()
	if !action.WithoutSilence {
		if err := f.isolation.disarm(); err != nil {
			return record, err
		}
	}
	var running int64
	for _, name := range f.containerNames() {
		response, err := f.launchers.ask(ctx, name, launcher.Request{Revive: &launcher.Revive{ID: action.ID}})
		switch {
		case err != nil:
			return record, fmt.Errorf("revive container %s: %w", name, err)
		case response.Revive == nil || response.Revive.Error != "":
			reason := "its launcher does not report a result"
			if response.Revive != nil {
				reason = response.Revive.Error
			}
			return record, fmt.Errorf("revive container %s: %s", name, reason)
		}
		running = max(running, response.Revive.StartedAt)
	}
	return recordAt(action, instant, began, running), nil
}

// otherKill names another kill of the pod that is in force: two faults that target a role may both
// kill this replica.
func (f *faultScheduler) otherKill(run protocol.Run, id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, action := range run.Actions {
		if record, recorded := f.recordedLocked(action.ID); action.Kind != timeline.Kill || action.ID == id || !recorded || record.Skipped || record.Error != "" {
			continue
		}
		if !slices.ContainsFunc(run.Actions, func(end timeline.Action) bool {
			_, over := f.recordedLocked(end.ID)
			return end.Ends == action.ID && over
		}) {
			return action.ID
		}
	}
	return ""
}

// prepareFilters prepares the packet filter for the run's actions. It fails at once when that is
// not possible here.
func (f *faultScheduler) prepareFilters(actions []timeline.Action) {
	has := func(kind timeline.Kind) bool {
		return slices.ContainsFunc(actions, func(action timeline.Action) bool { return action.Kind == kind && !action.WithoutSilence })
	}
	if !has(timeline.Kill) && !has(timeline.Cut) {
		return
	}
	f.record(func(j *journal) { j.Filtered = true })
	if has(timeline.Kill) {
		if err := f.isolation.prepare(); err != nil {
			f.fail(fmt.Errorf("this pod cannot be isolated from the network, as its faults need: %w", err))
		}
	}
	if has(timeline.Cut) {
		if err := f.drops.prepare(); err != nil {
			f.fail(fmt.Errorf("packets of this pod's links cannot be dropped, as its faults need: %w", err))
		}
	}
}
