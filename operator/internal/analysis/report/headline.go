package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// The headline is the one figure of the first screen. It has the source's numbers beside the
// measured ones, in one frame or in two with scales of their own (plot.besideOrApart), and by how
// many times they differ. Where the source reports no number of a figure, it is the experiment's
// main one.

// headline chooses the figure.
func headline(e results.Experiment) (drawn []htmlPlot, says string) {
	const id = "headline"
	if c, ok := capacityPlots(e); ok {
		return htmlPlots(e, c[:1], searchPlot.svg, id), ""
	}
	curves, _ := plots(e)
	if i := bestOf(curves, plot.ofPaper, plot.key); i >= 0 {
		return htmlPlots(e, sameKey(curves, i, plot.key), plot.svg, id), timesThePaper(e, curves[i].metrics...)
	}
	bars, _ := barPlots(e)
	if i := bestOf(bars, barPlot.ofPaper, barPlot.key); i >= 0 {
		return htmlPlots(e, sameKey(bars, i, barPlot.key), barPlot.svg, id), timesThePaper(e, bars[i].metrics...)
	}
	return mainFigure(e, curves, bars, id)
}

// mainFigure is what is shown where no number of the source is drawn. It is the first figure that
// the experiment declares, else what faults did over time, else latency over load, else bars.
func mainFigure(e results.Experiment, curves []plot, bars []barPlot, id string) (drawn []htmlPlot, says string) {
	for _, f := range declaredFigures(e) {
		for _, p := range f.plots {
			return []htmlPlot{{Title: f.titleOf(p), Says: captionOf(e), SVG: escaped(p.svg(id))}}, ""
		}
	}
	for _, s := range e.Series {
		if len(s.Throughput) > 0 {
			name := cmp.Or(at(e.Axes, s.Coordinates), "the only point")
			return []htmlPlot{{Title: "Over time, " + name, Says: overTimeCaption(s), SVG: escaped(timePlot(s, id, name))}}, ""
		}
	}
	switch {
	case len(curves) > 2 && curves[2].key() == against3:
		return htmlPlots(e, curves[2:3], plot.svg, id), ""
	case len(curves) > 0:
		return htmlPlots(e, curves[:1], plot.svg, id), ""
	case len(bars) > 0:
		return htmlPlots(e, bars[:1], barPlot.svg, id), ""
	}
	return nil, ""
}

// bestOf is the first plot with numbers of the source; latency against throughput, which papers
// show, goes before the other two. -1: there is none.
func bestOf[P any](all []P, ofPaper func(P) bool, key func(P) string) int {
	if i := slices.IndexFunc(all, func(p P) bool { return key(p) == against3 && ofPaper(p) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(all, ofPaper)
}

// sameKey are the plots of what the i-th one shows: one, or what was measured and what the source
// reports.
func sameKey[P any](all []P, i int, key func(P) string) (same []P) {
	for _, p := range all {
		if key(p) == key(all[i]) {
			same = append(same, p)
		}
	}
	return same
}

// timesThePaper says by how many times the measured means differ from the source's numbers.
func timesThePaper(e results.Experiment, metrics ...string) string {
	var parts []string
	for _, metric := range metrics {
		var ratios []float64
		for _, p := range e.Points {
			paper, has := paperValue(e, metric, p.Coordinates)
			if a := p.Metrics[metric]; has && paper != 0 && a.N > 0 {
				ratios = append(ratios, a.Mean/paper)
			}
		}
		if len(ratios) == 0 {
			continue
		}
		slices.Sort(ratios)
		text := nameOf(metric) + " "
		if least, most := tick3(ratios[0]), tick3(ratios[len(ratios)-1]); least == most {
			text += least
		} else {
			text += least + " to " + most
		}
		parts = append(parts, fmt.Sprintf("%s times the source's (%s)", text, count(len(ratios), "number")))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Measured: " + strings.Join(parts, "; ") + "."
}

// nameOf a metric in a sentence.
func nameOf(metric string) string {
	for _, m := range shownMetrics {
		if m.metric == metric {
			name, _, _ := strings.Cut(m.name, " ms")
			return strings.TrimSuffix(name, " tx/s")
		}
	}
	return metric
}

// captionOf says of a figure what was measured: how many valid trials, for how long, and of what.
func captionOf(e results.Experiment) string {
	least, most := 0, 0
	for _, p := range e.Points {
		if p.Valid == 0 {
			continue
		}
		if least == 0 || p.Valid < least {
			least = p.Valid
		}
		most = max(most, p.Valid)
	}
	if most == 0 {
		return ""
	}
	trials := count(least, "valid trial")
	if most > least {
		trials = fmt.Sprintf("%d to %s", least, count(most, "valid trial"))
	}
	text := trials + " of each of " + count(len(e.Points), "point")
	if len(e.Points) == 1 {
		text = trials
	}
	if f := e.Fidelity; f != nil {
		var programs []string
		for _, s := range f.Systems {
			if name := strings.TrimSpace(s.Program + " " + s.Version); name != "" && !slices.Contains(programs, name) {
				programs = append(programs, name)
			}
		}
		if len(programs) > 0 {
			text += " of " + strings.Join(programs, ", ")
		}
	}
	if e.Profile != "" {
		text += ", profile " + e.Profile
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// anyPlot is a plot that the page draws.
type anyPlot interface {
	heading() string
	says(results.Experiment) string
}

// htmlPlots are plots with their captions, drawn by svg. Their ids begin with id.
func htmlPlots[P anyPlot](e results.Experiment, plots []P, svg func(p P, id string) string, id string) (all []htmlPlot) {
	for i, p := range plots {
		all = append(all, htmlPlot{Title: p.heading(), Says: p.says(e), SVG: escaped(svg(p, fmt.Sprintf("%s%d", id, i)))})
	}
	return all
}

// against3 is the key of latency against throughput.
const against3 = "Latency against throughput"

// inThePaper ends the title of a plot that has the source's numbers alone.
const inThePaper = " in the paper"

// key is what a plot shows, no matter who measured it.
func (p plot) key() string { return strings.Replace(p.title, inThePaper, "", 1) }

func (p barPlot) key() string { return strings.Replace(p.title, inThePaper, "", 1) }

func (p plot) ofPaper() bool {
	return slices.ContainsFunc(p.curves, func(c curve) bool { return c.paper })
}

func (p barPlot) ofPaper() bool {
	return strings.HasSuffix(p.title, inThePaper) || slices.ContainsFunc(p.bars, func(b bar) bool { return b.hasPaper })
}

func (p plot) heading() string { return p.title }

func (p barPlot) heading() string { return p.title }

// says is a caption.
func (p plot) says(e results.Experiment) string {
	switch {
	case strings.Contains(p.title, inThePaper):
		return sourceCaption(e)
	case p.one != "":
		return captionOf(e)
	}
	text := captionOf(e)
	if slices.ContainsFunc(p.curves, func(c curve) bool { return c.paper }) {
		text += " Dashed, hollow: " + sourceName(e) + "."
	}
	return text
}

func (p barPlot) says(e results.Experiment) string {
	if strings.HasSuffix(p.title, inThePaper) {
		return sourceCaption(e)
	}
	return captionOf(e)
}

func sourceCaption(e results.Experiment) string {
	return "As " + sourceName(e) + " reports it, on a scale of its own."
}

// sourceName is the source with its section.
func sourceName(e results.Experiment) string {
	name := cmp.Or(e.Source["title"], "the source")
	if section := e.Source["section"]; section != "" {
		name += ", " + section
	}
	return name
}
