package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// addWindow checks whether a valid trial's window was steady.
func (d *Details) addWindow(t results.Trial) {
	if d.windows == nil {
		d.windows = map[string]results.WindowCheck{}
	}
	d.windows[t.Name] = checkWindow(t)
}

// intoLines gives each trial's line what its own results say of it. Of recoveries a line has what
// fits into the trial's status: those of the first times, without kind, instant, throughput before
// and cautions.
func (d *Details) intoLines(e *results.Experiment) {
	e.Trials = slices.Clone(e.Trials)
	for i, l := range e.Trials {
		e.Trials[i].Window = nil
		if w, read := d.windows[l.Name]; read {
			e.Trials[i].Window = &w
		}
		if p95, read := d.p95[l.Name]; read {
			e.Trials[i].P95Millis = p95
		}
		e.Trials[i].Remarks = d.lines[l.Name].Remarks
		if own := d.lines[l.Name]; len(own.Recovery) > 0 {
			e.Trials[i].Recovery = own.Recovery
		}
	}
}

// checkWindow looks for a transient in the bins of the window. With a fault in it, which is there
// to disturb it, the question has no answer.
func checkWindow(t results.Trial) results.WindowCheck {
	switch {
	case slices.ContainsFunc(t.Faults, func(f results.FaultRecord) bool { return inWindow(f, t.MeasureNanos) }):
		return results.WindowCheck{Unchecked: "a fault began or ended in the window"}
	case t.Timeline == nil:
		return results.WindowCheck{Unchecked: "the trial has no timeline"}
	}
	throughput, latency := windowBins(*t.Timeline, t.MeasureNanos)
	check := results.WindowCheck{}
	found, err := stats.CheckStationarity(throughput, stats.DefaultTransientTolerance)
	if err != nil {
		return results.WindowCheck{Unchecked: strings.TrimPrefix(err.Error(), "stationarity: ")}
	}
	check.Throughput = transientOf(found, t.Timeline.IntervalMillis)
	addChange(check.Throughput, throughput, t.Timeline.IntervalMillis)
	if found, err := stats.CheckStationarity(latency, stats.DefaultTransientTolerance); err == nil {
		check.Latency = transientOf(found, t.Timeline.IntervalMillis)
		addChange(check.Latency, latency, t.Timeline.IntervalMillis)
	}
	return check
}

// inWindow reports whether what a pod did for a fault took place in the window. What began before
// it and lasts is how the system is in this trial, and steady or not.
func inWindow(f results.FaultRecord, measureNanos int64) bool {
	return !f.Skipped && f.Error == "" && max(f.StartedMillis, f.ConfirmedMillis) >= 0 && f.StartedMillis < float64(measureNanos)/1e6
}

// windowBins are throughput, in transactions per bin, and mean latency of the bins that lie in the
// window with all their length. Latency is nil where some bin has none.
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

func transientOf(s stats.Stationarity, interval int64) *results.Transient {
	return &results.Transient{Steady: !slices.Contains(s.Cautions, stats.NotStationary), Millis: float64(int64(s.Transient) * interval), Bias: s.Bias}
}

// addChange looks for other levels in the window, unless its start explains why it is not steady.
func addChange(to *results.Transient, observations []float64, interval int64) {
	found, err := stats.FindChanges(observations, stats.DefaultTransientTolerance)
	if err != nil || len(found.Cautions) == 0 || !to.Steady && found.Ends == 0 {
		return
	}
	to.Steady = false
	to.Change = &results.LevelChange{Bias: found.Bias, EndsMillis: float64(int64(found.Ends) * interval)}
	for _, at := range found.At {
		to.Change.AtMillis = append(to.Change.AtMillis, float64(int64(at)*interval))
	}
}

// unsteady says which of the two was not steady: "throughput +12%, latency -9%". Empty: both were.
func unsteady(w results.WindowCheck) string {
	var parts []string
	for _, part := range []struct {
		name string
		of   *results.Transient
	}{{"throughput", w.Throughput}, {"latency", w.Latency}} {
		if part.of != nil && !part.of.Steady {
			parts = append(parts, part.name+" "+howUnsteady(*part.of))
		}
	}
	return strings.Join(parts, ", ")
}

// mostNamedChanges is how many changes of level are named.
const mostNamedChanges = 3

// howUnsteady says what moves the mean, and when: "+12% by its first 4 s", "-7% by changes at 15
// s".
func howUnsteady(t results.Transient) string {
	seconds := func(millis float64) string { return short(math.Round(millis/100) / 10) }
	if c := t.Change; c != nil {
		text := fmt.Sprintf("%+.0f%%", 100*c.Bias)
		if c.EndsMillis > 0 {
			return text + ", less than half in its last " + seconds(c.EndsMillis) + " s"
		}
		var at []string
		for _, millis := range c.AtMillis[:min(len(c.AtMillis), mostNamedChanges)] {
			at = append(at, seconds(millis))
		}
		return text + " by changes at " + strings.Join(at, ", ") + " s"
	}
	return fmt.Sprintf("%+.0f%% by its first %s s", 100*t.Bias, seconds(t.Millis))
}

// steadyCell is the check in the table of trials.
func steadyCell(w *results.WindowCheck) string {
	switch steady, known := w.Steady(); {
	case !known:
		return "-"
	case steady:
		return "yes"
	}
	return "no: " + unsteady(*w)
}

// mostUnsteady is how many trials a warning names.
const mostUnsteady = 6

// windowWarnings name the trials whose window was not steady. They are in all numbers: it is for
// the reader to judge.
func windowWarnings(e results.Experiment) []string {
	var named []string
	checked, bad := 0, 0
	for _, l := range e.Trials {
		steady, known := l.Window.Steady()
		if known {
			checked++
		}
		if steady || !known {
			continue
		}
		if bad++; bad <= mostUnsteady {
			named = append(named, fmt.Sprintf("%s (%s)", l.Name, unsteady(*l.Window)))
		}
	}
	if bad == 0 {
		return nil
	}
	if bad > mostUnsteady {
		named = append(named, fmt.Sprintf("%d more", bad-mostUnsteady))
	}
	return []string{fmt.Sprintf("Not steady in the measurement window: %d of %s that could be checked: %s. A longer warm-up may be needed, the system or its machines drifted, or clients ended early.",
		bad, count(checked, "trial"), strings.Join(named, "; "))}
}

// trialsLegend says how to read the table of every trial.
const trialsLegend = "In the order in which they ran. Steady: whether the measurement window has one level from its start to its end, and if not, by how much and when another moves the window's mean; - where that cannot be told, " +
	"as in windows with a fault. Throttled, steal and contended: of the container, the node and the machine that had most of it, in the window. Contended: of the moments at which the trial wanted " +
	"a processor, others had it for more than a millisecond."
