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

// armLead is how long before an action the agent begins to prepare it.
const armLead = 2 * time.Second

// doActions carries out the run's actions. Each has its own goroutine from its preparation on, so
// that a slow action delays no other. An action that is late, because the agent was not there, is
// carried out at once: the record shows it, and the coordinator judges.
//
// The agent checks whether they are possible here as soon as the run is known, not when they are
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

// awaitTurn waits until an action is to be prepared. It returns false when another action must come
// first, because the mark of that one has been found meanwhile.
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

// act carries out one action and records its outcome.
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
	// perform carries out the action at the instant, which is on the monotonic clock.
	perform func(f *faultScheduler, ctx context.Context, run protocol.Run, action timeline.Action, instant int64) (protocol.ActionRecord, error)
	// after names earlier actions. This one waits for their records, even if they take until it is
	// due; nil: it waits for none.
	after func(run protocol.Run, action timeline.Action) []string
}

// performers of the actions that a pod's agent carries out, one line each. The code of each kind is
// in a file of its own. The launcher keeps a pause and its end in order. Drops and changes of links
// add up in any order, unless one ends another.
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

// afterBeginning waits for the action that this one ends: the agent restores a link after the
// record of its change.
func afterBeginning(_ protocol.Run, action timeline.Action) []string { return []string{action.Ends} }

// afterRevivals also waits for every earlier revival: the agent revives a pod after the record of
// its kill, and kills it again after the record of its revival.
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
