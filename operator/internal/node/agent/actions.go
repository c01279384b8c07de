package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// armLead is how long before an action its parts are put in place.
const armLead = 2 * time.Second

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
	f.prepareFilters(slices.Concat(run.Actions, run.Later))
	var acts sync.WaitGroup
	defer acts.Wait()
	begun := map[string]bool{}
	for ctx.Err() == nil {
		var next timeline.Action
		if f.await(ctx, func() (found bool) {
			next, found = f.nextAction(begun)
			return found
		}) != nil {
			return
		}
		if !f.awaitTurn(ctx, next, begun) {
			continue
		}
		begun[next.ID] = true
		run := *f.directive().Run // with the actions whose marks have come since
		acts.Go(func() { f.act(ctx, run, next) })
	}
}

// awaitTurn waits until an action is to be prepared. It is false when another is to be first: the
// mark that it counts from has come meanwhile.
func (f *faultScheduler) awaitTurn(ctx context.Context, action timeline.Action, begun map[string]bool) bool {
	zero := f.directive().Run.ZeroUnixNanos
	waiting, stop := context.WithCancel(ctx)
	var other sync.WaitGroup
	defer other.Wait()
	defer stop()
	other.Go(func() {
		if f.await(waiting, func() bool {
			next, found := f.nextAction(begun)
			return !found || next.ID != action.ID
		}) == nil {
			stop()
		}
	})
	return f.clock.until(waiting, zero+int64(action.At-armLead)) == nil
}

// act carries out one action and records what came of it.
func (f *faultScheduler) act(ctx context.Context, run protocol.Run, action timeline.Action) {
	var record protocol.ActionRecord
	f.watcher.foresee(run, action)
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
	f.mu.Lock()
	heard := f.volatile.heard[action.ID]
	f.mu.Unlock()
	if heard != 0 {
		record.Known = f.clock.clock.since(run.ZeroUnixNanos, heard)
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
	how, known := performers[action.Kind]
	if !known {
		return protocol.ActionRecord{}, fmt.Errorf("this agent does not know the action %q; agent and manager must be of the same release", action.Kind)
	}
	return how.perform(f, ctx, run, action, instant)
}

// performer is how actions of a kind are carried out.
type performer struct {
	// perform does it at the instant, which is of the monotonic clock.
	perform func(f *faultScheduler, ctx context.Context, run protocol.Run, action timeline.Action, instant int64) (protocol.ActionRecord, error)
	// after names earlier actions whose records it waits for, should one take until this one is
	// due; nil: it waits for none.
	after func(run protocol.Run, action timeline.Action) []string
}

// performers of the actions that a pod's agent carries out: a line for each, what it does in a file
// of its own. A pause and its end are put in order by the launcher; drops and changes of links that
// are not each other's end add up in any order.
var performers = map[timeline.Kind]performer{
	timeline.Kill:    {(*faultScheduler).kill, afterRevivals},
	timeline.Revive:  {(*faultScheduler).revive, afterRevivals},
	timeline.Pause:   {(*faultScheduler).pauseProcesses, nil},
	timeline.Resume:  {(*faultScheduler).pauseProcesses, nil},
	timeline.Cut:     {(*faultScheduler).dropLinks, nil},
	timeline.Heal:    {(*faultScheduler).heal, afterBeginning},
	timeline.Degrade: {(*faultScheduler).changeLinks, nil},
	timeline.Restore: {(*faultScheduler).changeLinks, afterBeginning},
	timeline.Execute: {(*faultScheduler).execute, nil},
	timeline.Sample:  {(*faultScheduler).sample, nil},
}

// afterBeginning waits for what the action ends: a link is restored when its change is known.
func afterBeginning(_ protocol.Run, action timeline.Action) []string { return []string{action.Ends} }

// afterRevivals waits for every earlier revival, too: a pod is revived when its kill is known, and
// killed again when its revival is.
func afterRevivals(run protocol.Run, action timeline.Action) []string {
	var earlier []string
	for _, other := range run.Actions {
		if other.At < action.At && (other.Kind == timeline.Revive || other.ID == action.Ends) {
			earlier = append(earlier, other.ID)
		}
	}
	return earlier
}

// awaitEarlier keeps the order of actions with the same object.
func (f *faultScheduler) awaitEarlier(ctx context.Context, run protocol.Run, action timeline.Action) error {
	after := performers[action.Kind].after
	if after == nil {
		return nil
	}
	earlier := after(run, action)
	return f.await(ctx, func() bool {
		return !slices.ContainsFunc(earlier, func(id string) bool {
			_, recorded := f.recordedLocked(id)
			return !recorded
		})
	})
}
