package format

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/printable"
)

// Markdown writes a report as GitHub's Markdown.
func Markdown(w io.Writer, e results.Experiment) error {
	p := document.NewPage(printable.All(e, printable.Text))
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s\n\n%s\n", markdownText(p.Title), markdownText(strings.Join(p.Facts, "\n")))
	if len(p.Verdicts) > 0 {
		b.WriteString("\n## Verdicts\n\n")
		if p.Preliminary {
			b.WriteString(preliminary + "\n\n")
		}
		markdownTable(b, document.VerdictTable(p.Verdicts))
		markdownDetails(b, p.Verdicts)
	}
	b.WriteString("\n## Points\n\nIn the table: " + p.Reading(legend) + ".\n\n")
	markdownTable(b, p.Points)
	if len(p.Warnings) > 0 {
		b.WriteString("\n")
		list(b, p.Warnings)
	}
	markdownSections(b, p)
	b.WriteString("\n## Where this comes from\n\n")
	for _, row := range p.Origin {
		fmt.Fprintf(b, "- %s: %s\n", markdownText(row[0]), markdownText(row[1]))
	}
	if p.Gap != "" {
		list(b, []string{p.Gap})
	}
	for _, l := range p.LeftOut {
		list(b, []string{"Left out: " + l + "."})
	}
	if p.Again.Spec != "" {
		fence := strings.Repeat("`", 3)
		for strings.Contains(p.Again.Spec, fence) {
			fence += "`"
		}
		fmt.Fprintf(b, "\n## Run it again\n\n    %s\n\n%s\n\n%syaml\n%s%s\n", p.Again.Command, p.Again.Note, fence, p.Again.Spec, fence)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
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
func markdownSections(b *strings.Builder, p document.Page) {
	section := func(title, note string, t document.Table) {
		if len(t.Rows) == 0 {
			return
		}
		fmt.Fprintf(b, "\n## %s\n\n", title)
		if note != "" {
			b.WriteString(markdownText(note) + "\n\n")
		}
		markdownTable(b, t)
	}
	section("Safety", document.ChecksLegend, p.Checks)
	section("Checks that did not hold", "", p.Checked)
	section("Failures", p.Reading(document.FailuresLegend), p.Failures)
	for _, f := range p.Declared {
		fmt.Fprintf(b, "\n## %s\n\n", markdownText(f.Title))
		if len(f.Numbers.Rows) > 0 {
			markdownTable(b, f.Numbers)
		}
		if len(f.Numbers.Rows) > 0 && len(f.Notes) > 0 {
			b.WriteString("\n")
		}
		list(b, f.Notes)
	}
	section("Capacity", document.CapacityLegend, p.Capacity)
	section("Knees and peaks", p.KneeNote, p.Knees)
	if len(p.Knees.Rows) > 0 && len(p.KneeRest) > 0 {
		b.WriteString("\n")
		list(b, p.KneeRest)
	}
	section("Measurements", document.MeasurementLegend, p.Measured)
	if len(p.Lacking.Rows) > 0 {
		b.WriteString("\n")
		markdownTable(b, p.Lacking)
	}
	section("Data sets", document.DatasetsLegend, p.Datasets)
	section("Network", p.NetNote, p.Network)
	section("Faults", document.FaultsLegend, p.Faults)
	section("Recovery", document.RecoveryLegend, p.Recovery)
	if len(p.Recovery.Rows) > 0 && len(p.RecNotes) > 0 {
		b.WriteString("\n")
		list(b, p.RecNotes)
	}
	section("Resources", document.ResourceLegend, p.Used)
	section("Balance", document.BalanceLegend, p.Balance)
	section("Use over time", document.UsesLegend, p.Uses)
	section("Latency by kind, node and region", document.LatencyByLegend, p.LatencyBy)
	section("Script", document.SessionsLegend, p.Sessions)
	section(document.ChangesTitle, "", p.Changes)
	section("Flame graphs", document.FlameGraphsLegend, p.FlameGraphs)
	section("Excluded trials", "", p.Excluded)
	section("Collected files", document.CollectedLegend, p.Kept)
	section("Every trial", document.TrialsLegend, p.Trials)
}

func list(b *strings.Builder, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", markdownText(l))
	}
}

// markdownText is text in which nothing is an element of HTML.
func markdownText(text string) string { return element.ReplaceAllString(text, "&lt;$1") }

// element is how an element, a comment or a declaration of HTML begins. Any other < is text.
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
func markdownTable(b *strings.Builder, t document.Table) {
	cell := strings.NewReplacer("|", "\\|", "\r\n", " ", "\n", " ")
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + markdownText(cell.Replace(c)) + " |")
		}
		b.WriteString("\n")
	}
	line(names(t.Columns))
	b.WriteString("|")
	for _, c := range t.Columns {
		if c.Numeric {
			b.WriteString("---:|")
		} else {
			b.WriteString("---|")
		}
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		line(row)
	}
}
