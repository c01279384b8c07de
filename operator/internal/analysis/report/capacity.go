package report

import (
	"fmt"
	"strconv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// capacityTable has a row for each search: where it was, what it came to, and with how many trials.
func capacityTable(e results.Experiment) table {
	if len(e.Capacities) == 0 {
		return table{}
	}
	var t table
	searched := e.Capacities[0].Axis
	for _, a := range e.Axes {
		if a.Name != searched {
			t.columns = append(t.columns, column{name: a.Name})
		}
	}
	t.columns = append(t.columns, column{"highest " + searched, true}, column{"objective", false}, column{"searched", true}, column{"trials", true}, column{"outcome", false})
	for _, c := range e.Capacities {
		var row []string
		for _, a := range e.Axes {
			if a.Name != searched {
				row = append(row, c.At[a.Name])
			}
		}
		t.rows = append(t.rows, append(row, capacityText(c), c.Objective, fmt.Sprintf("%d to %d", c.From, c.To), strconv.Itoa(c.Trials), outcomeText(c)))
	}
	return t
}

// capacityText writes a capacity with the decimals that its interval supports.
func capacityText(c results.Capacity) string {
	switch {
	case c.Outcome == string(v1alpha1.CapacityAboveHighest):
		return fmt.Sprintf("more than %d", c.To)
	case c.Outcome == string(v1alpha1.CapacityBelowLowest):
		return fmt.Sprintf("less than %d", c.From)
	case c.Capacity == nil:
		return "-"
	case c.Low == nil || c.High == nil:
		return stats.Fixed(*c.Capacity, 0) + " [" + endText(c.Low) + ", " + endText(c.High) + "]"
	}
	decimals := stats.Decimals(*c.Capacity, (*c.High-*c.Low)/2)
	return fmt.Sprintf("%s [%s, %s]", stats.Fixed(*c.Capacity, decimals), stats.Fixed(*c.Low, decimals), stats.Fixed(*c.High, decimals))
}

func endText(x *float64) string {
	if x == nil {
		return "..."
	}
	return stats.Fixed(*x, 0)
}

func outcomeText(c results.Capacity) string {
	if c.Message != "" {
		return c.Outcome + ": " + c.Message
	}
	return c.Outcome
}

// capacityLegend says how to read the table of capacities.
const capacityLegend = "Highest load: the one that half of the trials carry, with the interval that holds 95% of its probability after all trials of the search. Each trial is judged by itself. It is the capacity of this session of the machines. " +
	"Found: the interval is as narrow as was asked for. OutOfTrials: it is not. A side without an end reaches beyond the loads that were searched."
