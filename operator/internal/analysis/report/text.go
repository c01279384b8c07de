package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

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
	p := newPage(printable.All(e, printable.Text))
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s\n", p.title)
	for _, f := range p.facts {
		wrap(b, o.Width, "", f)
	}
	textVerdicts(b, o, p)
	heading(b, "Points")
	textTable(b, p.points)
	wrap(b, o.Width, "", "In the table: "+p.reading(legend)+".")
	for _, note := range p.warnings {
		wrap(b, o.Width, "", note)
	}
	textSection(b, o.Width, "Safety", p.checks, checksLegend)
	textSection(b, o.Width, "Checks that did not hold", p.checked)
	textSection(b, o.Width, "Failures", p.failures, p.reading(failuresLegend))
	textDeclared(b, o.Width, p)
	textSection(b, o.Width, "Capacity", p.capacity, capacityLegend)
	textSection(b, o.Width, "Knees and peaks", p.knees, append([]string{p.kneeNote}, p.kneeRest...)...)
	textSection(b, o.Width, "Measurements", p.measured, measurementLegend)
	textSection(b, o.Width, "Not measured", p.lacking)
	textSection(b, o.Width, "Data sets", p.datasets, datasetsLegend)
	textSection(b, o.Width, "Network", p.network, p.netNote)
	textSection(b, o.Width, "Faults", p.faults, faultsLegend)
	textSection(b, o.Width, "Recovery", p.recovery, append([]string{recoveryLegend}, p.recNotes...)...)
	textSection(b, o.Width, "Resources", p.used, resourceLegend)
	textSection(b, o.Width, "Balance", p.balance, balanceLegend)
	textSection(b, o.Width, "Script", p.sessions, sessionsLegend)
	textSection(b, o.Width, changesTitle, p.changes)
	textSection(b, o.Width, "Excluded trials", p.excluded)
	textSection(b, o.Width, "Collected files", p.kept, collectedLegend)
	textOrigin(b, o.Width, p)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func textVerdicts(b *strings.Builder, o TextOptions, p page) {
	if len(p.verdicts) == 0 {
		return
	}
	heading(b, "Verdicts")
	indent, drawn := strings.Repeat(" ", strip.WordWidth+2), false
	if p.preliminary {
		wrap(b, o.Width, "", preliminary)
	}
	for _, c := range p.verdicts {
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
func textDeclared(b *strings.Builder, width int, p page) {
	for _, f := range p.declared {
		heading(b, f.title)
		if len(f.numbers.rows) > 0 {
			textTable(b, f.numbers)
		}
		for _, note := range f.notes {
			wrap(b, width, "", note)
		}
	}
}

func textOrigin(b *strings.Builder, width int, p page) {
	heading(b, "Where this comes from")
	widest := 11
	for _, row := range p.origin {
		widest = max(widest, len(row[0]))
	}
	for _, row := range p.origin {
		fmt.Fprintf(b, "%-*s %s\n", widest, row[0], row[1])
	}
	if p.gap != "" {
		wrap(b, width, "", p.gap)
	}
	for _, l := range p.leftOut {
		wrap(b, width, "", "Left out: "+l+".")
	}
}

// textSection writes a table that has rows, and what its reader must know of it.
func textSection(b *strings.Builder, width int, title string, t table, notes ...string) {
	if len(t.rows) == 0 {
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
func textTable(b *strings.Builder, t table) {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	line := func(cells []string) {
		var l strings.Builder
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.columns[i].numeric {
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
	line(names(t.columns))
	for _, row := range t.rows {
		line(row)
	}
}

func names(columns []column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.name
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
