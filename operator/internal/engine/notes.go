package engine

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"

	"assay.dev/assay/operator/internal/analysis/validity"
)

// MostFaultNotes is how many actions of faults of one trial are told about: a partition that flaps
// comes and goes thousands of times. All are in its results.
const MostFaultNotes = 200

// noteFaults reports every action of a fault as soon as its outcome is known: the pod, the action,
// the time, and whether it was seen to hold. The argument over says that nothing more will be
// known. Then an action whose time has come and of which nothing is known is reported as failed. It
// keeps its reports in memory only: a manager that takes over reports an action again rather than
// never.
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
		if done != nil && done.Skipped { // it was for the pod with a role, and this was another one
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
