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

// FailuresLegend says how to read the table.
const FailuresLegend = "Trials of each point, the excluded ones, and why. Shares are of all requests in the windows of the valid trials that ended or were never sent. " +
	"-: the clients do not report it. Latencies and percentiles are of committed transactions alone. Client time, of a closed loop: the share of it in the windows that the throughput, the latencies, " +
	"the timeouts and the think time of these tables account for, which is 100% by Little's law; - where it is not known. " +
	"In a closed loop an outage delays one request of each client, so that percentiles are lower than users would see who do not wait for each other."

// failuresTable has a row for each point that has a trial.
func failuresTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"point", false}, {"trials", true}, {"excluded", true}, {"why", false}, {"requests", true}}}
	for _, c := range model.FailureCounters {
		t.Columns = append(t.Columns, Column{c.Column, true})
	}
	t.Columns = append(t.Columns, Column{"client time %", true})
	for _, p := range e.Points {
		f, known := model.FailuresAt(e, p)
		if f.Attempts == 0 {
			continue
		}
		row := []string{cmp.Or(model.At(e.Axes, p.Coordinates), "the only one"), strconv.Itoa(f.Attempts), strconv.Itoa(f.Left), cmp.Or(exclusionsText(f), "-")}
		if !known {
			t.Rows = append(t.Rows, append(row, "-", "-", "-", "-", "-", "-"))
			continue
		}
		row = append(row, requestsText(f))
		for _, c := range model.FailureCounters {
			row = append(row, counterCell(f, c.Counter, c.Of(f)))
		}
		t.Rows = append(t.Rows, append(row, clientTimeCell(f)))
	}
	return t
}

func requestsText(f model.Failures) string {
	if f.Uncounted {
		return "-"
	}
	return strconv.FormatInt(f.Ended+f.Unsent, 10)
}

