package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// comparedNames of the metrics, with their units.
var comparedNames = map[string]string{stats.Throughput: "throughput tx/s", stats.MeanLatency: "mean latency ms", stats.P99Latency: "p99 ms"}

// ComparisonPage is what a comparison says, before it is laid out.
type ComparisonPage struct {
	Facts   []string
	Rows    Table
	Origins Table
	Notes   []string
}

// NewComparisonPage words a comparison.
func NewComparisonPage(c model.Comparison) ComparisonPage {
	p := ComparisonPage{Facts: []string{"A: " + runText(c.A, c.RunsA), "B: " + runText(c.B, c.RunsB), c.Verdict()}}
	if note := c.OrderNote(); note != "" {
		p.Facts = append(p.Facts, note)
	}
	p.Rows.Columns = []Column{{"point", false}, {"metric", false}, {"n A", true}, {"A", true}, {"n B", true}, {"B", true}, {"B/A", true}, {"95% interval", true}, {"p", true}, {"Mann-Whitney", true}, {"difference", false}}
	for _, r := range c.Rows {
		ratio, interval, pValue, ranks := "-", "-", "-", "-"
		if r.HasRatio {
			ratio = stats.Rounded(r.Ratio.Value, (r.Ratio.High-r.Ratio.Low)/2)
			if r.Ratio.Known {
				d := stats.Decimals(r.Ratio.Value, (r.Ratio.High-r.Ratio.Low)/2)
				interval = stats.Fixed(r.Ratio.Low, d) + " to " + stats.Fixed(r.Ratio.High, d)
			}
		}
		if r.Tested {
			pValue = pText(r.Adjusted)
		}
		if r.Ranked {
			ranks = pText(r.RankP)
		}
		p.Rows.Rows = append(p.Rows.Rows, []string{
			r.Point, comparedNames[r.Metric], strconv.Itoa(r.A.N), meanCell(r.A, 1), strconv.Itoa(r.B.N), meanCell(r.B, 1), ratio, interval, pValue, ranks, r.Says(),
		})
	}
	p.Origins.Columns = []Column{{"what", false}, {"A", false}, {"B", false}}
	for _, o := range c.Origins {
		p.Origins.Rows = append(p.Origins.Rows, []string{o.What, o.A, o.B})
	}
	if len(c.OnlyA) > 0 {
		p.Notes = append(p.Notes, "Only A has "+strings.Join(c.OnlyA, "; ")+".")
	}
	if len(c.OnlyB) > 0 {
		p.Notes = append(p.Notes, "Only B has "+strings.Join(c.OnlyB, "; ")+".")
	}
	p.Notes = append(p.Notes, c.Notes...)
	for i, e := range []results.Experiment{c.A, c.B} {
		if e.Provenance == nil {
			p.Notes = append(p.Notes, "What "+[]string{"A", "B"}[i]+" ran on is not in its results.")
		}
	}
	return p
}

func runText(e results.Experiment, runs int) string {
	when := "not started"
	switch {
	case e.Completed != nil:
		when = "completed " + e.Completed.UTC().Format(time.RFC3339)
	case !e.Started.IsZero():
		when = "started " + e.Started.UTC().Format(time.RFC3339) + ", not complete"
	}
	if runs > 1 {
		return fmt.Sprintf("%d runs, the first of them %s, %s, UID %s.", runs, e.Name, when, e.UID)
	}
	return fmt.Sprintf("%s, %s, UID %s.", e.Name, when, e.UID)
}

func pText(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return stats.Fixed(p, 4)
}

// ComparisonLegend says how to read the table.
const ComparisonLegend = "Mean over n runs, or, of a single run, over its n valid trials; of 2 to 4 (least to greatest), of 5 and more ± half-width of the 95% interval. B/A with Fieller's interval, for each row " +
	"by itself; where nothing is tested it is that of the trials within the two runs, and says nothing of how runs differ. p: for all rows together (Holm). Mann-Whitney: of that test on the means of runs, for " +
	"each row by itself, as a second opinion that assumes no distribution; with three runs of each it is never below 0.1, with four 0.029."
