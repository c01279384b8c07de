package report

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// A barPlot compares points by one metric where no axis is a number: named variants, as in many
// papers' figures. Each bar goes from 0 to a point's mean.
type barPlot struct {
	title, xLabel string
	bars          []bar
}

// bar of a point. The plot writes group, if there is one, above the first bar that has it.
type bar struct {
	group, name string
	style       int
	mean        plotPoint // of which y is the value
	paper       float64
	hasPaper    bool
}

const (
	barsLegend = "Each bar goes from 0 to the mean. The line through its end is the 95% interval of the mean, cut off at the frame. Small dots are trials, hollow dots the paper."

	barRow, barGroupRow = 24.0, 22.0
	barsTop, barsBottom = 6.0, 44.0
	barValueWidth       = 70.0
	barLetter           = 6.6 // a letter's width, about
	longestBarName      = 34
	// mostBars is how many rows can be compared at a glance.
	mostBars = 40
)

// barPlots are throughput and latencies of named variants. None where an axis is a number with
// several values, since curves show these, and none for a single point. The note says which points
// are not drawn.
func barPlots(e results.Experiment) (all []barPlot, note string) {
	if _, curves := numericAxis(e); curves || len(e.Points) < 2 {
		return nil, ""
	}
	if len(e.Points) > mostBars {
		note = fmt.Sprintf("The first %d of %d points are drawn.", mostBars, len(e.Points))
	}
	for _, m := range []struct{ metric, title, label string }{
		{stats.Throughput, "Throughput", "throughput (tx/s)"},
		{stats.MeanLatency, "Mean latency", "mean latency (ms)"},
		{stats.P99Latency, "99th percentile of latency", "99th percentile of latency (ms)"},
	} {
		p := barPlot{title: m.title, xLabel: m.label}
		for _, point := range e.Points[:min(mostBars, len(e.Points))] {
			if b, ok := barOf(e, point, m.metric); ok {
				p.bars = append(p.bars, b)
			}
		}
		if len(p.bars) > 1 {
			all = append(all, p)
		}
	}
	return all, note
}

// barOf names a point after the last axis with several values, and groups it by those before.
func barOf(e results.Experiment, p results.PointResult, metric string) (bar, bool) {
	a, ok := p.Metrics[metric]
	if !ok {
		return bar{}, false
	}
	axes := slices.DeleteFunc(slices.Clone(e.Axes), func(a results.Axis) bool { return len(a.Values) < 2 })
	b := bar{name: "the only one", mean: plotPoint{y: a.Mean, yLow: a.Low, yHigh: a.High, intervalsToo: a.N > 1}}
	if n := len(axes); n > 0 {
		last := axes[n-1]
		b.name, b.group = p.Coordinates[last.Name], at(axes[:n-1], p.Coordinates)
		b.style = max(0, slices.Index(last.Values, b.name)) % manyCurves
	}
	for _, y := range samplesOf(e, p, metric) {
		b.mean.trials = append(b.mean.trials, [2]float64{0, y})
	}
	b.paper, b.hasPaper = paperValue(e, metric, p.Coordinates)
	return b, true
}

// svg draws the bars below each other, with names on their left and means on their right.
func (p barPlot) svg(id string) string {
	letters, most, ends := 0, 0.0, 0.0
	for _, b := range p.bars {
		letters = max(letters, min(longestBarName, len([]rune(b.name))))
		most = max(most, b.mean.y, b.paper)
		for _, t := range b.mean.trials {
			most = max(most, t[1])
		}
	}
	for _, b := range p.bars { // intervals of two trials would leave no room for the bars
		ends = max(ends, most, min(b.mean.yHigh, widestInterval*most))
	}
	left := 24 + barLetter*float64(letters)
	frame := panel{left: left, top: barsTop, width: plotWidth - left - barValueWidth, xMax: roundUp(ends), yMax: 1}
	frame.height = p.rows()
	b := &strings.Builder{}
	openSVG(b, id, barsTop+frame.height+barsBottom, p.title+": "+p.xLabel, p.describe())
	for i, step := 0.0, niceStep(frame.xMax); i*step <= frame.xMax*1.0001; i++ {
		x := frame.x(i * step)
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x, frame.top, frame.height, x, frame.top+frame.height+17, tick(i*step))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frame.left+frame.width/2, frame.top+frame.height+37, html.EscapeString(p.xLabel))
	y, group := frame.top, ""
	for _, one := range p.bars {
		if one.group != group {
			group = one.group
			fmt.Fprintf(b, `<text x="4" y="%.1f">%s</text>`+"\n", y+barGroupRow-6, html.EscapeString(shortLegend(group)))
			y += barGroupRow
		}
		one.draw(b, frame, y)
		y += barRow
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// rows is the height of all bars and of the lines above groups.
func (p barPlot) rows() float64 {
	height, group := 0.0, ""
	for _, b := range p.bars {
		if b.group != group {
			group = b.group
			height += barGroupRow
		}
		height += barRow
	}
	return height
}

func (b bar) draw(out *strings.Builder, frame panel, y float64) {
	middle := y + barRow/2
	name := []rune(b.name)
	if len(name) > longestBarName {
		name = append(name[:longestBarName-1], '…')
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, frame.left-8, middle+4, html.EscapeString(string(name)))
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", plotWidth-4, middle+4, rounded(b.mean))
	fmt.Fprintf(out, `<g class="c%d"><path class="band" d="M%.1f,%.1fH%.1fv%.1fH%.1fZ"/>`, b.style, frame.left, y+4, frame.x(b.mean.y), barRow-8, frame.left)
	if b.mean.intervalsToo {
		fmt.Fprintf(out, `<path class="line" d="M%.1f,%.1fH%.1f"/>`, frame.x(b.mean.yLow), middle, frame.x(b.mean.yHigh))
	}
	fmt.Fprintf(out, `<path class="line" d="M%.1f,%.1fv%.1f"/>`+"\n", frame.x(b.mean.y), y+4, barRow-8)
	for _, t := range b.mean.trials {
		fmt.Fprintf(out, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, frame.x(t[1]), middle+5, trialDot)
	}
	if b.hasPaper {
		dot(out, b.style, true, frame.x(b.paper), middle, html.EscapeString(fmt.Sprintf("%s%s: %s", b.name, paperSuffix, tick3(b.paper))))
	}
	out.WriteString("</g>\n")
}

// describe puts the bars into words.
func (p barPlot) describe() string {
	var parts []string
	for _, b := range p.bars {
		text := strings.TrimPrefix(b.group+", "+b.name, ", ") + ": " + rounded(b.mean)
		if b.mean.intervalsToo {
			text += fmt.Sprintf(", interval %s to %s", rounded(plotPoint{y: b.mean.yLow}), rounded(plotPoint{y: b.mean.yHigh}))
		}
		if b.hasPaper {
			text += ", the paper's " + tick3(b.paper)
		}
		parts = append(parts, text+".")
	}
	return cmp.Or(strings.Join(parts, " "), "nothing")
}

// htmlBars are the plots of bars for a page. Their ids begin with id.
func htmlBars(e results.Experiment, id string) (all []htmlPlot, note string) {
	drawn, note := barPlots(e)
	for i, p := range drawn {
		all = append(all, htmlPlot{Title: p.title, SVG: escaped(p.svg(fmt.Sprintf("%s%d", id, i)))})
	}
	return all, note
}
