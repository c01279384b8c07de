package report

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/capacity"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// A search tries loads near the capacity, some of them once. Means over loads are then no curve:
// their line goes up and down with the luck of single trials. A search measures the probability
// that a trial meets the objective, which falls with the load.

// A searchPlot draws that probability over the load for some searches, by what all their trials
// say. Each trial is above where it met the objective, and below where it did not. A bar at one
// half is the interval of the capacity.
type searchPlot struct {
	title, axis string
	curves      []searchCurve
}

type searchCurve struct {
	name     string
	style    int
	capacity results.Capacity
	search   capacity.Search
	trials   []capacity.Trial
	loads    []float64
	chances  []float64
}

const (
	// searchSteps is at how many loads the probability is drawn.
	searchSteps = 60
	// searchRoom is how far the axis reaches beyond the loads that were tried, by ratio.
	searchRoom = 1.06
	// probabilityLabel is the label of the Y axis.
	probabilityLabel = "P(trial meets the objective)"
	// searchMargin is the part of the frame above 1 and below 0, for the trials.
	searchMargin = 0.16
)

// capacityPlots are the plots of an experiment's searches. False: there is none, or the results
// lack its spec or its trials.
func capacityPlots(e results.Experiment) ([]searchPlot, bool) {
	if len(e.Capacities) == 0 {
		return nil, false
	}
	var spec v1alpha1.ExperimentSpec
	if json.Unmarshal(e.Spec, &spec) != nil {
		return nil, false
	}
	spec = plan.ApplyProfile(spec)
	if !sameSearches(e.Capacities, plan.Capacities(spec, e.Axes, e.Trials)) {
		return nil, false
	}
	searched := e.Capacities[0].Axis
	others := slices.DeleteFunc(slices.Clone(e.Axes), func(a results.Axis) bool { return a.Name == searched || len(a.Values) < 2 })
	var all []searchPlot
	drawn := 0
	for _, j := range plan.JudgedTrials(spec, e.Axes, e.Trials) {
		i := slices.IndexFunc(e.Capacities, func(c results.Capacity) bool { return maps.Equal(c.At, j.At) })
		if i < 0 || len(j.Trials) == 0 {
			continue
		}
		c := searchCurve{name: figureVariant(others, j.At), style: drawn % manyCurves, capacity: e.Capacities[i], search: j.Search, trials: j.Trials}
		if drawn%manyCurves == 0 {
			all = append(all, searchPlot{title: "Capacity", axis: searched})
		}
		last := &all[len(all)-1]
		last.curves = append(last.curves, c)
		drawn++
	}
	for k := range all {
		if len(all) > 1 {
			all[k].title += fmt.Sprintf(" (variants %d to %d of %d)", k*manyCurves+1, k*manyCurves+len(all[k].curves), drawn)
		}
		low, high := all[k].loads()
		for i := range all[k].curves {
			all[k].curves[i].fit(low, high)
		}
	}
	return all, drawn > 0
}

// sameSearches reports whether results have the searches that their trials lead to. Those of an
// earlier version may not: a plot would contradict the table.
func sameSearches(stored, now []results.Capacity) bool {
	return slices.EqualFunc(stored, now, func(a, b results.Capacity) bool {
		return maps.Equal(a.At, b.At) && a.Objective == b.Objective && (a.Capacity == nil) == (b.Capacity == nil) &&
			(a.Capacity == nil || math.Abs(*a.Capacity-*b.Capacity) <= 0.02**a.Capacity)
	})
}

// fit adds the probability at some loads.
func (c *searchCurve) fit(low, high float64) {
	p, err := c.search.Begin()
	if err != nil { // JudgedTrials gives no trials of such a search
		return
	}
	for _, t := range c.trials {
		p.Weigh(t)
	}
	for i := range searchSteps + 1 {
		c.loads = append(c.loads, low*math.Pow(high/low, float64(i)/searchSteps))
	}
	c.chances = p.Chances(c.loads)
}

// loads are the ends of the axis: a little beyond the loads that were tried.
func (p searchPlot) loads() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, c := range p.curves {
		for _, t := range c.trials {
			low, high = min(low, t.Load/searchRoom), max(high, t.Load*searchRoom)
		}
	}
	return low, high
}

func (p searchPlot) heading() string { return p.title }

func (p searchPlot) says(results.Experiment) string {
	text := "Probability that a trial meets the objective (" + p.curves[0].capacity.Objective + "), over " + p.axis + ", after " + count(p.trials(), "trial") + "."
	return text + " Bar: the highest load with its 95% interval. Dots above met the objective, dots below did not."
}

func (p searchPlot) trials() (n int) {
	for _, c := range p.curves {
		n += len(c.trials)
	}
	return n
}

