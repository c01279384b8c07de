package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// armLead is how long before an action its parts are put in place.
const armLead = 2 * time.Second

// faultScheduler carries out the actions of the run's faults, each at its instant.
type faultScheduler struct {
	*state
	clock     *runClock
	drops     *drops
	isolation *isolation
	links     *links
	launchers *launchers
	roles     *roleWatcher
	watcher   *watcher
}

// doActions carries out the run's actions, each in a goroutine of its own from its preparation on,
// so that one that takes long delays no other. One that is late, because the agent was not there,
// is carried out at once: the record shows it, and the coordinator judges.
//
// Whether they are possible here at all is found out as soon as the run is known, not when they are
// due.
func (f *faultScheduler) doActions(ctx context.Context) {
	run, err := f.clock.awaitRun(ctx)
	if err != nil {
		return
	}
	f.prepareFilters(run.Actions)
	var acts sync.WaitGroup
	defer acts.Wait()
	begun := map[string]bool{}
	for {
		var next timeline.Action
		if f.await(ctx, func() (found bool) {
			next, found = f.nextAction(begun)
			return found
		}) != nil {
			return
		}
		if f.clock.until(ctx, run.ZeroUnixNanos+int64(next.At-armLead)) != nil {
			return
		}
		begun[next.ID] = true
		acts.Go(func() { f.act(ctx, run, next) })
	}
}

// act carries out one action and records what came of it.
func (f *faultScheduler) act(ctx context.Context, run protocol.Run, action timeline.Action) {
	var record protocol.ActionRecord
	takes, unanswered, err := f.roles.takesPart(ctx, run, action)
	if err == nil && takes {
		f.noteQuietly(func() { f.volatile.acting[action.ID] = true })
		record, err = f.carryOut(ctx, run, action)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		record = protocol.ActionRecord{Error: err.Error()}
	}
	record.ID, record.Planned, record.Skipped = action.ID, action.At, err == nil && !takes
	if record.Skipped {
		record.Unanswered = unanswered
	}
	f.watcher.disturbed(run, action, record)
	f.record(func(j *journal) { j.Actions = append(slices.Clip(j.Actions), record) })
}

func (f *faultScheduler) carryOut(ctx context.Context, run protocol.Run, action timeline.Action) (protocol.ActionRecord, error) {
	if err := f.awaitEarlier(ctx, run, action); err != nil {
		return protocol.ActionRecord{}, err
	}
	// Converted once: from here on only the clock counts that does not jump.
	instant := f.clock.monotonic(run.ZeroUnixNanos + int64(action.At))
	switch action.Kind {
	case timeline.Kill:
		return f.kill(ctx, action, instant)
	case timeline.Revive:
		return f.revive(ctx, run, action, instant)
	case timeline.Pause, timeline.Resume:
		return f.pauseProcesses(ctx, action, instant)
	case timeline.Cut:
		return f.dropLinks(ctx, action, instant)
	case timeline.Heal:
		return f.heal(ctx, action, instant)
	case timeline.Degrade, timeline.Restore:
		return f.changeLinks(ctx, action, instant)
	default:
		return protocol.ActionRecord{}, fmt.Errorf("this agent does not know the action %q; agent and manager must be of the same release", action.Kind)
	}
}

// awaitEarlier keeps the order of actions with the same object, should one take until the next is
// due. A pod is revived when its kill is known, and killed again when its revival is. A link is
// restored when its change is known. A pause and its end are put in order by the launcher; drops
// and changes of links that are not each other's end add up in any order.
func (f *faultScheduler) awaitEarlier(ctx context.Context, run protocol.Run, action timeline.Action) error {
	var earlier []string
	switch action.Kind {
	case timeline.Kill, timeline.Revive:
		for _, other := range run.Actions {
			if other.At < action.At && (other.Kind == timeline.Revive || other.ID == action.Ends) {
				earlier = append(earlier, other.ID)
			}
		}
	case timeline.Heal, timeline.Restore:
		earlier = append(earlier, action.Ends)
	}
	return f.await(ctx, func() bool {
		return !slices.ContainsFunc(earlier, func(id string) bool {
			_, recorded := f.recordedLocked(id)
			return !recorded
		})
	})
}

// due reports whether the instant of an action has passed.
func (c *runClock) due(run protocol.Run, action timeline.Action) bool {
	return c.clock.since(run.ZeroUnixNanos, launcher.Monotonic()) >= action.At
}
