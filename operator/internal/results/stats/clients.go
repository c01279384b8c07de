package stats

import (
	"math"

	"assay.dev/assay/operator/internal/results"
)

// ClientTime is Little's law for one trial of a closed loop. Each of N correct clients is in a
// transaction or thinks, for the whole window W. Let X be the committed transactions a second of
// mean latency R, Z the time to think after each transaction, and T the most that each timeout
// took. Then this share of the clients' time is in the numbers:
//
//	known = (committed R + (committed + given up + errors + timeouts) Z) / (N W)
//	share = known + min(timeouts T / (N W), max(0, 1 - known))
//
// A driver may give up sooner than the timeout, or have begun before the window. So timeouts count
// for at most the rest of the clients' time.
//
// The share is 1, apart from transactions that cross the edges of the window. A lower share means
// that clients were in transactions that are left out (they never ended, or ended as errors or
// aborts). Or clients did something that latencies leave out (a pause between attempts), or had
// ended. A higher share means that latencies are of more than these clients' transactions, or begin
// before the window. Nil: the loop is not closed, or nothing was committed in the window, or the
// numbers are not of the window.
func ClientTime(t results.Trial) *float64 {
	s, window := t.Summary, float64(t.MeasureNanos)/1e6
	if t.ClosedLoop == nil || s.RunSummary || s.Committed == 0 || t.CorrectClients < 1 || window <= 0 {
		return nil
	}
	ended := float64(s.Committed + s.GivenUp + s.Errors + s.Timeouts)
	all := float64(t.CorrectClients) * window
	known := (float64(s.Committed)*s.MeanMillis + ended*t.ClosedLoop.ThinkMillis) / all
	share := known + min(float64(s.Timeouts)*t.ClosedLoop.TimeoutMillis/all, max(0, 1-known))
	return &share
}

// clientTimeTolerance is how far the clients' time in the numbers may be from all of it; our load
// generator has 0.3% at most.
const clientTimeTolerance = 0.03

// ClientTimeFits reports whether a trial's numbers cover all of the clients' time. It allows 3%,
// and a share for the transactions at the two edges of the window. That is twice the 99th
// percentile of latency, divided by the window and by the root of the number of clients. True where
// it is not known.
func ClientTimeFits(line results.TrialLine) bool {
	if line.ClientTimeShare == nil {
		return true
	}
	edges := 0.0
	if line.Committed > 0 {
		edges = 2 * line.P99Millis / 1000 * line.Throughput / float64(line.Committed) / math.Sqrt(float64(max(1, line.CorrectClients)))
	}
	return math.Abs(*line.ClientTimeShare-1) <= clientTimeTolerance+edges
}

// FullClients is a share of their CPU limit, or of their node. From it on, client pods may be what
// limits throughput: they read replies late, and the system looks slow.
const FullClients = 0.9

// ClientBusy is how busy the client pods of a trial were: the greatest used share of a container's
// CPU limit or of a node's processors. Nil: not measured.
func ClientBusy(t results.Trial) *float64 {
	var worst *float64
	see := func(share float64) {
		if worst == nil || share > *worst {
			worst = &share
		}
	}
	for _, p := range t.Pods {
		if p.ClientRun == nil || p.Resources == nil || p.Resources.Seconds == 0 {
			continue
		}
		see(p.Resources.Node.BusyShare)
		for _, c := range p.Resources.Containers {
			if c.LimitCores > 0 {
				see(c.CPUMeanCores / c.LimitCores)
			}
		}
	}
	return worst
}

// FailedShare is the share of a trial's requests that had no result: errors, timeouts, and requests
// that were never sent. False: the clients report neither errors nor timeouts, or nothing ended.
func FailedShare(line results.TrialLine) (float64, bool) {
	all := Ended(line) + line.Unsent
	if all == 0 || !Reports(line, results.CounterErrors) && !Reports(line, results.CounterTimeouts) {
		return 0, false
	}
	return float64(line.Errors+line.Timeouts+line.Unsent) / float64(all), true
}
