package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

// armLead is how long before an action its parts are put in place.
const armLead = 2 * time.Second

// doActions carries out the run's actions, each in a goroutine of its own from its preparation on,
// so that one that takes long delays no other. One that is late, because the agent was not there,
// is carried out at once: the record shows it, and the coordinator judges.
//
// Whether they are possible here at all is found out as soon as the run is known, not when they are
// due.
func (a *Agent) doActions(ctx context.Context) {
	run, err := a.awaitRun(ctx)
	if err != nil {
		return
	}
	a.prepareFilters(run.Actions)
	var acts sync.WaitGroup
	defer acts.Wait()
	begun := map[string]bool{}
	for {
		var next timeline.Action
		if a.await(ctx, func() (found bool) {
			next, found = a.nextAction(begun)
			return found
		}) != nil {
			return
		}
		if a.until(ctx, run.ZeroUnixNanos+int64(next.At-armLead)) != nil {
			return
		}
		begun[next.ID] = true
		acts.Go(func() { a.act(ctx, run, next) })
	}
}

// nextAction finds the earliest action that is neither begun nor recorded. The caller holds a.mu.
func (a *Agent) nextAction(begun map[string]bool) (next timeline.Action, found bool) {
	d := a.directiveLocked()
	if d.Run == nil {
		return next, false
	}
	for _, action := range d.Run.Actions {
		if begun[action.ID] || found && action.At >= next.At {
			continue
		}
		if _, recorded := a.recordedLocked(action.ID); !recorded {
			next, found = action, true
		}
	}
	return next, found
}

// recordedLocked returns the record of an action. The caller holds a.mu.
func (a *Agent) recordedLocked(id string) (protocol.ActionRecord, bool) {
	i := slices.IndexFunc(a.journal.Actions, func(r protocol.ActionRecord) bool { return r.ID == id })
	if i < 0 {
		return protocol.ActionRecord{}, false
	}
	return a.journal.Actions[i], true
}

// act carries out one action and records what came of it.
func (a *Agent) act(ctx context.Context, run protocol.Run, action timeline.Action) {
	var record protocol.ActionRecord
	takes, err := a.takesPart(ctx, run, action)
	if err == nil && takes {
		a.noteQuietly(func() { a.seen.acting[action.ID] = true })
		record, err = a.carryOut(ctx, run, action)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		record = protocol.ActionRecord{Error: err.Error()}
	}
	record.ID, record.Planned, record.Skipped = action.ID, action.At, err == nil && !takes
	a.disturbed(run, action, record)
	a.record(func(j *journal) { j.Actions = append(slices.Clip(j.Actions), record) })
}

func (a *Agent) carryOut(ctx context.Context, run protocol.Run, action timeline.Action) (protocol.ActionRecord, error) {
	if err := a.awaitEarlier(ctx, run, action); err != nil {
		return protocol.ActionRecord{}, err
	}
	// Converted once: from here on only the clock counts that does not jump.
	instant := a.clock.monotonic(run.ZeroUnixNanos + int64(action.At))
	switch action.Kind {
	case timeline.Kill:
		return a.kill(ctx, action, instant)
	case timeline.Revive:
		return a.revive(ctx, run, action, instant)
	case timeline.Pause, timeline.Resume:
		return a.pauseProcesses(ctx, action, instant)
	case timeline.Cut:
		return a.cutLinks(ctx, action, instant)
	case timeline.Heal:
		return a.heal(ctx, action, instant)
	case timeline.Degrade, timeline.Restore:
		return a.changeLinks(ctx, action, instant)
	default:
		return protocol.ActionRecord{}, fmt.Errorf("this agent does not know the action %q; agent and manager must be of the same release", action.Kind)
	}
}

// awaitEarlier keeps the order of actions with the same object, should one take until the next is
// due: a pod is revived when its kill is known, killed again when its revival is, and a link is
// restored when its change is. A pause and its end are put in order by the launcher; cuts and
// changes of links that are not each other's end add up in any order.
func (a *Agent) awaitEarlier(ctx context.Context, run protocol.Run, action timeline.Action) error {
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
	return a.await(ctx, func() bool {
		return !slices.ContainsFunc(earlier, func(id string) bool {
			_, recorded := a.recordedLocked(id)
			return !recorded
		})
	})
}

// due reports whether the instant of an action has passed.
func (a *Agent) due(run protocol.Run, action timeline.Action) bool {
	return a.clock.since(run.ZeroUnixNanos, launcher.Monotonic()) >= action.At
}
