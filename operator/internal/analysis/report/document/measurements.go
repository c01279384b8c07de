package document

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// MeasurementLegend says where the numbers of these columns come from.
const MeasurementLegend = "Columns that Prometheus fills, over each trial's measurement window, and the clients' own counters, over their whole run. A trial whose number could not be had is not in its column; n is then given in the cell."

// measurementTable says what the measured columns are.
func measurementTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"measurement", false}, {"unit", false}, {"over the window", false}, {"query or counter", false}}}
	for _, m := range e.Measurements {
		if m.Counter != "" {
			counter := m.Counter
			if m.Per != "" {
				counter += " / " + m.Per
			}
			t.Rows = append(t.Rows, []string{m.Name, m.Unit, "-", counter})
			continue
		}
		t.Rows = append(t.Rows, []string{m.Name, m.Unit, m.Over, strings.Join(strings.Fields(m.Query), " ")})
	}
	return t
}

// notMeasuredTable lists the trials that lack a number, with the reason.
func notMeasuredTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"trial", false}, {"point", false}, {"NotMeasured", false}, {"reason", false}}}
	for _, l := range e.Trials {
		for _, m := range l.Measurements {
			if m.Value == nil {
				t.Rows = append(t.Rows, []string{l.Name, model.At(e.Axes, l.Coordinates), m.Name, m.Reason})
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
