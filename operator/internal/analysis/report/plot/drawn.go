package plot

import (
	"html/template"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/results"
)

// escaped marks a picture as HTML: the function that draws it escapes every text in it.
func escaped(svg string) template.HTML { return template.HTML(svg) } // #nosec G203 -- who draws it escapes

// Drawn is a plot on a page.
type Drawn struct {
	Title string
	// Says is the caption after the title: what was measured.
	Says string
	SVG  template.HTML
	// file is the name of its file, without kind and number. Empty: after the title.
	file string
}

func drawDeclared(p document.DeclaredPlot, id string) string {
	if p.Curves != nil {
		return drawLines(*p.Curves, id)
	}
	return drawBars(*p.Bars, id)
}

// DrawnDeclared draws one plot of a declared figure for a page.
func DrawnDeclared(e results.Experiment, f document.DeclaredFigure, p document.DeclaredPlot, id string) Drawn {
	return Drawn{Title: f.TitleOf(p), Says: p.Says(e), SVG: escaped(drawDeclared(p, id))}
}
