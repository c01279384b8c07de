package format

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results/stats"
)

// HistoryForms of a history, by the names that the command line knows them by.
var HistoryForms = map[string]func(io.Writer, model.History) error{
	"json": HistoryJSON, "csv": csvfile.History, "junit": HistoryJUnit, "github": HistoryGitHub, "markdown": HistoryMarkdown, "html": HistoryHTML,
}

// HistoryJSON writes a history for programs.
func HistoryJSON(w io.Writer, h model.History) error {
	text, err := model.HistoryJSON(h)
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

// HistoryText writes a history for a terminal.
func HistoryText(w io.Writer, h model.History, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	var b strings.Builder
	wrap(&b, o.Width, "", h.Lead())
	if t := document.HistoryChanges(h, document.AllChanges); len(t.Rows) > 0 {
		b.WriteString("\n")
		textTable(&b, t)
	}
	b.WriteString("\nRuns\n\n")
	textTable(&b, document.HistoryRuns(h))
	b.WriteString("\n")
	for _, n := range append(h.Notes, document.HistoryLegend) {
		wrap(&b, o.Width, "", n)
	}
	return writeHistory(w, b.String())
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
func HistoryJUnit(w io.Writer, h model.History) error {
	all := junitSuites{Name: "kubectl assay history"}
	places := map[string]int{}
	for _, m := range h.Metrics {
		suite := model.HistoryName(m.Experiment, m.Profile)
		i, ok := places[suite]
		if !ok {
			i = len(all.Suites)
			places[suite] = i
			all.Suites = append(all.Suites, junitSuite{Name: suite})
		}
		s := &all.Suites[i]
		c := junitCase{Class: suite, Name: strings.TrimSpace(m.Metric + " " + m.Point)}
		switch n := len(m.Changes); {
		case n > 0 && m.Changes[n-1].Kind == model.Regression:
			last := m.Changes[n-1]
			c.Failure = &junitMessage{
				Message: fmt.Sprintf("%s is worse since %s: %s, then %s", m.Named(), h.RunName(last.At), document.Tick3(last.Before), document.Tick3(last.After)), Type: model.Regression,
				Text: fmt.Sprintf("after/before %s, P %s of any false change", last.RatioInWords(), model.HistoryPText(last.P)),
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

// HistoryMarkdown writes the metrics that became worse, for a comment on a change.
func HistoryMarkdown(w io.Writer, h model.History) error {
	var b strings.Builder
	b.WriteString("**Benchmarks over time.** " + markdownText(h.Lead()) + "\n")
	worse := h.Regressions()
	if len(worse) > 0 {
		b.WriteString("\n")
		markdownTable(&b, document.HistoryChanges(h, func(m model.HistoryMetric, c model.HistoryChange) bool {
			return c.Kind == model.Regression && c.At == m.Changes[len(m.Changes)-1].At
		}))
	}
	return writeHistory(w, b.String())
}

// HistoryGitHub writes a summary of a step of GitHub Actions: all changes, runs, and how to read
// them.
func HistoryGitHub(w io.Writer, h model.History) error {
	var b strings.Builder
	b.WriteString("## Benchmarks over time\n\n" + markdownText(h.Lead()) + "\n")
	if t := document.HistoryChanges(h, document.AllChanges); len(t.Rows) > 0 {
		b.WriteString("\n")
		markdownTable(&b, t)
	}
	b.WriteString("\n<details><summary>Runs</summary>\n\n")
	markdownTable(&b, document.HistoryRuns(h))
	b.WriteString("\n</details>\n")
	for _, n := range append(h.Notes, document.HistoryLegend) {
		b.WriteString("\n" + markdownText(n) + "\n")
	}
	return writeHistory(w, b.String())
}