func (p searchPlot) svg(id string) string {
	low, high := p.loads()
	frame := panel{left: frameLeft, top: frameTop, width: frameWidth, height: frameHeight, xMin: low, xMax: high, yMax: 1 + 2*searchMargin, logX: wide([]float64{low, math.Sqrt(low * high), high})}
	y := func(chance float64) float64 { return frame.y(chance + searchMargin) }
	b := &strings.Builder{}
	openSVG(b, id, plotHeight+float64(len(p.curves))*legendLine, p.title+": "+probabilityLabel+" over "+p.axis, p.describe())
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frameLeft, y(v), frameWidth, frameLeft-8, y(v)+4, tick(v))
	}
	for _, v := range frame.xTicks() {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frame.x(v), frameTop, frameHeight, frame.x(v), frameTop+frameHeight+18, tick(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frameLeft+frameWidth/2, plotHeight-14, html.EscapeString(axisText(p.axis, frame.logX)))
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle"%s>%s</text>`+"\n", frameTop+frameHeight/2, p.data(frame), probabilityLabel)
	row := searchMargin * frameHeight / (1 + 2*searchMargin) / float64(len(p.curves)+1)
	for i, c := range p.curves {
		c.draw(b, frame, y, row*float64(i+1))
		at := plotHeight + float64(i)*legendLine
		fmt.Fprintf(b, `<g class="c%d"><path class="line" d="M%.1f,%.1fh26"/>`, c.style, frameLeft-20, at)
		dot(b, c.style, false, frameLeft-7, at, "")
		fmt.Fprintf(b, `</g><text x="%.1f" y="%.1f">%s</text>`+"\n", frameLeft+12, at+4, html.EscapeString(shortLegend(c.legend())))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// data of the frame: the probability has a margin above 1 and below 0.
func (p searchPlot) data(frame panel) string {
	frame.yMax = 1 + searchMargin
	return frameData(frame, -searchMargin, false, p.axis, probabilityLabel)
}

func (c searchCurve) legend() string { return c.name + ": " + capacityText(c.capacity) }

// draw the curve, the interval, and the trials so far above 1 and below 0.
func (c searchCurve) draw(b *strings.Builder, frame panel, y func(float64) float64, away float64) {
	fmt.Fprintf(b, `<g class="c%d"><path class="line"%s d="%s"/>`+"\n", c.style, data("name", c.name),
		pathOf(len(c.loads), func(int) bool { return true }, func(i int) (float64, float64) { return frame.x(c.loads[i]), y(c.chances[i]) }))
	for _, t := range c.trials {
		at := y(0) + away
		if t.Met {
			at = y(1) - away
		}
		fmt.Fprintf(b, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, frame.x(t.Load), at, trialDot)
	}
	if k := c.capacity; k.Capacity != nil && k.Low != nil && k.High != nil {
		low, high, middle := frame.x(*k.Low), frame.x(*k.High), y(0.5)
		fmt.Fprintf(b, `<path class="line" d="M%.1f,%.1fH%.1fM%.1f,%.1fv12M%.1f,%.1fv12"/>`+"\n", low, middle, high, low, middle-6, high, middle-6)
		dot(b, c.style, false, frame.x(*k.Capacity), middle, html.EscapeString(c.legend()))
	}
	b.WriteString("</g>\n")
}

func (p searchPlot) describe() string {
	var parts []string
	for _, c := range p.curves {
		met := 0
		for _, t := range c.trials {
			if t.Met {
				met++
			}
		}
		last := len(c.chances) - 1
		parts = append(parts, fmt.Sprintf("%s; %d of %s met the objective; the probability falls from %.2f at %s to %.2f at %s.",
			c.legend(), met, count(len(c.trials), "trial"), c.chances[0], tick3(c.loads[0]), c.chances[last], tick3(c.loads[last])))
	}
	return strings.Join(parts, " ")
}

// figure is the plot as data: of each search the probability, the trials by load, and the capacity.
func (p searchPlot) figure(name string) Figure {
	f := Figure{Name: name, Title: p.title, X: FigureAxis{Label: p.axis, Tight: true}, Y: FigureAxis{Label: probabilityLabel}}
	for _, c := range p.curves {
		of := c.name + ": "
		if len(p.curves) == 1 {
			of = ""
		}
		line := FigureCurve{Name: of + "probability", Style: c.style, Color: curveColor(c.style), Line: true, Search: true}
		for i, x := range c.loads {
			line.Points = append(line.Points, FigurePoint{X: x, Y: c.chances[i]})
		}
		dots := FigureCurve{Name: of + "share of trials", Style: c.style, Color: line.Color, Dots: true, Search: true}
		for _, load := range loadsOf(c.trials) {
			met, of := 0.0, 0.0
			for _, t := range c.trials {
				if t.Load == load {
					of++
					if t.Met {
						met++
					}
				}
			}
			dots.Points = append(dots.Points, FigurePoint{X: load, Y: met / of})
		}
		f.Curves = append(f.Curves, line, dots)
		if k := c.capacity; k.Capacity != nil && k.Low != nil && k.High != nil {
			f.Curves = append(f.Curves, FigureCurve{Name: of + "95% interval", Style: c.style + 1, Color: line.Color, Dots: true, Search: true,
				Points: []FigurePoint{{X: *k.Capacity, Y: 0.5, XLow: *k.Low, XHigh: *k.High, YLow: 0.5, YHigh: 0.5, Interval: true}}})
		}
	}
	return f
}

// loadsOf are the loads that were tried, in rising order.
func loadsOf(trials []capacity.Trial) (loads []float64) {
	for _, t := range trials {
		loads = append(loads, t.Load)
	}
	slices.Sort(loads)
	return slices.Compact(loads)
}
