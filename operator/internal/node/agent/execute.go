package agent

import (
	"context"
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// execute runs the action's command beside the pod's first process. The action has begun when the
// command's process exists. It is confirmed when the command has exited with 0.
func (f *faultScheduler) execute(ctx context.Context, _ protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	names := f.containerNames()
	if len(names) == 0 || len(action.Command) == 0 {
		return record, errors.New("the pod has no container to run the command in, or the manager did not say which command")
	}
	if err := launcher.SleepUntil(ctx, instant); err != nil {
		return record, err
	}
	result, err := f.launchers.askRun(ctx, names[0], protocol.Command{ID: "fault/" + action.ID, Command: action.Command, Timeout: action.Timeout})
	switch {
	case err != nil:
		return record, fmt.Errorf("run the command: %w", err)
	case result.Error != "":
		return record, fmt.Errorf("the command did not end: %s", withOutput(result.Error, result.Output))
	case result.ExitCode != 0:
		return record, fmt.Errorf("the command exited with %s", withOutput(fmt.Sprint(result.ExitCode), result.Output))
	}
	return recordAt(action, instant, result.StartedAt, result.EndedAt), nil
}

// withOutput adds what a command printed.
func withOutput(what, output string) string {
	if output == "" {
		return what
	}
	return what + ", and printed: " + output
}
