package agent

import (
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

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

// recordAt converts instants of CLOCK_MONOTONIC to times of the run. It compares them with the
// planned instant on the same clock, so a new estimate of the coordinator's clock does not make the
// action late. The agent reports the error of that estimate separately (Report.ClockError).
func recordAt(action timeline.Action, instant, started, confirmed int64) protocol.ActionRecord {
	return protocol.ActionRecord{Started: action.At + time.Duration(started-instant), Confirmed: action.At + time.Duration(confirmed-instant)}
}
