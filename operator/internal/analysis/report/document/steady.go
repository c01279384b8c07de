package document

import (
	"fmt"
	"math"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// unsteady says whether throughput or latency was not steady: "throughput +12%, latency -9%".
// Empty: both were steady.
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
	if t.Millis == 0 && t.Change == nil && t.Drift == 0 || t.Change != nil && len(t.Change.AtMillis) == 0 {
		return fmt.Sprintf("%+.0f%%", 100*t.Moves()) // of the manager's lines
	}
	seconds := func(millis float64) string { return model.Short(math.Round(millis/100) / 10) }
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
	if t.Cause() == results.CauseDrift {
		return fmt.Sprintf("%+.0f%% by a drift from its start to its end", 100*t.Moves())
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

// windowWarnings name the trials whose window was not steady. All numbers include these trials: the
// reader must judge.
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
		bad, model.Count(checked, "trial"), strings.Join(named, "; "))}
}

// TrialsLegend says how to read the table of every trial.
const TrialsLegend = "In the order in which they ran. Steady: whether the measurement window has one level from its start to its end, and if not, by how much and when another moves the window's mean; - where that cannot be told, " +
	"as in windows with a fault. Throttled, steal and contended: of the container, the node and the machine that had most of it, in the window. Contended: of the moments at which the trial wanted " +
	"a processor, others had it for more than a millisecond."
