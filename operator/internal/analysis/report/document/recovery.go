package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// recoveryTable has a row for each point and fault. It has medians and extremes, not means. A trial
// that had not recovered at the end of its data has no time to average, but a lower bound, which
// suffices to order it.
func recoveryTable(e results.Experiment) Table {
	t := Table{Columns: []Column{
		{"point", false}, {"fault", false}, {"trials", true}, {"times", true}, {"no dip", true}, {"detected after ms", true}, {"dip %", true},
		{"back to 90% after ms", true}, {"not back", true}, {"lost tx", true},
	}}
	for _, s := range model.Recoveries(e) {
		times := strconv.Itoa(s.Times)
		if s.NotMeasured > 0 {
			times += fmt.Sprintf(" (%d not measured)", s.NotMeasured)
		}
		t.Rows = append(t.Rows, []string{
			cmp.Or(model.At(e.Axes, s.Coordinates), "the only one"), s.Fault, strconv.Itoa(s.Trials), times, strconv.Itoa(s.NoDip),
			medianSpan(s.Detect, 0), medianSpan(s.Depth, 1), backSpan(s.BackLeast, s.BackMost), strconv.Itoa(s.NotBack), medianSpan(s.Lost, 0),
		})
	}
	return t
}

// recoveryNotes are the cautions, each with where it holds.
func recoveryNotes(e results.Experiment) []string {
	var notes sharedNotes
	for _, s := range model.Recoveries(e) {
		if s.NoDip > 0 && s.Unknown {
			notes.add(strings.TrimPrefix(model.At(e.Axes, s.Coordinates)+": "+s.Fault, ": "), "where there is no dip, which could have been seen is not in these results")
		} else if s.NoDip > 0 {
			notes.add(strings.TrimPrefix(model.At(e.Axes, s.Coordinates)+": "+s.Fault, ": "), fmt.Sprintf("where there is no dip, one of %s%% and more would have been seen", stats.Fixed(100*s.Least, 0)))
		}
		for _, c := range s.Cautions {
			notes.add(strings.TrimPrefix(model.At(e.Axes, s.Coordinates)+": "+s.Fault, ": "), c)
		}
	}
	var lines []string
	for _, text := range notes.texts {
		lines = append(lines, fmt.Sprintf("%s: %s.", strings.Join(notes.series[text], "; "), text))
	}
	return lines
}

// medianSpan writes the median and, of several, the extremes.
func medianSpan(xs []float64, decimals int) string {
	if len(xs) == 0 {
		return "-"
	}
	xs = slices.Sorted(slices.Values(xs))
	middle := stats.Fixed((xs[(len(xs)-1)/2]+xs[len(xs)/2])/2, decimals)
	if len(xs) == 1 {
		return middle
	}
	return fmt.Sprintf("%s (%s to %s)", middle, stats.Fixed(xs[0], decimals), stats.Fixed(xs[len(xs)-1], decimals))
}

// backSpan is medianSpan of times that lie between least and most. The k-th time in order lies
// between the k-th of least and the k-th of most, each sorted by itself. If these differ, the time
// is longer than the first.
func backSpan(least, most []float64) string {
	if len(least) == 0 {
		return "-"
	}
	least, most = slices.Sorted(slices.Values(least)), slices.Sorted(slices.Values(most))
	middleOf := func(i, k int) string {
		text := stats.Fixed((least[i]+least[k])/2, 0)
		if most[i]+most[k] > least[i]+least[k] {
			return "> " + text
		}
		return text
	}
	last := len(least) - 1
	middle := middleOf(last/2, len(least)/2)
	if last == 0 {
		return middle
	}
	return fmt.Sprintf("%s (%s to %s)", middle, middleOf(0, 0), middleOf(last, last))
}

// RecoveryLegend says how to read the table of recoveries.
const RecoveryLegend = "After the instant at which the fault was confirmed in the first of its pods (of a reset: at which it began; of Chaos Mesh: was asked for), over all times (the first 100 of a trial) and valid trials: median (least to greatest). " +
	"No dip: throughput did not fall below 90%, or not by more than the noise of its bins of 100 ms, which is large where few transactions fall into one. " +
	"Detected: until throughput fell below 90% of what it was before; dip: how far it fell; back: until it was 90% again; lost: transactions from the fall until then. " +
	"Where throughput was not back when the data ended, it took longer than the time until then, and what that may make longer is shown with >."
