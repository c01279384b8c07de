package report

import (
	"cmp"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results/stats"
)

// HistoryForms of a history, by the names that the command line knows them by.
var HistoryForms = map[string]func(io.Writer, History) error{
	"json": HistoryJSON, "csv": HistoryCSV, "junit": HistoryJUnit, "github": HistoryGitHub, "markdown": HistoryMarkdown, "html": HistoryHTML,
}

// HistoryJSON writes a history for programs.
func HistoryJSON(w io.Writer, h History) error {
	text, err := historyJSON(h)
	if err != nil {
		return err
	}
	return writeHistory(w, string(text))
}

func writeHistory(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// runName is how a run is called in tables: its day and what was measured.
func (h History) runName(i int) string {
	r := h.Runs[i]
	name := r.Started.Format("2006-01-02 15:04")
	if r.Started.IsZero() {
		name = r.From
	}
	if r.Version != "" {
		name += ", " + r.Version
	}
	return name
}

func (m HistoryMetric) where() string {
	return strings.Join(nonEmpty(historyName(m.Experiment, m.Profile), m.Point), ", ")
}

func nonEmpty(all ...string) (out []string) {
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// metricChange is a change and the metric that it is of.
type metricChange struct {
	metric HistoryMetric
	change HistoryChange
}

// changes of all metrics: regressions first, the largest of them first, then the others in the
// order of the metrics.
func (h History) changes() (all []metricChange) {
	for _, m := range h.Metrics {
		for _, c := range m.Changes {
			all = append(all, metricChange{m, c})
		}
	}
	badness := func(c HistoryChange) float64 {
		if c.Kind == Regression {
			return c.factor()
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b metricChange) int { return cmp.Compare(badness(b.change), badness(a.change)) })
	return all
}

// changesTableOf has a row for each change.
func (h History) changesTableOf(only func(HistoryMetric, HistoryChange) bool) table {
	t := table{columns: []column{{"change", false}, {"metric", false}, {"where", false}, {"before", true}, {"after", true}, {"after/before", true}, {"P", true}, {"runs", true}, {"since", false}}}
	for _, of := range h.changes() {
		m, c := of.metric, of.change
		if !only(m, c) {
			continue
		}
		kind := strings.ToLower(c.Kind)
		if h.Drifts {
			kind = "drift?"
		}
		t.rows = append(t.rows, []string{
			kind, m.named(), m.where(), tick3(c.Before), tick3(c.After), c.ratioInWords(), showHistoryP(c.P), fmt.Sprintf("%d, then %d", c.RunsBefore, c.RunsAfter), h.runName(c.At),
		})
	}
	return t
}

// named is the metric with its unit.
func (m HistoryMetric) named() string {
	if m.Unit == "" {
		return m.Metric
	}
	return m.Metric + " " + m.Unit
}

func (c HistoryChange) ratioInWords() string {
	if c.Ratio == nil {
		return "-"
	}
	text := stats.Fixed(c.Ratio.Value, 3)
	if c.Ratio.Low != nil && c.Ratio.High != nil {
		text += fmt.Sprintf(" (%s to %s)", stats.Fixed(*c.Ratio.Low, 3), stats.Fixed(*c.Ratio.High, 3))
	}
	return text
}

// showHistoryP does not say more than the draws do.
func showHistoryP(p float64) string {
	if p < 1.5/(historyDraws+1) {
		return "< 0.001"
	}
	return stats.Fixed(p, 3)
}

func allChanges(HistoryMetric, HistoryChange) bool { return true }

// lead says what the history shows, in a sentence or two.
func (h History) lead() string {
	changes := 0
	for _, m := range h.Metrics {
		changes += len(m.Changes)
	}
	text := fmt.Sprintf("%d runs, %d metrics: %s, %s in all.", len(h.Runs), len(h.Metrics), counted(len(h.Regressions()), "metric is", "metrics are")+" worse at the end", counted(changes, "change", "changes"))
	if h.Undecided() {
		text = fmt.Sprintf("%d runs: too few to tell a change from noise, which takes %d of one experiment and profile.", len(h.Runs), stats.LeastRuns)
	}
	if h.Baseline != "" {
		text += " Numbers are multiples of those at " + h.Baseline + " in the same run."
	}
	return text
}

func counted(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// historyLegend says what the error rate is.
const historyLegend = "A change is one of the level of a metric, found by permuting the runs (a divisive search for changes of the mean). If nothing changed and runs do not depend on their neighbours, any change at all is shown in at most 5% of such histories, over all metrics together. " +
	"after/before has a 95% interval that does not allow for the search, so that a change looks somewhat greater than it is. Throughput and capacity are better when higher, latencies and the abort rate when lower."

// HistoryText writes a history for a terminal.
func HistoryText(w io.Writer, h History, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	var b strings.Builder
	wrap(&b, o.Width, "", h.lead())
	if t := h.changesTableOf(allChanges); len(t.rows) > 0 {
		b.WriteString("\n")
		textTable(&b, t)
	}
	b.WriteString("\nRuns\n\n")
	textTable(&b, h.runsTable())
	b.WriteString("\n")
	for _, n := range append(h.Notes, historyLegend) {
		wrap(&b, o.Width, "", n)
	}
	return writeHistory(w, b.String())
}

func (h History) runsTable() table {
	t := table{columns: []column{{"run", true}, {"started", false}, {"experiment", false}, {"version", false}, {"from", false}}}
	for i, r := range h.Runs {
		t.rows = append(t.rows, []string{strconv.Itoa(i + 1), r.Started.Format(time.DateTime), historyName(r.Experiment, r.Profile), r.Version, r.From})
	}
	return t
}

// HistoryCSV writes a line for each metric in each run, with the level that it belongs to.
func HistoryCSV(w io.Writer, h History) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"experiment", "profile", "point", "metric", "unit", "run", "started", "version", "from", "n", "mean", "low", "high", "level", "change", "p", "drifts"}}
	number := func(x *float64) string {
		if x == nil {
			return ""
		}
		return strconv.FormatFloat(*x, 'g', -1, 64)
	}
	for _, m := range h.Metrics {
		level := 0
		for _, v := range m.Values {
			kind, p := "", ""
			for _, change := range m.Changes {
				if change.At == v.Run {
					level++
					kind, p = change.Kind, number(&change.P)
				}
			}
			r := h.Runs[v.Run]
			rows = append(rows, []string{
				m.Experiment, m.Profile, m.Point, m.Metric, m.Unit, strconv.Itoa(v.Run + 1), r.Started.Format(time.RFC3339), r.Version, r.From, strconv.Itoa(v.N),
				number(&v.Mean), number(v.Low), number(v.High), strconv.Itoa(level + 1), kind, p, strconv.FormatBool(h.Drifts),
			})
		}
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// The elements of JUnit's XML that CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// HistoryJUnit writes a test for each metric. It fails if the last change is a regression, and is
// skipped if the runs are too few.
func HistoryJUnit(w io.Writer, h History) error {
	all := junitSuites{Name: "kubectl assay history"}
	places := map[string]int{}
	for _, m := range h.Metrics {
		suite := historyName(m.Experiment, m.Profile)
		i, ok := places[suite]
		if !ok {
			i = len(all.Suites)
			places[suite] = i
			all.Suites = append(all.Suites, junitSuite{Name: suite})
		}
		s := &all.Suites[i]
		c := junitCase{Class: suite, Name: strings.TrimSpace(m.Metric + " " + m.Point)}
		switch n := len(m.Changes); {
		case n > 0 && m.Changes[n-1].Kind == Regression:
			last := m.Changes[n-1]
			c.Failure = &junitMessage{
				Message: fmt.Sprintf("%s is worse since %s: %s, then %s", m.named(), h.runName(last.At), tick3(last.Before), tick3(last.After)), Type: Regression,
				Text: fmt.Sprintf("after/before %s, P %s of any false change", last.ratioInWords(), showHistoryP(last.P)),
			}
			s.Failures++
		case len(m.Values) < stats.LeastRuns:
			c.Skipped = &junitMessage{Message: fmt.Sprintf("%d runs have it; changes are looked for in %d and more", len(m.Values), stats.LeastRuns)}
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
		s.Tests++
	}
	for _, s := range all.Suites {
		all.Tests, all.Failures, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Skipped+s.Skipped
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return writeHistory(w, xml.Header+string(text)+"\n")
}

// HistoryMarkdown writes what a comment on a change needs: what became worse.
func HistoryMarkdown(w io.Writer, h History) error {
	var b strings.Builder
	b.WriteString("**Benchmarks over time.** " + markdownText(h.lead()) + "\n")
	worse := h.Regressions()
	if len(worse) > 0 {
		b.WriteString("\n")
		markdownTable(&b, h.changesTableOf(func(m HistoryMetric, c HistoryChange) bool {
			return c.Kind == Regression && c.At == m.Changes[len(m.Changes)-1].At
		}))
	}
	return writeHistory(w, b.String())
}

// HistoryGitHub writes a summary of a step of GitHub Actions: all changes, runs, and how to read
// them.
func HistoryGitHub(w io.Writer, h History) error {
	var b strings.Builder
	b.WriteString("## Benchmarks over time\n\n" + markdownText(h.lead()) + "\n")
	if t := h.changesTableOf(allChanges); len(t.rows) > 0 {
		b.WriteString("\n")
		markdownTable(&b, t)
	}
	b.WriteString("\n<details><summary>Runs</summary>\n\n")
	markdownTable(&b, h.runsTable())
	b.WriteString("\n</details>\n")
	for _, n := range append(h.Notes, historyLegend) {
		b.WriteString("\n" + markdownText(n) + "\n")
	}
	return writeHistory(w, b.String())
}
