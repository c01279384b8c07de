package agent

import (
	"context"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// changeLinks makes links worse, or ends such a change.
func (f *faultScheduler) changeLinks(ctx context.Context, _ protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	if err := launcher.SleepUntil(ctx, instant); err != nil {
		return record, err
	}
	began := launcher.Monotonic()
	taken, err := f.links.change(func(worse map[string][]timeline.LinkChange) {
		if action.Kind == timeline.Degrade {
			worse[action.ID] = action.Links
		} else {
			delete(worse, action.Ends)
		}
	})
	return recordAt(action, instant, began, taken), err
}

// worseNow returns what faults add to the links now, for an agent that replaces another: the
// recorded changes, and the due ones.
func worseNow(actions []timeline.Action, recorded func(id string) (protocol.ActionRecord, bool), due func(timeline.Action) bool) map[string][]timeline.LinkChange {
	worse := map[string][]timeline.LinkChange{}
	for _, action := range actions {
		if action.Kind != timeline.Degrade {
			continue
		}
		if record, ok := recorded(action.ID); ok && (record.Error != "" || record.Skipped) || !ok && !due(action) {
			continue
		}
		worse[action.ID] = action.Links
	}
	for _, action := range actions {
		if _, ok := recorded(action.ID); action.Kind == timeline.Restore && (ok || due(action)) {
			delete(worse, action.Ends)
		}
	}
	return worse
}
