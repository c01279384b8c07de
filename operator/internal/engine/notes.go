package engine

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"

	"assay.dev/assay/operator/internal/analysis/validity"
)

// MostFaultNotes is how many actions of faults of one trial are reported. A partition that flaps
// comes and goes thousands of times. The results have all actions.
const MostFaultNotes = 200

// noteFaults reports every action of a fault as soon as its outcome is known: the pod, the action,
// the time, and whether it was confirmed. With over, no more reports will come: an action that is
// due and has no report counts as failed. noteFaults remembers only in memory which actions it
// reported. So a manager that takes over may report an action twice, but misses none.
func (s *scope) noteFaults(ctx context.Context, to Experiment, over bool) {
	if s.rendered == nil || s.trial.Status.ZeroUnixNanos == 0 {
		return
	}
	noted := s.cache.noted
	var notes []FaultNote
	var ids []string
	for _, a := range s.actions() {
		if noted[a.ID] || len(noted)+len(ids) > MostFaultNotes {
			continue
		}
		done := s.recordOf(a)
		missed := over && s.now.UnixNano() > s.trial.Status.ZeroUnixNanos+int64(a.At)
		if done == nil && !missed {
			continue
		}
		if done != nil && done.Skipped { // another pod had the role of the fault
			noted[a.ID] = true
			continue
		}
		if ids = append(ids, a.ID); len(noted)+len(ids) > MostFaultNotes {
			notes = append(notes, FaultNote{Kind: "Audit", Message: fmt.Sprintf("Trial %s has had more than %d actions of faults. The others are in its results only.",
				s.trial.Name, MostFaultNotes)})
			break
		}
		ok, note := validity.Note(s.trial.Name, a, done)
		notes = append(notes, FaultNote{Kind: string(a.Kind), Failed: !ok, Message: note})
	}
	if len(notes) == 0 {
		return
	}
	if err := to.Faults(ctx, s.trial, notes); err != nil {
		logr.FromContextOrDiscard(ctx).Info("The Experiment that faults are told of cannot be read", "err", err.Error())
		return
	}
	for _, id := range ids {
		noted[id] = true
	}
}
