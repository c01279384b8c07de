package stats

import (
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// CheckWindow looks for a transient, a drift and changes of level in a trial's measurement window.
// It looks in its throughput, and in mean latency where every bin of the timeline has a committed
// transaction. It does not check a window with a fault, which is meant to disturb it, or one in
// which the load is to change.
func CheckWindow(t results.Trial) results.WindowCheck {
	switch {
	case slices.ContainsFunc(t.Faults, func(f results.FaultRecord) bool { return inWindow(f, t.MeasureNanos) }):
		return results.WindowCheck{Unchecked: "a fault began or ended in the window"}
	case t.ChangingLoad:
		return results.WindowCheck{Unchecked: "the load changes in the window"}
	case t.Timeline == nil:
		return results.WindowCheck{Unchecked: "the trial has no timeline"}
	}
	throughput, latency := windowBins(*t.Timeline, t.MeasureNanos)
	check := results.WindowCheck{}
	var err error
	if check.Throughput, err = levelOf(throughput, t.Timeline.IntervalMillis); err != nil {
		return results.WindowCheck{Unchecked: strings.TrimPrefix(err.Error(), "stationarity: ")}
	}
	if level, err := levelOf(latency, t.Timeline.IntervalMillis); err == nil {
		check.Latency = level
	}
	return check
}

// inWindow reports whether a pod's action for a fault took place in the window. A change that began
// before the window and lasts is the system's normal state in this trial, so that the window can be
// checked.
func inWindow(f results.FaultRecord, measureNanos int64) bool {
	return !f.Skipped && f.Error == "" && max(f.StartedMillis, f.ConfirmedMillis) >= 0 && f.StartedMillis < float64(measureNanos)/1e6
}

// windowBins are throughput, in transactions per bin, and mean latency of the bins that lie
// completely in the window. Latency is nil where some bin has none.
func windowBins(t results.Timeline, measureNanos int64) (throughput, latency []float64) {
	whole := true
	for i, committed := range t.Committed {
		start := t.FirstMillis + int64(i)*t.IntervalMillis
		if start < 0 || (start+t.IntervalMillis)*1e6 > measureNanos {
			continue
		}
		throughput = append(throughput, float64(committed))
		if whole = whole && committed > 0; whole {
			latency = append(latency, float64(t.LatencySumMicros[i])/float64(committed))
		}
	}
	if !whole {
		return throughput, nil
	}
	return throughput, latency
}

// levelOf says whether observations at equal intervals have one level.
func levelOf(observations []float64, interval int64) (*results.Transient, error) {
	found, err := CheckStationarity(observations, DefaultTransientTolerance)
	if err != nil {
		return nil, err
	}
	level := &results.Transient{Steady: !slices.Contains(found.Cautions, NotStationary), Millis: float64(int64(found.Transient) * interval), Bias: found.Bias, Drift: found.Drift}
	addChange(level, observations, interval)
	return level, nil
}

// addChange looks for other levels in the window, unless its start explains why it is not steady.
// If levels differ, a straight line through them adds nothing.
func addChange(to *results.Transient, observations []float64, interval int64) {
	found, err := FindChanges(observations, DefaultTransientTolerance)
	if err != nil || len(found.Cautions) == 0 || !to.Steady && to.Drift == 0 && found.Ends == 0 {
		return
	}
	to.Steady, to.Drift = false, 0
	to.Change = &results.LevelChange{Bias: found.Bias, EndsMillis: float64(int64(found.Ends) * interval)}
	for _, at := range found.At {
		to.Change.AtMillis = append(to.Change.AtMillis, float64(int64(at)*interval))
	}
}
