package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/printable"
)

// Markdown writes a report as GitHub's Markdown.
func Markdown(w io.Writer, e results.Experiment) error {
	p := newPage(printable.All(e, printable.Text))
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s\n\n%s\n", markdownText(p.title), markdownText(strings.Join(p.facts, "\n")))
	if len(p.verdicts) > 0 {
		b.WriteString("\n## Verdicts\n\n")
		if p.preliminary {
			b.WriteString(preliminary + "\n\n")
		}
		markdownTable(b, verdictTable(p.verdicts))
		markdownDetails(b, p.verdicts)
	}
	b.WriteString("\n## Points\n\nIn the table: " + p.reading(legend) + ".\n\n")
	markdownTable(b, p.points)
	if len(p.warnings) > 0 {
		b.WriteString("\n")
		list(b, p.warnings)
	}
	markdownSections(b, p)
	b.WriteString("\n## Where this comes from\n\n")
	for _, row := range p.origin {
		fmt.Fprintf(b, "- %s: %s\n", markdownText(row[0]), markdownText(row[1]))
	}
	if p.gap != "" {
		list(b, []string{p.gap})
	}
	for _, l := range p.leftOut {
		list(b, []string{"Left out: " + l + "."})
	}
	if p.again.spec != "" {
		fence := strings.Repeat("`", 3)
		for strings.Contains(p.again.spec, fence) {
			fence += "`"
		}
		fmt.Fprintf(b, "\n## Run it again\n\n    %s\n\n%s\n\n%syaml\n%s%s\n", p.again.command, p.again.note, fence, p.again.spec, fence)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// verdictTable has one line for each claim.
func verdictTable(claims []results.ClaimResult) table {
	t := table{columns: []column{{"verdict", false}, {"claim", false}, {"statement", false}, {"result", false}}}
	for _, c := range claims {
		word := "**" + c.Verdict + "**"
		if c.Distance != "" {
			word += ": " + c.Distance
		}
		t.rows = append(t.rows, []string{word, c.Name, c.Statement, strip.Sentence(c)})
	}
	return t
}

// markdownDetails folds away what the lines of the claims leave out.
func markdownDetails(b *strings.Builder, claims []results.ClaimResult) {
	b.WriteString("\n<details><summary>Expressions and caveats</summary>\n\n")
	for _, c := range claims {
		fmt.Fprintf(b, "- %s\n", markdownText(c.Name))
		for _, row := range strip.Details(c) {
			fmt.Fprintf(b, "  - %s: %s\n", markdownText(row[0]), markdownCode(row[1]))
		}
		for _, g := range strip.Caveats(c) {
			for _, note := range g.Notes {
				fmt.Fprintf(b, "  - %s: %s\n", markdownText(g.Title), markdownText(note.String()))
			}
		}
	}
	b.WriteString("\n</details>\n")
}

// markdownSections writes the tables after that of the points, each if it has rows.
func markdownSections(b *strings.Builder, p page) {
	section := func(title, note string, t table) {
		if len(t.rows) == 0 {
			return
		}
		fmt.Fprintf(b, "\n## %s\n\n", title)
		if note != "" {
			b.WriteString(markdownText(note) + "\n\n")
		}
		markdownTable(b, t)
	}
	section("Safety", checksLegend, p.checks)
	section("Checks that did not hold", "", p.checked)
	section("Failures", p.reading(failuresLegend), p.failures)
	for _, f := range p.declared {
		fmt.Fprintf(b, "\n## %s\n\n", markdownText(f.title))
		if len(f.numbers.rows) > 0 {
			markdownTable(b, f.numbers)
		}
		if len(f.numbers.rows) > 0 && len(f.notes) > 0 {
			b.WriteString("\n")
		}
		list(b, f.notes)
	}
	section("Capacity", capacityLegend, p.capacity)
	section("Knees and peaks", p.kneeNote, p.knees)
	if len(p.knees.rows) > 0 && len(p.kneeRest) > 0 {
		b.WriteString("\n")
		list(b, p.kneeRest)
	}
	section("Measurements", measurementLegend, p.measured)
	if len(p.lacking.rows) > 0 {
		b.WriteString("\n")
		markdownTable(b, p.lacking)
	}
	section("Data sets", datasetsLegend, p.datasets)
	section("Network", p.netNote, p.network)
	section("Faults", faultsLegend, p.faults)
	section("Recovery", recoveryLegend, p.recovery)
	if len(p.recovery.rows) > 0 && len(p.recNotes) > 0 {
		b.WriteString("\n")
		list(b, p.recNotes)
	}
	section("Resources", resourceLegend, p.used)
	section("Balance", balanceLegend, p.balance)
	section("Script", sessionsLegend, p.sessions)
	section(changesTitle, "", p.changes)
	section("Excluded trials", "", p.excluded)
	section("Collected files", collectedLegend, p.kept)
	section("Every trial", trialsLegend, p.trials)
}

func list(b *strings.Builder, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", markdownText(l))
	}
}

// markdownText is text in which nothing is an element of HTML.
func markdownText(text string) string { return element.ReplaceAllString(text, "&lt;$1") }

// element is how an element, a comment or a declaration of HTML begins. Other < are just that.
var element = regexp.MustCompile(`<([A-Za-z/!?])`)

// markdownCode is a text as code, whatever backticks it has.
func markdownCode(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) == 1 {
		return fence + text + fence
	}
	return fence + " " + text + " " + fence
}

// markdownTable writes a table; text in cells cannot end a cell or a line, and is no HTML.
func markdownTable(b *strings.Builder, t table) {
	cell := strings.NewReplacer("|", "\\|", "\r\n", " ", "\n", " ")
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + markdownText(cell.Replace(c)) + " |")
		}
		b.WriteString("\n")
	}
	line(names(t.columns))
	b.WriteString("|")
	for _, c := range t.columns {
		if c.numeric {
			b.WriteString("---:|")
		} else {
			b.WriteString("---|")
		}
	}
	b.WriteString("\n")
	for _, row := range t.rows {
		line(row)
	}
}
