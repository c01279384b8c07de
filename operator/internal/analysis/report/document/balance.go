package document

import (
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// balanceTable has a row for each point and part of several pods.
func balanceTable(e results.Experiment) Table {
	var t Table
	for _, a := range e.Axes {
		t.Columns = append(t.Columns, Column{Name: a.Name, Numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	t.Columns = append(t.Columns, Column{"part", false}, Column{"pods", true}, Column{"trials", true}, Column{"cores CoV", true}, Column{"max / mean", true},
		Column{"CoV by bin", true}, Column{"out of range %", true}, Column{"sent CoV", true}, Column{"max / mean", true})
	for _, l := range e.Resources {
		b := l.Balance
		if b == nil {
			continue
		}
		var row []string
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		byBin, outside := "-", "-"
		if b.SeriesTrials > 0 {
			byBin, outside = stats.Fixed(b.CPUMeanCoV, 3), stats.Fixed(100*b.CPUOutside, 1)
		}
		t.Rows = append(t.Rows, append(row, l.Part, strconv.Itoa(l.Pods), strconv.Itoa(l.Trials), stats.Fixed(b.CPUCoV, 3), stats.Fixed(b.CPUMaxToMean, 2), byBin, outside,
			stats.Fixed(b.SentCoV, 3), stats.Fixed(b.SentMaxToMean, 2)))
	}
	return t
}

// BalanceLegend says how to read the table of balance.
const BalanceLegend = "How evenly the pods of a part work, in the measurement window, means over the valid trials. CoV: standard deviation over the pods by their mean, of processors' time and of bytes sent; " +
	"0 is perfect balance. Max / mean: the pod with most of it, by the mean. CoV by bin: the mean of the CoV in each bin of the series (1 s, in long windows more), which sees work that moves from pod to pod. " +
	"Out of range: the share of these bins, of all pods, with less than half or more than one and a half times the mean of the pods in the bin."
