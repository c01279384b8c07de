package plot

import (
	"fmt"
	"html/template"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/results"
)

// Style is the stylesheet of the report's page and of the pictures in it.
func Style() string { return PageStyle }

// OverTimeSVG draws throughput and latency over time as the report's page does, for a page with its
// Style. id is unique in the page.
func OverTimeSVG(s results.PointSeries, id, name string) template.HTML {
	return escaped(timePlot(s, id, name))
}

// LivePlot is a plot of the report's page.
type LivePlot struct {
	Title string
	SVG   template.HTML
}

// CurvePlots are the report's plots of curves, or bars of named variants, and the figures that the
// experiment declares. They show the trials so far, beside the paper's numbers.
func CurvePlots(e results.Experiment) []LivePlot {
	lines, _ := DrawnLines(e, "live")
	var all []LivePlot
	for _, p := range lines {
		all = append(all, LivePlot{p.Title, p.SVG})
	}
	for _, p := range DrawnSearches(e, "livesearch") {
		all = append(all, LivePlot{p.Title, p.SVG})
	}
	bars, _ := DrawnBars(e, "livebar")
	for _, p := range bars {
		all = append(all, LivePlot{p.Title, p.SVG})
	}
	for i, f := range document.DeclaredFigures(e) {
		for k, p := range f.Plots {
			all = append(all, LivePlot{f.TitleOf(p), escaped(drawDeclared(p, fmt.Sprintf("livefigure%d-%d", i, k)))})
		}
	}
	return all
}
