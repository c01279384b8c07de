package document

import (
	"fmt"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// capacityTable has a row for each search: its place on the other axes, its outcome, and its number
// of trials.
func capacityTable(e results.Experiment) Table {
	if len(e.Capacities) == 0 {
		return Table{}
	}
	var t Table
	searched := e.Capacities[0].Axis
	for _, a := range e.Axes {
		if a.Name != searched {
			t.Columns = append(t.Columns, Column{Name: a.Name})
		}
	}
	t.Columns = append(t.Columns, Column{"highest " + searched, true}, Column{"objective", false}, Column{"searched", true}, Column{"trials", true}, Column{"outcome", false})
	for _, c := range e.Capacities {
		var row []string
		for _, a := range e.Axes {
			if a.Name != searched {
				row = append(row, c.At[a.Name])
			}
		}
		t.Rows = append(t.Rows, append(row, model.CapacityText(c), c.Objective, fmt.Sprintf("%d to %d", c.From, c.To), strconv.Itoa(c.Trials), outcomeText(c)))
	}
	return t
}

func outcomeText(c results.Capacity) string {
	if c.Message != "" {
		return c.Outcome + ": " + c.Message
	}
	return c.Outcome
}

// CapacityLegend says how to read the table of capacities.
const CapacityLegend = "Highest load: the one that half of the trials carry, with the interval that holds 95% of its probability after all trials of the search. Each trial is judged by itself. It is the capacity of this session of the machines. " +
	"Found: the interval is as narrow as was asked for. OutOfTrials: it is not. A side without an end reaches beyond the loads that were searched."
