package document

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// MeasurementLegend says where the numbers of these columns come from.
const MeasurementLegend = "Columns that Prometheus fills, and what pods use, over each trial's measurement window; the clients' own counters, over their whole run. A trial whose number could not be had is not in its column; n is then given in the cell."

// measurementTable says what the measured columns are.
func measurementTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"measurement", false}, {"unit", false}, {"over the window", false}, {"query, counter or use", false}}}
	for _, m := range e.Measurements {
		over, of := m.Over, strings.Join(strings.Fields(m.Query), " ")
		switch {
		case m.Use != nil:
			over, of = m.Use.Over, m.Use.String()
		case m.Counter != "":
			over, of = "-", m.Counter
			if m.Per != "" {
				of += " / " + m.Per
			}
		}
		t.Rows = append(t.Rows, []string{m.Name, m.Unit, over, of})
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

// measurementCell is the mean of a measurement at a point. If some valid trials lack it, the cell
// also has the number of those that have it.
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
