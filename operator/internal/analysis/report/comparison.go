package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// comparedNames of the metrics, with their units.
var comparedNames = map[string]string{stats.Throughput: "throughput tx/s", stats.MeanLatency: "mean latency ms", stats.P99Latency: "p99 ms"}

// comparisonPage is what a comparison says, before it is laid out.
type comparisonPage struct {
	facts   []string
	rows    table
	origins table
	notes   []string
}

func newComparisonPage(c Comparison) comparisonPage {
	p := comparisonPage{facts: []string{"A: " + runText(c.A, c.RunsA), "B: " + runText(c.B, c.RunsB), c.Verdict()}}
	if note := c.OrderNote(); note != "" {
		p.facts = append(p.facts, note)
	}
	p.rows.columns = []column{{"point", false}, {"metric", false}, {"n A", true}, {"A", true}, {"n B", true}, {"B", true}, {"B/A", true}, {"95% interval", true}, {"p", true}, {"Mann-Whitney", true}, {"difference", false}}
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
		p.rows.rows = append(p.rows.rows, []string{
			r.Point, comparedNames[r.Metric], strconv.Itoa(r.A.N), meanCell(r.A, 1), strconv.Itoa(r.B.N), meanCell(r.B, 1), ratio, interval, pValue, ranks, r.says(),
		})
	}
	p.origins.columns = []column{{"what", false}, {"A", false}, {"B", false}}
	for _, o := range c.Origins {
		p.origins.rows = append(p.origins.rows, []string{o.What, o.A, o.B})
	}
	if len(c.OnlyA) > 0 {
		p.notes = append(p.notes, "Only A has "+strings.Join(c.OnlyA, "; ")+".")
	}
	if len(c.OnlyB) > 0 {
		p.notes = append(p.notes, "Only B has "+strings.Join(c.OnlyB, "; ")+".")
	}
	p.notes = append(p.notes, c.Notes...)
	for i, e := range []results.Experiment{c.A, c.B} {
		if e.Provenance == nil {
			p.notes = append(p.notes, "What "+[]string{"A", "B"}[i]+" ran on is not in its results.")
		}
	}
	return p
}

// says what a row shows.
func (m ComparedMetric) says() string {
	switch {
	case !m.Tested:
		return "not tested"
	case m.Significant() && m.B.Mean > m.A.Mean:
		return "B is higher"
	case m.Significant():
		return "B is lower"
	case m.P < level:
		return "none shown (only before the correction)"
	default:
		return "none shown"
	}
}

