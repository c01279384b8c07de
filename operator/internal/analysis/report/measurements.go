package report

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// measurementLegend says where the numbers of these columns come from.
const measurementLegend = "Columns that Prometheus fills, over each trial's measurement window, and the clients' own counters, over their whole run. A trial whose number could not be had is not in its column; n is then given in the cell."

// measurementTable says what the measured columns are.
func measurementTable(e results.Experiment) table {
	t := table{columns: []column{{"measurement", false}, {"unit", false}, {"over the window", false}, {"query or counter", false}}}
	for _, m := range e.Measurements {
		if m.Counter != "" {
			counter := m.Counter
			if m.Per != "" {
				counter += " / " + m.Per
			}
			t.rows = append(t.rows, []string{m.Name, m.Unit, "-", counter})
			continue
		}
		t.rows = append(t.rows, []string{m.Name, m.Unit, m.Over, strings.Join(strings.Fields(m.Query), " ")})
	}
	return t
}

// notMeasuredTable lists the trials that lack a number, with the reason.
func notMeasuredTable(e results.Experiment) table {
	t := table{columns: []column{{"trial", false}, {"point", false}, {"NotMeasured", false}, {"reason", false}}}
	for _, l := range e.Trials {
		for _, m := range l.Measurements {
			if m.Value == nil {
				t.rows = append(t.rows, []string{l.Name, at(e.Axes, l.Coordinates), m.Name, m.Reason})
			}
		}
	}
	return t
}

func measurementTitle(m results.MeasurementColumn) string {
	return strings.TrimSpace(m.Name + " " + m.Unit)
}

// measurementCell is the mean of a measurement at a point. Where some valid trials lack it, the
// number of those that do not is said.
func measurementCell(p results.PointResult, name string) string {
	a := p.Metrics[name]
	switch {
	case p.Valid == 0:
		return "-"
	case a.N == 0:
		return stats.NotMeasured
	case a.N < p.Valid:
		return fmt.Sprintf("%s (n=%d)", meanCell(a, 1), a.N)
	}
	return meanCell(a, 1)
}
