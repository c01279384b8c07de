package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// Pair is a plot of the measurements beside the same plot of the source's numbers. Each has the
// scales that it would have alone.
type Pair struct {
	Ours, Paper Picture
	// Caption says what was measured, and Source who reports the other plot's numbers.
	Caption, Source string
	// Form has a row for each part of the form: its name, the source's, ours.
	Form [][3]string
}

// SideBySide are the plots of curves and bars of which the source has numbers, in the page's order.
func SideBySide(e results.Experiment) (pairs []Pair, err error) {
	type half struct {
		svg  func(id string) string
		form [][2]string
	}
	add := func(title, says string, ours, paper half) {
		if err != nil || paper.svg == nil {
			return
		}
		p := Pair{Caption: says, Source: sourceName(e)}
		name := fileName(title)
		if p.Ours, err = newPicture(name+"-ours", title, ours.svg("ours-"+name)); err != nil {
			return
		}
		if p.Paper, err = newPicture(name+"-paper", title, paper.svg("paper-"+name)); err != nil {
			return
		}
		for i, row := range paper.form {
			p.Form = append(p.Form, [3]string{row[0], row[1], ours.form[i][1]})
		}
		pairs = append(pairs, p)
	}
	curves, _ := plots(e)
	for i, p := range curves {
		if strings.Contains(p.title, inThePaper) {
			continue
		}
		own, theirs := p.split()
		if i+1 < len(curves) && curves[i+1].key() == p.key() { // apart already
			own, theirs = p, curves[i+1]
		}
		if len(theirs.curves) > 0 && len(own.curves) > 0 {
			add(p.title, captionOf(e), half{func(id string) string { return own.svg(id) }, own.form()}, half{func(id string) string { return theirs.svg(id) }, theirs.form()})
		}
	}
	bars, _ := barPlots(e)
	for _, p := range bars {
		if theirs := p.ofTheSource(e); len(theirs.bars) > 0 && !strings.Contains(p.title, inThePaper) {
			own := p.ours()
			add(p.title, captionOf(e), half{func(id string) string { return own.svg(id) }, own.form()}, half{func(id string) string { return theirs.svg(id) }, theirs.form()})
		}
	}
	return pairs, err
}

// ours are the bars without the source's values.
func (p barPlot) ours() barPlot {
	p.bars = slices.Clone(p.bars)
	for i := range p.bars {
		p.bars[i].hasPaper, p.bars[i].paper, p.bars[i].paperParts = false, 0, nil
	}
	return p
}

// ofTheSource has a bar for each value that the source reports of the metric, measured or not.
func (p barPlot) ofTheSource(e results.Experiment) barPlot {
	theirs := p
	theirs.bars, theirs.withN = nil, false
	var series []string
	for _, s := range e.Reported {
		f, known := factor(s)
		if !known || metricOfSeries(s) != p.metrics[0] {
			continue
		}
		for i, x := range s.X {
			coordinates := map[string]string{s.Axis: x}
			for axis, value := range s.At {
				coordinates[axis] = value
			}
			b := barNamed(e, results.PointResult{Coordinates: coordinates})
			b.name = cmp.Or(b.name, x)
			if b.style = slices.Index(axisValues(e, p.axis), b.name); b.style < 0 { // a variant that was not measured
				b.style = len(axisValues(e, p.axis)) + len(theirs.bars)
			}
			b.style %= manyCurves
			b.mean = plotPoint{y: s.Y[i] * f, yLow: s.Y[i] * f, yHigh: s.Y[i] * f}
			theirs.bars = append(theirs.bars, b)
			series = append(series, s.Name)
		}
	}
	if len(barNames(theirs.bars)) < len(theirs.bars) { // several series report the same variants
		for i := range theirs.bars {
			theirs.bars[i].group = series[i]
		}
	}
	return theirs
}

// barNames bars are their names, each once.
func barNames(bars []bar) map[string]bool {
	all := map[string]bool{}
	for _, b := range bars {
		all[b.group+", "+b.name] = true
	}
	return all
}

func axisValues(e results.Experiment, name string) []string {
	for _, a := range e.Axes {
		if a.Name == name {
			return a.Values
		}
	}
	return nil
}

// scaleText says how an axis is drawn.
func scaleText(low, high float64, log bool) string {
	kind := "linear"
	if log {
		kind = "logarithmic"
	}
	return fmt.Sprintf("%s to %s, %s", tick(low), tick(high), kind)
}

// form says how curves are drawn.
func (p plot) form() [][2]string {
	s := p.scale()
	var names, points []string
	trials, spread := 0, "none"
	for _, c := range p.curves {
		names = append(names, c.legend())
		points = append(points, strconv.Itoa(len(c.points)))
		for i, pt := range c.points {
			trials = max(trials, len(pt.trials))
			if pt.intervalsToo {
				spread = "95% interval of the mean, as whiskers"
				if c.band && len(c.points) >= leastBand && i > 0 {
					spread = "95% interval of the mean, as a band"
				}
			}
		}
	}
	return append([][2]string{
		{p.xLabel, scaleText(s.xMin, s.xMax, s.logX)}, {p.yLabel, scaleText(s.yMin, s.yMax, s.logY)},
		{"curves, in order", strings.Join(names, ", ")}, {"points of each curve", strings.Join(points, ", ")},
	}, spreadOf(spread, trials)...)
}

func spreadOf(spread string, trials int) [][2]string {
	each := "none: a mean alone"
	if trials > 0 {
		each = "up to " + strconv.Itoa(trials) + " at a point, each a dot"
	}
	return [][2]string{{"error bars", spread}, {"trials", each}}
}

// form says how bars are drawn.
func (p barPlot) form() [][2]string {
	least, most := 0.0, roundUp(p.extent())
	if p.log() {
		least, most = niceBelow(slices.Min(p.values())), niceAbove(p.extent())
	}
	var names []string
	trials, spread := 0, "none"
	for _, b := range p.bars {
		names = append(names, strings.TrimPrefix(b.group+", "+b.name, ", "))
		trials = max(trials, len(b.mean.trials))
		if b.mean.intervalsToo {
			spread = "95% interval of the mean, as a line"
		}
	}
	return append([][2]string{{p.xLabel, scaleText(least, most, p.log())}, {"bars, in order", strings.Join(names, "; ")}}, spreadOf(spread, trials)...)
}
