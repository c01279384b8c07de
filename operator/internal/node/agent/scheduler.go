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

// recordAt gives instants of CLOCK_MONOTONIC as times of the run: against the instant that was
// planned for, on the clock that does not jump. A new estimate of the coordinator's clock between
// plan and record is no lateness; how far the estimate may be off is reported by itself
// (Report.ClockError).
func recordAt(action timeline.Action, instant, started, confirmed int64) protocol.ActionRecord {
	return protocol.ActionRecord{Started: action.At + time.Duration(started-instant), Confirmed: action.At + time.Duration(confirmed-instant)}
}
