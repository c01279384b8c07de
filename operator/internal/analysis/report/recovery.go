package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// recoverySum is what a fault did at a point, over its times and the valid trials.
type recoverySum struct {
	point              int32
	coordinates        map[string]string
	fault              string
	trials, times      int
	noDip, notMeasured int
	// least is the depth from which on a dip would have been seen at every time without a dip;
	// unknown: the results of some times lack it.
	least         float64
	unknown       bool
	notBack       int // when the data ended
	lastTrial     string
	detect, depth []float64
	lost          []float64
	// How long it took until it was back, at least and at most: of those that were not back how
	// long the data lasted, and +Inf.
	backLeast, backMost []float64
	cautions            []string
}

// recoveries of an experiment, by point and then in the order of the faults.
func recoveries(e results.Experiment) []*recoverySum {
	var sums []*recoverySum
	for _, l := range e.Trials {
		if l.Outcome != stats.Succeeded {
			continue
		}
		for _, r := range l.Recovery {
			i := slices.IndexFunc(sums, func(s *recoverySum) bool { return s.point == l.PointIndex && s.fault == r.Fault })
			if i < 0 {
				sums = append(sums, &recoverySum{point: l.PointIndex, coordinates: l.Coordinates, fault: r.Fault})
				i = len(sums) - 1
			}
			sums[i].add(l.Name, r)
		}
	}
	slices.SortStableFunc(sums, func(a, b *recoverySum) int { return cmp.Compare(a.point, b.point) })
	return sums
}

func (s *recoverySum) add(trial string, r results.Recovery) {
	if s.lastTrial != trial {
		s.trials, s.lastTrial = s.trials+1, trial
	}
	s.times++
	for _, c := range r.Cautions {
		if c := stats.Caution(c); (c == stats.NoisyBaseline || c == stats.ShortBaseline) && !slices.Contains(s.cautions, c.Text()) {
			s.cautions = append(s.cautions, c.Text())
		}
	}
	switch {
	case r.Error != "":
		s.notMeasured++
		return
	case !r.Dipped:
		s.noDip++
		s.least, s.unknown = math.Max(s.least, r.LeastDip), s.unknown || r.LeastDip == 0
		return
	}
	s.detect, s.depth, s.lost = append(s.detect, r.DetectMillis), append(s.depth, r.Depth*100), append(s.lost, r.LostTransactions)
	most := r.RecoverMillis
	if !r.Recovered {
		s.notBack, most = s.notBack+1, math.Inf(1)
	}
	s.backLeast, s.backMost = append(s.backLeast, r.RecoverMillis), append(s.backMost, most)
}

// recoveryTable has a row for each point and fault. Medians and extremes, not means: a trial that
// was not back when the data ended has no time to average, and still bounds the order from below.
func recoveryTable(e results.Experiment) table {
	t := table{columns: []column{
		{"point", false}, {"fault", false}, {"trials", true}, {"times", true}, {"no dip", true}, {"detected after ms", true}, {"dip %", true},
		{"back to 90% after ms", true}, {"not back", true}, {"lost tx", true},
	}}
	for _, s := range recoveries(e) {
		times := strconv.Itoa(s.times)
		if s.notMeasured > 0 {
			times += fmt.Sprintf(" (%d not measured)", s.notMeasured)
		}
		t.rows = append(t.rows, []string{
			cmp.Or(at(e.Axes, s.coordinates), "the only one"), s.fault, strconv.Itoa(s.trials), times, strconv.Itoa(s.noDip),
			medianSpan(s.detect, 0), medianSpan(s.depth, 1), backSpan(s.backLeast, s.backMost), strconv.Itoa(s.notBack), medianSpan(s.lost, 0),
		})
	}
	return t
}

// recoveryNotes are the cautions, each with where it holds.
func recoveryNotes(e results.Experiment) []string {
	var notes sharedNotes
	for _, s := range recoveries(e) {
		if s.noDip > 0 && s.unknown {
			notes.add(strings.TrimPrefix(at(e.Axes, s.coordinates)+": "+s.fault, ": "), "where there is no dip, which could have been seen is not in these results")
		} else if s.noDip > 0 {
			notes.add(strings.TrimPrefix(at(e.Axes, s.coordinates)+": "+s.fault, ": "), fmt.Sprintf("where there is no dip, one of %s%% and more would have been seen", stats.Fixed(100*s.least, 0)))
		}
		for _, c := range s.cautions {
			notes.add(strings.TrimPrefix(at(e.Axes, s.coordinates)+": "+s.fault, ": "), c)
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

// backSpan is medianSpan of times that are known to lie between the one and the other. The k-th in
// their order lies between the k-th of the ones and the k-th of the others, each sorted by itself.
// Where these differ, it is longer than the one.
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

// recoveryLegend says how to read the table of recoveries.
const recoveryLegend = "After the instant at which the fault was confirmed in the first of its pods (of a reset: at which it began; of Chaos Mesh: was asked for), over all times (the first 100 of a trial) and valid trials: median (least to greatest). " +
	"No dip: throughput did not fall below 90%, or not by more than the noise of its bins of 100 ms, which is large where few transactions fall into one. " +
	"Detected: until throughput fell below 90% of what it was before; dip: how far it fell; back: until it was 90% again; lost: transactions from the fall until then. " +
	"Where throughput was not back when the data ended, it took longer than the time until then, and what that may make longer is shown with >."

// RecoveryCSV writes a line for each time of each fault in each valid trial. Numbers are not
// rounded; missing values are empty. Where recovered is false, recovered_ms is a lower bound: the
// end of the data. The confirmed_ms of a reset is when it began, and of what Chaos Mesh does when
// that was asked for. An experiment without such faults gives the header alone.
func RecoveryCSV(w io.Writer, e results.Experiment) error {
	out := newCSV(w)
	header := []string{"point"}
	for _, a := range e.Axes {
		header = append(header, a.Name)
	}
	_ = out.Write(append(header, "trial", "repetition", "fault", "time", "kind", "confirmed_ms", "before_tx_s", "dipped", "detected_ms", "depth_ratio", // kept: out.Error below
		"recovered", "recovered_ms", "lost_tx", "cautions", "error"))
	for _, l := range e.Trials {
		if l.Outcome != stats.Succeeded {
			continue
		}
		for _, r := range l.Recovery {
			row := []string{strconv.Itoa(int(l.PointIndex))}
			for _, a := range e.Axes {
				row = append(row, l.Coordinates[a.Name])
			}
			_ = out.Write(append(row, l.Name, strconv.Itoa(int(l.Repetition)), r.Fault, strconv.Itoa(r.Time), r.Kind, exact(r.ConfirmedMillis, r.Kind != ""),
				exact(r.ThroughputBefore, r.ThroughputBefore > 0), strconv.FormatBool(r.Dipped), exact(r.DetectMillis, r.Dipped), exact(r.Depth, r.Dipped),
				strconv.FormatBool(r.Recovered), exact(r.RecoverMillis, r.Dipped), exact(r.LostTransactions, r.Dipped), strings.Join(r.Cautions, " "), r.Error))
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the recoveries as CSV: %w", err)
	}
	return nil
}
