package report

import (
	"fmt"
	"io"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/printable"
)

// LaTeX writes the verdicts, the points and what is derived from them as tables of LaTeX's package
// booktabs, a float each, to be taken with \input. Text of claims and names is escaped.
func LaTeX(w io.Writer, e results.Experiment) error {
	p := newPage(e)
	b := &strings.Builder{}
	fmt.Fprintf(b, "%% %s\n%% %s\n%% \\usepackage{booktabs}\n", strings.Join(strings.Fields(p.title), " "), strings.Join(p.facts, " "))
	if len(p.verdicts) > 0 {
		t := table{columns: []column{{"claim", false}, {"statement", false}, {"verdict", false}, {"result", false}}}
		for _, c := range p.verdicts {
			word := spaced(c.Verdict)
			if c.Distance != "" {
				word += ": " + c.Distance
			}
			t.rows = append(t.rows, []string{c.Name, c.Statement, word, strip.Sentence(c)})
		}
		latexTable(b, e.Name, "verdicts", verdictsOf(e)+".", t)
	}
	latexTable(b, e.Name, "points", "Points of "+e.Name+": "+p.reading(legend)+".", p.points)
	for _, f := range p.declared {
		latexTable(b, e.Name, "figure-"+f.name, f.title+".", f.numbers)
	}
	latexTable(b, e.Name, "capacity", "Capacity of "+e.Name+".", p.capacity)
	latexTable(b, e.Name, "knees", "Knees and peaks of "+e.Name+".", p.knees)
	latexTable(b, e.Name, "recovery", "Recovery in "+e.Name+".", p.recovery)
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
func latexTable(b *strings.Builder, experiment, kind, caption string, t table) {
	if len(t.rows) == 0 {
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
	for i, c := range t.columns {
		if !c.numeric && longestCell(t, i) > longestTeXCell {
			sentences++
		}
	}
	for i, c := range t.columns {
		switch {
		case c.numeric:
			columns.WriteByte('r')
		case longestCell(t, i) > longestTeXCell:
			fmt.Fprintf(&columns, `p{%.2f\linewidth}`, min(widestParagraph, paragraphs/float64(sentences)))
		default:
			columns.WriteByte('l')
		}
	}
	fmt.Fprintf(b, "\n\\begin{table}\n  \\caption{%s}\\label{tab:%s-%s}\n  \\centering\\small\n  \\begin{tabular}{%s}\n    \\toprule\n", printable.TeX(caption), experiment, kind, columns.String())
	line(names(t.columns))
	b.WriteString("    \\midrule\n")
	for _, row := range t.rows {
		line(row)
	}
	b.WriteString("    \\bottomrule\n  \\end{tabular}\n\\end{table}\n")
}

func longestCell(t table, column int) int {
	longest := 0
	for _, row := range t.rows {
		longest = max(longest, len([]rune(row[column])))
	}
	return longest
}