// Verdict says how many differences are significant, and by what.
func (c Comparison) Verdict() string {
	tested, significant := c.Tested()
	switch {
	case tested == 0 && c.RunsA+c.RunsB == 2 && c.Between == 0:
		return "Nothing is decided: with one run on each side, nothing tells how much runs of the same differ, and trials of one run do not vary as runs do. " +
			"Give several runs on a side (A1,A2,A3 B1), or state the deviation between runs (--between-runs 1%); or make both variants systems of one experiment."
	case tested == 0:
		return "Nothing can be told apart: no point that both have has two valid trials in each."
	}
	by := fmt.Sprintf("by the means of %d and %d runs", c.RunsA, c.RunsB)
	if c.RunsA+c.RunsB == 2 {
		by = fmt.Sprintf("if runs of the same deviate by %.3g%%, as was stated", 100*c.Between)
	}
	return fmt.Sprintf("%d of %s significant, %s (Student's test, 5%% for all of them together by Holm's correction).", significant, count(tested, "difference"), by)
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

// comparisonLegend says how to read the table.
const comparisonLegend = "Mean over n runs, or, of a single run, over its n valid trials; of 2 to 4 (least to greatest), of 5 and more ± half-width of the 95% interval. B/A with Fieller's interval, for each row " +
	"by itself; where nothing is tested it is that of the trials within the two runs, and says nothing of how runs differ. p: for all rows together (Holm). Mann-Whitney: of that test on the means of runs, for " +
	"each row by itself, as a second opinion that assumes no distribution; with three runs of each it is never below 0.1, with four 0.029."

// ComparisonText writes a comparison for a terminal.
func ComparisonText(w io.Writer, c Comparison, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	p := newComparisonPage(c)
	b := &strings.Builder{}
	for _, f := range p.facts {
		wrap(b, o.Width, "", f)
	}
	if len(p.rows.rows) > 0 {
		b.WriteString("\n")
		textTable(b, p.rows)
		wrap(b, o.Width, "", comparisonLegend)
	}
	for _, n := range p.notes {
		wrap(b, o.Width, "", n)
	}
	if len(p.origins.rows) > 0 {
		heading(b, "What else differs")
		textTable(b, p.origins)
	}
	return writeComparison(w, b.String())
}

// ComparisonMarkdown writes a comparison as GitHub's Markdown.
func ComparisonMarkdown(w io.Writer, c Comparison) error {
	p := newComparisonPage(c)
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s against %s\n\n", c.B.Name, c.A.Name)
	list(b, p.facts)
	if len(p.rows.rows) > 0 {
		fmt.Fprintf(b, "\n## Points\n\n%s\n\n", comparisonLegend)
		markdownTable(b, p.rows)
	}
	if len(p.notes) > 0 {
		b.WriteString("\n")
		list(b, p.notes)
	}
	if len(p.origins.rows) > 0 {
		b.WriteString("\n## What else differs\n\n")
		markdownTable(b, p.origins)
	}
	return writeComparison(w, b.String())
}

func writeComparison(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

// ComparisonCSV writes a line for each point and metric. Numbers are not rounded; what does not
// exist is empty.
func ComparisonCSV(w io.Writer, c Comparison) error {
	out := newCSV(w)
	var header []string
	for _, a := range c.A.Axes {
		header = append(header, a.Name)
	}
	_ = out.Write(append(header, "metric", "unit", "a_n", "a_mean", "a_stddev", "b_n", "b_mean", "b_stddev", "ratio", "ratio_low95", "ratio_high95", // kept: out.Error below
		"difference", "difference_low95", "difference_high95", "p", "p_holm", "significant", "p_mann_whitney"))
	for _, r := range c.Rows {
		var row []string
		for _, a := range c.A.Axes {
			row = append(row, r.Coordinates[a.Name])
		}
		known := r.HasRatio && r.Ratio.Known
		significant := ""
		if r.Tested {
			significant = strconv.FormatBool(r.Significant())
		}
		_ = out.Write(append(row, r.Metric, unitOf[r.Metric], strconv.Itoa(r.A.N), exact(r.A.Mean, true), exact(r.A.StdDev, r.A.N > 1), strconv.Itoa(r.B.N), exact(r.B.Mean, true), exact(r.B.StdDev, r.B.N > 1),
			exact(r.Ratio.Value, r.HasRatio), exact(r.Ratio.Low, known), exact(r.Ratio.High, known),
			exact(r.Difference.Value, true), exact(r.Difference.Low, r.Difference.Known), exact(r.Difference.High, r.Difference.Known), exact(r.P, r.Tested), exact(r.Adjusted, r.Tested), significant, exact(r.RankP, r.Ranked)))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the comparison as CSV: %w", err)
	}
	return nil
}

// ComparedRuns is a comparison as data.
type ComparedRuns struct {
	A      string `json:"a"`
	B      string `json:"b"`
	RunsA  int    `json:"runsA"`
	RunsB  int    `json:"runsB"`
	Result string `json:"result"`
	// Between is the standard deviation of runs by their mean that was stated, from 0 to 1.
	Between float64       `json:"between,omitempty"`
	Order   string        `json:"order,omitempty"`
	Rows    []ComparedRow `json:"rows"`
	OnlyA   []string      `json:"onlyA,omitempty"`
	OnlyB   []string      `json:"onlyB,omitempty"`
	Origins []struct {
		What string `json:"what"`
		A    string `json:"a"`
		B    string `json:"b"`
	} `json:"origins,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// ComparedRow is one metric at one point. Unknown values are left out.
type ComparedRow struct {
	Point      map[string]string `json:"point"`
	Metric     string            `json:"metric"`
	Unit       string            `json:"unit,omitempty"`
	A          ComparedSide      `json:"a"`
	B          ComparedSide      `json:"b"`
	Ratio      *results.Interval `json:"ratio,omitempty"`
	Difference results.Interval  `json:"difference"`
	P          *float64          `json:"p,omitempty"`
	PHolm      *float64          `json:"pHolm,omitempty"`
	// Significant is among all rows together; left out: not tested.
	Significant  *bool    `json:"significant,omitempty"`
	PMannWhitney *float64 `json:"pMannWhitney,omitempty"`
}

// ComparedSide is what one side measured.
type ComparedSide struct {
	N      int      `json:"n"`
	Mean   float64  `json:"mean"`
	StdDev *float64 `json:"stddev,omitempty"`
}

// ComparisonData is a comparison as data, with the columns of its CSV.
func ComparisonData(c Comparison) ComparedRuns {
	out := ComparedRuns{
		A: c.A.Name, B: c.B.Name, RunsA: c.RunsA, RunsB: c.RunsB, Result: c.Verdict(), Between: c.Between, Order: c.Order,
		Rows: []ComparedRow{}, OnlyA: c.OnlyA, OnlyB: c.OnlyB, Notes: c.Notes,
	}
	for _, o := range c.Origins {
		out.Origins = append(out.Origins, struct {
			What string `json:"what"`
			A    string `json:"a"`
			B    string `json:"b"`
		}{o.What, o.A, o.B})
	}
	for _, r := range c.Rows {
		row := ComparedRow{Point: r.Coordinates, Metric: r.Metric, Unit: unitOf[r.Metric], A: comparedSide(r.A), B: comparedSide(r.B), Difference: results.Interval{Value: r.Difference.Value}}
		if r.Difference.Known {
			row.Difference.Low, row.Difference.High = &r.Difference.Low, &r.Difference.High
		}
		if r.HasRatio {
			row.Ratio = &results.Interval{Value: r.Ratio.Value}
			if r.Ratio.Known {
				row.Ratio.Low, row.Ratio.High = &r.Ratio.Low, &r.Ratio.High
			}
		}
		if r.Tested {
			significant := r.Significant()
			row.P, row.PHolm, row.Significant = &r.P, &r.Adjusted, &significant
		}
		if r.Ranked {
			row.PMannWhitney = &r.RankP
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func comparedSide(a results.Aggregate) ComparedSide {
	side := ComparedSide{N: a.N, Mean: a.Mean}
	if a.N > 1 {
		side.StdDev = &a.StdDev
	}
	return side
}
