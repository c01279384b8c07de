package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/model"
)

// HistoryChanges has a row for each change.
func HistoryChanges(h model.History, only func(model.HistoryMetric, model.HistoryChange) bool) Table {
	t := Table{Columns: []Column{{"change", false}, {"metric", false}, {"where", false}, {"before", true}, {"after", true}, {"after/before", true}, {"P", true}, {"runs", true}, {"since", false}}}
	for _, of := range h.Changes() {
		m, c := of.Metric, of.Change
		if !only(m, c) {
			continue
		}
		kind := strings.ToLower(c.Kind)
		if h.Drifts {
			kind = "drift?"
		}
		t.Rows = append(t.Rows, []string{
			kind, m.Named(), m.Where(), Tick3(c.Before), Tick3(c.After), c.RatioInWords(), model.HistoryPText(c.P), fmt.Sprintf("%d, then %d", c.RunsBefore, c.RunsAfter), h.RunName(c.At),
		})
	}
	return t
}

// AllChanges chooses every change of every metric.
func AllChanges(model.HistoryMetric, model.HistoryChange) bool { return true }

// HistoryLegend says what the error rate is.
const HistoryLegend = "A change is one of the level of a metric, found by permuting the runs (a divisive search for changes of the mean). If nothing changed and runs do not depend on their neighbours, any change at all is shown in at most 5% of such histories, over all metrics together. " +
	"after/before has a 95% interval that does not allow for the search, so that a change looks somewhat greater than it is. Throughput and capacity are better when higher, latencies and the abort rate when lower."

// HistoryRuns is the table of the runs, in their order.
func HistoryRuns(h model.History) Table {
	t := Table{Columns: []Column{{"run", true}, {"started", false}, {"experiment", false}, {"version", false}, {"from", false}}}
	for i, r := range h.Runs {
		t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), r.Started.Format(time.DateTime), model.HistoryName(r.Experiment, r.Profile), r.Version, r.From})
	}
	return t
}
