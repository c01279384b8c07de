package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results/stats"
)

// RunName is how a run is called in tables: its day and what was measured.
func (h History) RunName(i int) string {
	r := h.Runs[i]
	name := r.Started.Format("2006-01-02 15:04")
	if r.Started.IsZero() {
		name = r.From
	}
	if r.Version != "" {
		name += ", " + r.Version
	}
	return name
}

// Where names the experiment and the point of a metric.
func (m HistoryMetric) Where() string {
	return strings.Join(nonEmpty(HistoryName(m.Experiment, m.Profile), m.Point), ", ")
}

func nonEmpty(all ...string) (out []string) {
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// MetricChange is a change with its metric.
type MetricChange struct {
	Metric HistoryMetric
	Change HistoryChange
}

// Changes of all metrics: regressions first, the largest of them first, then the others in the
// order of the metrics.
func (h History) Changes() (all []MetricChange) {
	for _, m := range h.Metrics {
		for _, c := range m.Changes {
			all = append(all, MetricChange{m, c})
		}
	}
	badness := func(c HistoryChange) float64 {
		if c.Kind == Regression {
			return c.factor()
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b MetricChange) int { return cmp.Compare(badness(b.Change), badness(a.Change)) })
	return all
}

// Named is the metric with its unit.
func (m HistoryMetric) Named() string {
	if m.Unit == "" {
		return m.Metric
	}
	return m.Metric + " " + m.Unit
}

// RatioInWords is the ratio of a change with its interval; -: it has none.
func (c HistoryChange) RatioInWords() string {
	if c.Ratio == nil {
		return "-"
	}
	text := stats.Fixed(c.Ratio.Value, 3)
	if c.Ratio.Low != nil && c.Ratio.High != nil {
		text += fmt.Sprintf(" (%s to %s)", stats.Fixed(*c.Ratio.Low, 3), stats.Fixed(*c.Ratio.High, 3))
	}
	return text
}

// HistoryPText writes a P with no more precision than the draws give.
func HistoryPText(p float64) string {
	if p < 1.5/(historyDraws+1) {
		return "< 0.001"
	}
	return stats.Fixed(p, 3)
}

// Lead says what the history shows, in a sentence or two.
func (h History) Lead() string {
	changes := 0
	for _, m := range h.Metrics {
		changes += len(m.Changes)
	}
	text := fmt.Sprintf("%d runs, %d metrics: %s, %s in all.", len(h.Runs), len(h.Metrics), Counted(len(h.Regressions()), "metric is", "metrics are")+" worse at the end", Counted(changes, "change", "changes"))
	if h.Undecided() {
		text = fmt.Sprintf("%d runs: too few to tell a change from noise, which takes %d of one experiment and profile.", len(h.Runs), stats.LeastRuns)
	}
	if h.Baseline != "" {
		text += " Numbers are multiples of those at " + h.Baseline + " in the same run."
	}
	return text
}

// Counted writes a number with its noun: no run, 1 run, 2 runs.
func Counted(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Title of a metric's plot.
func (m HistoryMetric) Title() string {
	text := m.Metric + ", " + m.Where()
	if n := len(m.Changes); n > 0 {
		c := m.Changes[n-1]
		text += ": " + strings.ToLower(c.Kind) + ", " + c.RatioInWords()
	}
	return text
}