func exclusionsText(f model.Failures) string {
	var parts []string
	for reason, n := range f.Reasons {
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// counterCell writes a share in percent. A share above 0 is never written as 0.
func counterCell(f model.Failures, counter string, n int64) string {
	switch {
	case !f.Reports(counter) || f.Ended+f.Unsent == 0:
		return "-"
	case n == 0:
		return "0"
	case f.Of(n) < 0.0001:
		return "<0.01"
	}
	return stats.Fixed(100*f.Of(n), 2)
}

// clientTimeCell is the mean over the trials, in percent.
func clientTimeCell(f model.Failures) string {
	if len(f.ClientTime) == 0 {
		return "-"
	}
	return stats.Fixed(100*stats.Aggregate(f.ClientTime).Mean, 1)
}

// needsP99 is how many transactions a trial needs so that ten are slower than its p99.
const needsP99 = 1000

// fewestCommitted is the least number of committed transactions of a valid trial of a point that
// has latencies of its transactions.
func fewestCommitted(e results.Experiment, p results.PointResult) (fewest int64, some bool) {
	for _, l := range e.Trials {
		if l.PointIndex != p.Index || l.Outcome != stats.Succeeded || l.RunSummary || l.Committed == 0 || l.P99Millis == 0 {
			continue
		}
		if !some || l.Committed < fewest {
			fewest, some = l.Committed, true
		}
	}
	return fewest, some
}

// slower is the share of transactions beyond a percentile in the table of points.
var slower = map[string]float64{stats.P50Latency: 0.5, stats.P99Latency: 0.01}

// slowest is the share beyond the highest of these percentiles.
const slowest = 0.01

// atLeast marks a percentile as a lower bound of that of all requests. More requests failed than
// lie beyond it, and failed requests took longer, or for ever.
func atLeast(cell, metric string, e results.Experiment, p results.PointResult) string {
	beyond, isPercentile := slower[metric]
	f, known := model.FailuresAt(e, p)
	if share, ok := f.Failed(); isPercentile && known && ok && share > beyond && cell != "-" {
		return "≥ " + cell
	}
	return cell
}

// failureNotes name the points with numbers of successful requests only.
func failureNotes(e results.Experiment) []string {
	var percentiles, left, apart, few []string
	for _, p := range e.Points {
		f, known := model.FailuresAt(e, p)
		point := cmp.Or(model.At(e.Axes, p.Coordinates), "the only point")
		if share, ok := f.Failed(); known && ok && share > slowest {
			percentiles = append(percentiles, fmt.Sprintf("%s (%s%%)", point, stats.Fixed(100*share, 1)))
		}
		if n, ok := fewestCommitted(e, p); ok && n < needsP99 {
			few = append(few, fmt.Sprintf("%s (%d)", point, n))
		}
		if f.Apart > 0 {
			apart = append(apart, fmt.Sprintf("%s (%s%%, %d of %s)", point, clientTimeCell(f), f.Apart, model.Count(len(f.ClientTime), "trial")))
		}
		if f.Left*5 > f.Attempts {
			left = append(left, fmt.Sprintf("%s (%d of %d)", point, f.Left, f.Attempts))
		}
	}
	var notes []string
	if slices.ContainsFunc(e.Trials, func(l results.TrialLine) bool { return l.RunSummary }) {
		notes = append(notes, "The clients report summaries, so that numbers are of their whole run, not cut to the window. "+
			"Throughputs of several client pods are added up, means weighted by transactions; percentiles of several pods are not known.")
	}
	notes = append(notes, remarkNotes(e)...)
	if len(percentiles) > 0 {
		notes = append(notes, "More than 1% of requests failed, so that p99 of all of them is that of the table or more (≥): "+strings.Join(percentiles, "; ")+".")
	}
	if len(few) > 0 {
		notes = append(notes, fmt.Sprintf("p99 is that of another percentile where a trial has fewer than %d transactions, since fewer than ten are slower; no claim about it is judged there. Fewest of a trial: %s.", needsP99, strings.Join(few, "; ")))
	}
	if len(apart) > 0 {
		notes = append(notes, "Throughput and mean latency do not fit the number of clients (Little's law: clients = throughput times the sum of mean latency and think time): "+strings.Join(apart, "; ")+
			". Below 100%, clients spent the rest in transactions whose latency does not count, such as those that never ended, or in pauses that their latencies leave out. "+
			"The latencies of such points are not those of all that clients waited for.")
	}
	if len(left) > 0 {
		notes = append(notes, "More than a fifth of the trials are excluded; they may be those that went badly: "+strings.Join(left, "; ")+".")
	}
	return append(notes, unevenExclusions(e)...)
}

// unevenLevel is the P below which trials are left out at one value of an axis more or less often
// than at the others. It is divided by the number of values.
const unevenLevel = 0.05

// unevenExclusions names the values of an axis at which trials are left out more or less often than
// at the others, by Fisher's exact test. The reason for leaving them out then depends on what is
// compared.
func unevenExclusions(e results.Experiment) []string {
	var notes []string
	for _, a := range e.Axes {
		for _, value := range a.Values {
			var left, tried [2]int // at the value, and elsewhere
			for _, p := range e.Points {
				side := 1
				if p.Coordinates[a.Name] == value {
					side = 0
				}
				left[side] += p.Invalid + p.Failed
				tried[side] += p.Valid + p.Invalid + p.Failed
			}
			if len(a.Values) == 2 && value == a.Values[1] { // the same comparison
				continue
			}
			tests := len(a.Values)
			if tests == 2 {
				tests = 1
			}
			if p := stats.Fisher(left[0], tried[0], left[1], tried[1]) * float64(tests); p < unevenLevel {
				notes = append(notes, fmt.Sprintf("Whether a trial counts depends on %s: %d of %d are left out at %s, %d of %d elsewhere (Fisher's exact test, P %.2g). "+
					"The numbers may be those of the trials that went well.", a.Name, left[0], tried[0], value, left[1], tried[1], p))
			}
		}
	}
	return notes
}

// failedCell is the share of requests that failed at a point, for the table of points.
func failedCell(e results.Experiment, p results.PointResult) string {
	f, known := model.FailuresAt(e, p)
	share, ok := f.Failed()
	switch {
	case !known || !ok:
		return "-"
	case share == 0:
		return "0"
	case share < 0.0001:
		return "<0.01"
	}
	return stats.Fixed(100*share, 2)
}

// triedCell is n, with the number of all trials if some are excluded.
func triedCell(p results.PointResult) string {
	if left := p.Invalid + p.Failed; left > 0 {
		return fmt.Sprintf("%d of %d", p.Valid, p.Valid+left)
	}
	return strconv.Itoa(p.Valid)
}

// mostRemarks is how many different remarks of clients a report shows.
const mostRemarks = 8

// remarkNotes are remarks on the numbers that clients print of their whole run. Each names the
// first trial that has it.
func remarkNotes(e results.Experiment) []string {
	first, times := map[string]string{}, map[string]int{}
	var order, notes []string
	for _, l := range e.Trials {
		for _, remark := range l.Remarks {
			if times[remark]++; times[remark] == 1 {
				first[remark] = l.Name
				order = append(order, remark)
			}
		}
	}
	for _, remark := range order[:min(len(order), mostRemarks)] {
		where := "trial " + first[remark]
		if n := times[remark] - 1; n > 0 {
			where += fmt.Sprintf(" and %d more", n)
		}
		notes = append(notes, fmt.Sprintf("Of %s, %s.", where, remark))
	}
	if more := len(order) - mostRemarks; more > 0 {
		notes = append(notes, fmt.Sprintf("%d more remarks are in the trials' own results (summary.remarks).", more))
	}
	return notes
}
