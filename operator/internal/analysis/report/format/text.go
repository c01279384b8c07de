package format

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/printable"
)

// TextOptions lay text out.
type TextOptions struct {
	// Width to which sentences are wrapped; tables are as wide as they are. 0: 100.
	Width int
	// Color marks verdicts with the terminal's colours.
	Color bool
	// Pictures draw each claim's strip in a line, in characters beyond ASCII.
	Pictures bool
}

// Text writes a report for a terminal.
func Text(w io.Writer, e results.Experiment, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	p := document.NewPage(printable.All(e, printable.Text))
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s\n", p.Title)
	for _, f := range p.Facts {
		wrap(b, o.Width, "", f)
	}
	textVerdicts(b, o, p)
	heading(b, "Points")
	textTable(b, p.Points)
	wrap(b, o.Width, "", "In the table: "+p.Reading(legend)+".")
	for _, note := range p.Warnings {
		wrap(b, o.Width, "", note)
	}
	textSection(b, o.Width, "Safety", p.Checks, document.ChecksLegend)
	textSection(b, o.Width, "Checks that did not hold", p.Checked)
	textSection(b, o.Width, "Failures", p.Failures, p.Reading(document.FailuresLegend))
	textDeclared(b, o.Width, p)
	textSection(b, o.Width, "Capacity", p.Capacity, document.CapacityLegend)
	textSection(b, o.Width, "Knees and peaks", p.Knees, append([]string{p.KneeNote}, p.KneeRest...)...)
	textSection(b, o.Width, "Measurements", p.Measured, document.MeasurementLegend)
	textSection(b, o.Width, "Not measured", p.Lacking)
	textSection(b, o.Width, "Data sets", p.Datasets, document.DatasetsLegend)
	textSection(b, o.Width, "Network", p.Network, p.NetNote)
	textSection(b, o.Width, "Faults", p.Faults, document.FaultsLegend)
	textSection(b, o.Width, "Recovery", p.Recovery, append([]string{document.RecoveryLegend}, p.RecNotes...)...)
	textSection(b, o.Width, "Resources", p.Used, document.ResourceLegend)
	textSection(b, o.Width, "Balance", p.Balance, document.BalanceLegend)
	textSection(b, o.Width, "Use over time", p.Uses, document.UsesLegend)
	textSection(b, o.Width, "Latency by kind, node and region", p.LatencyBy, document.LatencyByLegend)
	textSection(b, o.Width, "Script", p.Sessions, document.SessionsLegend)
	textSection(b, o.Width, document.ChangesTitle, p.Changes)
	textSection(b, o.Width, "Flame graphs", p.FlameGraphs, document.FlameGraphsLegend)
	textSection(b, o.Width, "Excluded trials", p.Excluded)
	textSection(b, o.Width, "Collected files", p.Kept, document.CollectedLegend)
	textOrigin(b, o.Width, p)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func textVerdicts(b *strings.Builder, o TextOptions, p document.Page) {
	if len(p.Verdicts) == 0 {
		return
	}
	heading(b, "Verdicts")
	indent, drawn := strings.Repeat(" ", strip.WordWidth+2), false
	if p.Preliminary {
		wrap(b, o.Width, "", preliminary)
	}
	for _, c := range p.Verdicts {
		fmt.Fprintf(b, "%s  %s\n", strip.Word(c.Verdict, o.Color), c.Name)
		for _, sentence := range []string{c.Statement, c.Distance, strip.Sentence(c)} {
			wrap(b, o.Width, indent, sentence)
		}
		if o.Pictures {
			for _, line := range strip.Lines(c, o.Width-len(indent)) {
				fmt.Fprintf(b, "%s%s\n", indent, line)
				drawn = true
			}
		}
		for _, row := range strip.Details(c) {
			wrap(b, o.Width, indent, row[0]+": "+row[1])
		}
		for _, g := range strip.Caveats(c) {
			for _, note := range g.Notes {
				wrap(b, o.Width, indent, g.Title+": "+note.String())
			}
		}
	}
	if drawn {
		wrap(b, o.Width, "", strip.LineLegend+".")
	}
}

// textDeclared writes the numbers of the figures that the experiment declares.
func textDeclared(b *strings.Builder, width int, p document.Page) {
	for _, f := range p.Declared {
		heading(b, f.Title)
		if len(f.Numbers.Rows) > 0 {
			textTable(b, f.Numbers)
		}
		for _, note := range f.Notes {
			wrap(b, width, "", note)
		}
	}
}

func textOrigin(b *strings.Builder, width int, p document.Page) {
	heading(b, "Where this comes from")
	widest := 11
	for _, row := range p.Origin {
		widest = max(widest, len(row[0]))
	}
	for _, row := range p.Origin {
		fmt.Fprintf(b, "%-*s %s\n", widest, row[0], row[1])
	}
	if p.Gap != "" {
		wrap(b, width, "", p.Gap)
	}
	for _, l := range p.LeftOut {
		wrap(b, width, "", "Left out: "+l+".")
	}
}

// textSection writes a table that has rows, and what its reader must know of it.
func textSection(b *strings.Builder, width int, title string, t document.Table, notes ...string) {
	if len(t.Rows) == 0 {
		return
	}
	heading(b, title)
	textTable(b, t)
	for _, note := range notes {
		wrap(b, width, "", note)
	}
}

func heading(b *strings.Builder, text string) { fmt.Fprintf(b, "\n%s\n\n", text) }

// legend says how to read the table of points.
const legend = "mean over n valid trials (of all that ran, where some are excluded); of 2 to 4 (least to greatest), of 5 and more ± half-width of the 95% interval; p50, p99: the mean over trials of each trial's own percentile; ratio = measured / paper; failed: requests with an error, without an answer in time, or never sent"

// preliminary stands above the verdicts of an experiment that still runs.
const preliminary = "Preliminary: the experiment still runs, and each verdict may change."

// textTable writes a table with aligned columns, two spaces between them and none at the end of a
// line.
func textTable(b *strings.Builder, t document.Table) {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Name)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	line := func(cells []string) {
		var l strings.Builder
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.Columns[i].Numeric {
				cell = pad + cell
			} else {
				cell += pad
			}
			if i > 0 {
				l.WriteString("  ")
			}
			l.WriteString(cell)
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(names(t.Columns))
	for _, row := range t.Rows {
		line(row)
	}
}

func names(columns []document.Column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.Name
	}
	return out
}

// wrap writes a sentence in lines of at most width characters, each after indent. A longer word has
// a line of its own.
func wrap(b *strings.Builder, width int, indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		switch {
		case line == indent:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	if line != indent {
		b.WriteString(line + "\n")
	}
}
