package plot

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// The headline is the one figure of the first screen. It has the source's numbers beside the
// measured ones, in one frame or in two with scales of their own (document.LinePlot). It also says
// by how many times they differ. If the source reports no number of a figure, it is the
// experiment's main figure.

// Headline chooses the figure.
func Headline(e results.Experiment) (drawn []Drawn, says string) {
	const id = "headline"
	if c, ok := document.CapacityPlots(e); ok {
		return drawnPlots(e, c[:1], drawSearch, id), ""
	}
	curves, _ := document.LinePlots(e)
	if i := document.BestOf(curves, document.LinePlot.OfPaper, document.LinePlot.Key); i >= 0 {
		return drawnPlots(e, document.SameKey(curves, i, document.LinePlot.Key), drawLines, id), document.TimesThePaper(e, curves[i].Metrics...)
	}
	bars, _ := document.BarPlots(e)
	if i := document.BestOf(bars, document.BarPlot.OfPaper, document.BarPlot.Key); i >= 0 {
		return drawnPlots(e, document.SameKey(bars, i, document.BarPlot.Key), drawBars, id), document.TimesThePaper(e, bars[i].Metrics...)
	}
	return mainFigure(e, curves, bars, id)
}

// mainFigure is shown if no number of the source is drawn. The first figure that the experiment
// declares has precedence. Then come bars of the metric of its claims, the effect of faults over
// time, latency over load, and other bars.
func mainFigure(e results.Experiment, curves []document.LinePlot, bars []document.BarPlot, id string) (drawn []Drawn, says string) {
	for _, f := range document.DeclaredFigures(e) {
		for _, p := range f.Plots {
			return []Drawn{{Title: f.TitleOf(p), Says: document.CaptionOf(e), SVG: escaped(drawDeclared(p, id))}}, ""
		}
	}
	if i := slices.IndexFunc(bars, func(p document.BarPlot) bool { return slices.Contains(p.Metrics, document.ClaimedMetric(e)) }); i >= 0 {
		return drawnPlots(e, document.SameKey(bars, i, document.BarPlot.Key), drawBars, id), ""
	}
	for _, s := range e.Series {
		if len(s.Throughput) > 0 {
			name := cmp.Or(model.At(e.Axes, s.Coordinates), "the only point")
			return []Drawn{{Title: "Over time, " + name, Says: overTimeCaption(s), SVG: escaped(timePlot(s, id, name))}}, ""
		}
	}
	switch {
	case len(curves) > 2 && curves[2].Key() == document.LatencyAgainstThroughput:
		return drawnPlots(e, curves[2:3], drawLines, id), ""
	case len(curves) > 0:
		return drawnPlots(e, curves[:1], drawLines, id), ""
	case len(bars) > 0:
		return drawnPlots(e, bars[:1], drawBars, id), ""
	}
	return nil, ""
}

// anyPlot is a plot that the page draws.
type anyPlot interface {
	Heading() string
	Says(results.Experiment) string
}

// drawnPlots are plots with their captions, drawn by svg. Their ids begin with id.
func drawnPlots[P anyPlot](e results.Experiment, plots []P, svg func(p P, id string) string, id string) (all []Drawn) {
	for i, p := range plots {
		all = append(all, Drawn{Title: p.Heading(), Says: p.Says(e), SVG: escaped(svg(p, fmt.Sprintf("%s%d", id, i)))})
	}
	return all
}
