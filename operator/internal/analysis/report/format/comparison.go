package format

import (
	"fmt"
	"io"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
)

// ComparisonText writes a comparison for a terminal.
func ComparisonText(w io.Writer, c model.Comparison, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	p := document.NewComparisonPage(c)
	b := &strings.Builder{}
	for _, f := range p.Facts {
		wrap(b, o.Width, "", f)
	}
	if len(p.Rows.Rows) > 0 {
		b.WriteString("\n")
		textTable(b, p.Rows)
		wrap(b, o.Width, "", document.ComparisonLegend)
	}
	for _, n := range p.Notes {
		wrap(b, o.Width, "", n)
	}
	if len(p.Origins.Rows) > 0 {
		heading(b, "What else differs")
		textTable(b, p.Origins)
	}
	return writeComparison(w, b.String())
}

// ComparisonMarkdown writes a comparison as GitHub's Markdown.
func ComparisonMarkdown(w io.Writer, c model.Comparison) error {
	p := document.NewComparisonPage(c)
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s against %s\n\n", c.B.Name, c.A.Name)
	list(b, p.Facts)
	if len(p.Rows.Rows) > 0 {
		fmt.Fprintf(b, "\n## Points\n\n%s\n\n", document.ComparisonLegend)
		markdownTable(b, p.Rows)
	}
	if len(p.Notes) > 0 {
		b.WriteString("\n")
		list(b, p.Notes)
	}
	if len(p.Origins.Rows) > 0 {
		b.WriteString("\n## What else differs\n\n")
		markdownTable(b, p.Origins)
	}
	return writeComparison(w, b.String())
}

func writeComparison(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}
