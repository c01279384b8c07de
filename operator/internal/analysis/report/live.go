package report

import (
	"fmt"
	"html/template"

	"assay.dev/assay/operator/internal/results"
)

// Style is the stylesheet of the report's page and of the pictures in it.
func Style() string { return pageStyle }

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
// experiment declares, beside the paper's, of the trials that are done so far.
func CurvePlots(e results.Experiment) []LivePlot {
	lines, _ := htmlLines(e, "live")
	var all []LivePlot
	for _, p := range lines {
		all = append(all, LivePlot{p.Title, p.SVG})
	}
	for _, p := range htmlSearches(e, "livesearch") {
		all = append(all, LivePlot{p.Title, p.SVG})
	}
	bars, _ := htmlBars(e, "livebar")
	for _, p := range bars {
		all = append(all, LivePlot{p.Title, p.SVG})
	}
	for i, f := range declaredFigures(e) {
		for k, p := range f.plots {
			all = append(all, LivePlot{f.titleOf(p), escaped(p.svg(fmt.Sprintf("livefigure%d-%d", i, k)))})
		}
	}
	return all
}
