package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// pauseProcesses stops the processes of all containers, or continues them. The launchers' own
// timers do it: each launcher gets the plan ahead.
func (f *faultScheduler) pauseProcesses(ctx context.Context, _ protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	request := launcher.Request{Pause: &launcher.Pause{ID: action.ID, AtMonotonicNanos: instant}}
	if action.Kind == timeline.Resume {
		request = launcher.Request{Resume: &launcher.Resume{ID: action.ID, Pause: action.Ends, AtMonotonicNanos: instant}}
	}
	names := f.containerNames()
	results := make([]launcher.PauseResult, len(names))
	failures := make([]error, len(names))
	var containers sync.WaitGroup
	for i, name := range names {
		containers.Go(func() { results[i], failures[i] = f.askPause(ctx, name, request) })
	}
	containers.Wait()
	if err := errors.Join(failures...); err != nil {
		return record, err
	}
	if len(names) == 0 {
		return record, errors.New("the pod has no container to pause")
	}
	first, last := results[0].SignalledAt, results[0].ConfirmedAt
	for _, result := range results {
		first, last = min(first, result.SignalledAt), max(last, result.ConfirmedAt)
	}
	return recordAt(action, instant, first, last), nil
}

func (f *faultScheduler) askPause(ctx context.Context, name string, request launcher.Request) (launcher.PauseResult, error) {
	response, err := f.launchers.ask(ctx, name, request)
	result := response.Pause
	if request.Resume != nil {
		result = response.Resume
	}
	switch {
	case err != nil:
		return launcher.PauseResult{}, fmt.Errorf("container %s: %w", name, err)
	case result == nil:
		return launcher.PauseResult{}, fmt.Errorf("container %s: its launcher does not report a result", name)
	case result.Error != "":
		return launcher.PauseResult{}, fmt.Errorf("container %s: %s", name, result.Error)
	default:
		return *result, nil
	}
}
