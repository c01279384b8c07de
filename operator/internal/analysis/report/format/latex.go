package format

import (
	"fmt"
	"io"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/printable"
)

// LaTeX writes the verdicts, the points and what is derived from them as tables of LaTeX's package
// booktabs, a float each, to be taken with \input. Text of claims and names is escaped.
func LaTeX(w io.Writer, e results.Experiment) error {
	p := document.NewPage(e)
	b := &strings.Builder{}
	fmt.Fprintf(b, "%% %s\n%% %s\n%% \\usepackage{booktabs}\n", strings.Join(strings.Fields(p.Title), " "), strings.Join(p.Facts, " "))
	if len(p.Verdicts) > 0 {
		t := document.Table{Columns: []document.Column{{Name: "claim", Numeric: false}, {Name: "statement", Numeric: false}, {Name: "verdict", Numeric: false}, {Name: "result", Numeric: false}}}
		for _, c := range p.Verdicts {
			word := spaced(c.Verdict)
			if c.Distance != "" {
				word += ": " + c.Distance
			}
			t.Rows = append(t.Rows, []string{c.Name, c.Statement, word, strip.Sentence(c)})
		}
		latexTable(b, e.Name, "verdicts", plot.VerdictsOf(e)+".", t)
	}
	latexTable(b, e.Name, "points", "Points of "+e.Name+": "+p.Reading(legend)+".", p.Points)
	for _, f := range p.Declared {
		latexTable(b, e.Name, "figure-"+f.Name, f.Title+".", f.Numbers)
	}
	latexTable(b, e.Name, "capacity", "Capacity of "+e.Name+".", p.Capacity)
	latexTable(b, e.Name, "knees", "Knees and peaks of "+e.Name+".", p.Knees)
	latexTable(b, e.Name, "recovery", "Recovery in "+e.Name+".", p.Recovery)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the tables for LaTeX: %w", err)
	}
	return nil
}

// spaced writes a verdict as words: NotReproduced as "not reproduced".
func spaced(verdict string) string {
	var b strings.Builder
	for i, r := range verdict {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

const (
	// longestTeXCell is the most characters of a column that is no paragraph.
	longestTeXCell = 30
	// paragraphs is the share of the line that columns of sentences have together, and
	// widestParagraph that of one.
	paragraphs      = 0.66
	widestParagraph = 0.45
)

// latexTable writes a float; nothing for a table without rows. A column of sentences is a
// paragraph.
func latexTable(b *strings.Builder, experiment, kind, caption string, t document.Table) {
	if len(t.Rows) == 0 {
		return
	}
	line := func(cells []string) {
		escaped := make([]string, len(cells))
		for i, c := range cells {
			escaped[i] = printable.TeX(c)
		}
		fmt.Fprintf(b, "    %s \\\\\n", strings.Join(escaped, " & "))
	}
	var columns strings.Builder
	sentences := 0
	for i, c := range t.Columns {
		if !c.Numeric && longestCell(t, i) > longestTeXCell {
			sentences++
		}
	}
	for i, c := range t.Columns {
		switch {
		case c.Numeric:
			columns.WriteByte('r')
		case longestCell(t, i) > longestTeXCell:
			fmt.Fprintf(&columns, `p{%.2f\linewidth}`, min(widestParagraph, paragraphs/float64(sentences)))
		default:
			columns.WriteByte('l')
		}
	}
	fmt.Fprintf(b, "\n\\begin{table}\n  \\caption{%s}\\label{tab:%s-%s}\n  \\centering\\small\n  \\begin{tabular}{%s}\n    \\toprule\n", printable.TeX(caption), experiment, kind, columns.String())
	line(names(t.Columns))
	b.WriteString("    \\midrule\n")
	for _, row := range t.Rows {
		line(row)
	}
	b.WriteString("    \\bottomrule\n  \\end{tabular}\n\\end{table}\n")
}

func longestCell(t document.Table, column int) int {
	longest := 0
	for _, row := range t.Rows {
		longest = max(longest, len([]rune(row[column])))
	}
	return longest
}
