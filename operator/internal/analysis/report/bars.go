package report

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A barPlot compares points by one metric where no axis is a number: named variants, as in many
// papers' figures. Each bar goes from 0 to a point's mean, whole or in parts that add up to it.
type barPlot struct {
	title, xLabel string
	bars          []bar
	// axis that the names of the bars are values of. Empty: they are not of one.
	axis string
	// parts of stacked bars, the first from 0 on. None: bars are whole.
	parts []string
	// one is what a bar of length 1 is: the baseline of ratios. Empty: the numbers are no ratios.
	one string
	// withN shows the number of trials beside each mean.
	withN bool
	// metrics that are drawn, of package stats.
	metrics []string
}

// bar of a point. The plot writes group, if there is one, above the first bar that has it.
type bar struct {
	group, name string
	style       int
	mean        plotPoint // of which y is the value
	n           int
	paper       float64
	hasPaper    bool
	// parts of a stacked bar, and the paper's if it reports all.
	parts, paperParts []float64
}

const (
	barsLegend = "Each bar goes from 0 to the mean; where means span two decades, the axis is logarithmic and each mean a dot. The line through it is the 95% interval of the mean, cut off at the frame. Small dots are trials, hollow dots the paper. Where the paper's values are more than five times as large or as small, they have a plot of their own."

	barRow, barGroupRow = 24.0, 22.0
	paperBarRow         = 14.0 // of the paper's stack below a bar
	barPaperLine        = 16.0 // from the text of a bar to that of the paper's
	barsTop, barsBottom = 6.0, 44.0
	barValueWidth       = 70.0
	barNWidth           = 46.0
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
		p := barPlot{title: m.title, xLabel: m.label, axis: barAxis(e), metrics: []string{m.metric}}
		for _, point := range e.Points[:min(mostBars, len(e.Points))] {
			if b, ok := barOf(e, point, m.metric); ok {
				p.bars = append(p.bars, b)
			}
		}
		if len(p.bars) > 1 {
			all = append(all, p.besideOrApart()...)
		}
	}
	return all, note
}

// mostTimes is how many times greater the paper's values may be than the measured ones, or smaller.
// Beyond, one of the two would be too low for its shape to be seen.
const mostTimes = 5

// apart reports whether two values are too far from each other for one scale.
func apart(a, b float64) bool { return a > 0 && b > 0 && (a > mostTimes*b || b > mostTimes*a) }

// besideOrApart draws the paper's values in a plot of their own where they are of another order
// than what was measured, as on other machines. Ratios have the same scale whatever the machines.
func (p barPlot) besideOrApart() []barPlot {
	measured, paper := 0.0, 0.0
	for _, b := range p.bars {
		measured = max(measured, b.mean.y)
		if b.hasPaper {
			paper = max(paper, b.paper)
		}
	}
	if p.one != "" || !apart(measured, paper) {
		return []barPlot{p}
	}
	own, theirs := p, p
	own.bars, theirs.bars, theirs.withN = slices.Clone(p.bars), nil, false
	theirs.title += inThePaper
	for i, b := range p.bars {
		own.bars[i].hasPaper, own.bars[i].paper, own.bars[i].paperParts = false, 0, nil
		if b.hasPaper {
			b.mean = plotPoint{y: b.paper, yLow: b.paper, yHigh: b.paper}
			b.parts, b.paperParts = b.paperParts, nil
			b.hasPaper, b.paper = false, 0
			theirs.bars = append(theirs.bars, b)
		}
	}
	return []barPlot{own, theirs}
}

// barOf is the bar of a point for one metric.
func barOf(e results.Experiment, p results.PointResult, metric string) (bar, bool) {
	a, ok := p.Metrics[metric]
	if !ok {
		return bar{}, false
	}
	b := barNamed(e, p)
	b.mean = barMean(a)
	for _, y := range samplesOf(e, p, metric) {
		b.mean.trials = append(b.mean.trials, [2]float64{0, y})
	}
	b.paper, b.hasPaper = paperValue(e, metric, p.Coordinates)
	return b, true
}

// barNamed names a point after the last axis with several values, and groups it by those before.
func barNamed(e results.Experiment, p results.PointResult) bar {
	axes := severalValues(e.Axes)
	n := len(axes)
	if n == 0 {
		return bar{name: "the only one"}
	}
	last := axes[n-1]
	b := bar{name: p.Coordinates[last.Name], group: at(axes[:n-1], p.Coordinates)}
	b.style = max(0, slices.Index(last.Values, b.name)) % manyCurves
	return b
}

// barAxis is the axis that bars are named after.
func barAxis(e results.Experiment) string {
	axes := severalValues(e.Axes)
	if len(axes) == 0 {
		return ""
	}
	return axes[len(axes)-1].Name
}

// cutName is as much of a name as there is room for.
func cutName(name string) string {
	if runes := []rune(name); len(runes) > longestBarName {
		return string(runes[:longestBarName-1]) + "…"
	}
	return name
}

func barMean(a results.Aggregate) plotPoint {
	low, high := spread(a)
	return plotPoint{y: a.Mean, yLow: a.Low, yHigh: a.High, intervalsToo: a.N > 1, half: (high - low) / 2}
}

// severalValues are the axes that tell points apart.
func severalValues(axes []results.Axis) []results.Axis {
	return slices.DeleteFunc(slices.Clone(axes), func(a results.Axis) bool { return len(a.Values) < 2 })
}

// pointName tells a point from the others.
func pointName(e results.Experiment, p results.PointResult) string {
	return cmp.Or(at(severalValues(e.Axes), p.Coordinates), "the only point")
}

// svg draws the bars below each other, with names on their left and means on their right.
func (p barPlot) svg(id string) string {
	letters := 0
	for _, b := range p.bars {
		letters = max(letters, min(longestBarName, len([]rune(b.name))))
	}
	axis := cutName(p.axis)
	letters = max(letters, len([]rune(axis)))
	left, right := 24+barLetter*float64(letters), barValueWidth
	if p.withN {
		right += barNWidth
	}
	frame := panel{left: left, top: barsTop, width: plotWidth - left - right, xMax: roundUp(p.extent()), yMax: 1, logX: p.log()}
	if frame.logX {
		frame.xMin, frame.xMax = niceBelow(slices.Min(p.values())), niceAbove(p.extent())
	}
	if p.one != "" || axis != "" {
		frame.top += legendLine
	}
	frame.height = p.rows()
	b := &strings.Builder{}
	bottom := frame.top + frame.height + barsBottom
	openSVG(b, id, bottom+p.legendHeight(), p.title+": "+p.xLabel, p.describe())
	for _, v := range ticks(frame.xMin, frame.xMax, niceStep(frame.xMax), frame.logX) {
		x := frame.x(v)
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x, frame.top, frame.height, x, frame.top+frame.height+17, tick(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frame.left+frame.width/2, frame.top+frame.height+37, html.EscapeString(axisText(p.xLabel, frame.logX)))
	if axis != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frame.left-8, frame.top-7, html.EscapeString(axis))
	}
	y, group := frame.top, ""
	for _, one := range p.bars {
		if one.group != group {
			group = one.group
			fmt.Fprintf(b, `<text x="4" y="%.1f">%s</text>`+"\n", y+barGroupRow-6, html.EscapeString(shortLegend(group)))
			y += barGroupRow
		}
		one.draw(b, frame, y, p)
		y += one.row()
	}
	p.drawOne(b, frame)
	p.drawLegend(b, bottom)
	b.WriteString("</svg>\n")
	return b.String()
}

// values of the bars and of their trials, the paper's, and the baseline.
func (p barPlot) values() (all []float64) {
	if p.one != "" {
		all = append(all, 1)
	}
	for _, b := range p.bars {
		all = append(all, b.mean.y)
		if b.hasPaper {
			all = append(all, b.paper)
		}
		for _, t := range b.mean.trials {
			all = append(all, t[1])
		}
	}
	return all
}

// log reports whether the axis is logarithmic, as that of curves would be. Parts that add up need
// a linear one.
func (p barPlot) log() bool { return len(p.parts) == 0 && wide(p.values()) }

// extent is how far the axis must go.
func (p barPlot) extent() float64 {
	most, ends := 0.0, 0.0
	if p.one != "" {
		most = 1
	}
	for _, b := range p.bars {
		most = max(most, b.mean.y, b.paper)
		for _, t := range b.mean.trials {
			most = max(most, t[1])
		}
	}
	for _, b := range p.bars { // intervals of two trials would leave no room for the bars
		ends = max(ends, most, min(b.mean.yHigh, widestInterval*most))
	}
	return ends
}

// rows is the height of all bars and of the lines above groups.
func (p barPlot) rows() float64 {
	height, group := 0.0, ""
	for _, b := range p.bars {
		if b.group != group {
			group = b.group
			height += barGroupRow
		}
		height += b.row()
	}
	return height
}

// row is the height of a bar, with the paper's below it.
func (b bar) row() float64 {
	if len(b.paperParts) > 0 {
		return barRow + paperBarRow
	}
	return barRow
}

// drawOne marks the baseline of ratios.
func (p barPlot) drawOne(b *strings.Builder, frame panel) {
	if p.one == "" {
		return
	}
	x := frame.x(1)
	anchor := "middle"
	if x+barLetter*float64(len([]rune(p.one)))/2 > plotWidth {
		anchor = "end"
	}
	fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
		x, frame.top-2, frame.height+2, x, frame.top-7, anchor, html.EscapeString(shortLegend(p.one)))
}

// entries of the legend: parts, and what the narrow bars are.
func (p barPlot) entries() []string {
	if len(p.parts) > 0 && slices.ContainsFunc(p.bars, func(b bar) bool { return len(b.paperParts) > 0 }) {
		return append(slices.Clone(p.parts), "paper")
	}
	return p.parts
}

// legendHeight is the height of the legend: two columns below the axis.
func (p barPlot) legendHeight() float64 {
	return float64((len(p.entries())+1)/2) * legendLine
}

func (p barPlot) drawLegend(b *strings.Builder, top float64) {
	for i, entry := range p.entries() {
		x, y := frameLeft-20+float64(i%2)*legendColumn, top+float64(i/2)*legendLine
		if i < len(p.parts) {
			fmt.Fprintf(b, `<g class="c%d"><path class="%s" d="M%.1f,%.1fh26v12h-26z"/></g>`, i, partClass(i), x, y-6)
		} else {
			fmt.Fprintf(b, `<path class="ghost" d="M%.1f,%.1fh26v8h-26z"/>`, x, y-4)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x+32, y+4, html.EscapeString(entry))
	}
}

// partClass makes neighbours differ in greyscale, too: every other part is pale.
func partClass(i int) string {
	if i%2 == 1 {
		return "part pale"
	}
	return "part"
}

func (b bar) draw(out *strings.Builder, frame panel, y float64, p barPlot) {
	middle := y + barRow/2
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, frame.left-8, middle+4, html.EscapeString(cutName(b.name)))
	right := plotWidth - 4
	if p.withN {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">n=%d</text>`, right, middle+4, b.n)
		right -= barNWidth
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end"%s>%s</text>`+"\n", right, middle+4, data("says", p.tells(b)), rounded(b.mean))
	if len(b.parts) > 0 {
		b.drawParts(out, frame, y, p.parts)
		return
	}
	fmt.Fprintf(out, `<g class="c%d"%s>`, b.style, data("says", p.tells(b)))
	if !frame.logX {
		fmt.Fprintf(out, `<path class="band" d="M%.1f,%.1fH%.1fv%.1fH%.1fZ"/>`, frame.left, y+4, frame.x(b.mean.y), barRow-8, frame.left)
	}
	if low, high := frame.x(b.mean.yLow), frame.x(b.mean.yHigh); b.mean.intervalsToo && high > low {
		fmt.Fprintf(out, `<path class="line" d="M%.1f,%.1fH%.1f"/>`, low, middle, high)
	}
	if frame.logX {
		dot(out, b.style, false, frame.x(b.mean.y), middle, "")
	} else {
		fmt.Fprintf(out, `<path class="line" d="M%.1f,%.1fv%.1f"/>`+"\n", frame.x(b.mean.y), y+4, barRow-8)
	}
	for _, t := range b.mean.trials {
		fmt.Fprintf(out, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, frame.x(t[1]), middle+5, trialDot)
	}
	if b.hasPaper {
		dot(out, b.style, true, frame.x(b.paper), middle, html.EscapeString(fmt.Sprintf("%s%s: %s", b.name, paperSuffix, paperText(b.paper))))
	}
	out.WriteString("</g>\n")
}

const (
	// leastGap is how wide a part must be for a gap after it: a gap would hide a narrower one.
	leastGap = 4.0
	// leastPart is below how much nothing is drawn, not even the outline of a pale part.
	leastPart = 0.05
	// leastGhost is how wide a part of the paper's must be: the outlines of narrower ones would
	// look as if they were wide.
	leastGhost = 1.5
)

// drawParts draws a stacked bar, with the interval of its total in the ink: it belongs to no part.
func (b bar) drawParts(out *strings.Builder, frame panel, y float64, names []string) {
	stack := func(parts []float64, class func(int) string, top, height float64) {
		from := 0.0
		for i, v := range parts {
			left, right := frame.x(from), frame.x(from+v)
			from += v
			if right-left < leastPart || class(i) == "ghost" && right-left < leastGhost {
				continue
			}
			fmt.Fprintf(out, `<g class="c%d"><path class="%s" d="M%.1f,%.1fH%.1fv%.1fH%.1fZ"%s><title>%s</title></path></g>`,
				i, class(i), left, top, right, height, left, data("says", names[i]+": "+tick3(v)), html.EscapeString(tick3(v)))
			if i < len(parts)-1 && right-left >= leastGap {
				fmt.Fprintf(out, `<path class="gap" d="M%.1f,%.1fv%.1f"/>`, right, top, height)
			}
		}
		out.WriteString("\n")
	}
	middle := y + barRow/2
	stack(b.parts, partClass, y+4, barRow-8)
	if len(b.paperParts) > 0 {
		stack(b.paperParts, func(int) string { return "ghost" }, y+barRow-2, paperBarRow-4)
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text><text x="%.1f" y="%.1f" text-anchor="end">paper</text>`+"\n",
			plotWidth-4-barNWidth, middle+4+barPaperLine, paperText(b.paper), plotWidth-4, middle+4+barPaperLine)
	}
	if b.mean.intervalsToo && b.mean.yLow < b.mean.yHigh { // shares of a whole do not vary
		low, high := frame.x(b.mean.yLow), frame.x(b.mean.yHigh)
		fmt.Fprintf(out, `<path class="mark" d="M%.1f,%.1fH%.1fM%.1f,%.1fv8M%.1f,%.1fv8"/>`+"\n", low, middle, high, low, middle-4, high, middle-4)
	}
	for _, t := range b.mean.trials {
		fmt.Fprintf(out, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, frame.x(t[1]), middle+5, trialDot)
	}
	out.WriteString("\n")
}

// tells is a bar with all that is known of it, for who points at it.
func (p barPlot) tells(b bar) string {
	lines := []string{strings.TrimPrefix(b.group+", "+b.name, ", "), p.xLabel + ": " + rounded(b.mean)}
	if b.mean.intervalsToo {
		lines[1] += ", 95% interval " + boundText(b.mean.yLow) + " to " + boundText(b.mean.yHigh)
	}
	if b.hasPaper {
		lines = append(lines, "paper: "+paperText(b.paper))
	}
	if n := len(b.mean.trials); n > 0 {
		lines = append(lines, count(n, "trial"))
	}
	return strings.Join(lines, "\n")
}

// describe puts the bars into words.
func (p barPlot) describe() string {
	var texts []string
	for _, b := range p.bars {
		text := strings.TrimPrefix(b.group+", "+b.name, ", ") + ": " + rounded(b.mean)
		if b.mean.intervalsToo {
			text += fmt.Sprintf(", interval %s to %s", boundText(b.mean.yLow), boundText(b.mean.yHigh))
		}
		for i, v := range b.parts {
			text += fmt.Sprintf(", %s %s", p.parts[i], tick3(v))
		}
		if b.hasPaper {
			text += ", the paper's " + paperText(b.paper)
		}
		texts = append(texts, text+".")
	}
	return cmp.Or(strings.Join(texts, " "), "nothing")
}

// boundText writes the end of an interval, which a ratio may not have.
func boundText(y float64) string {
	if math.IsInf(y, 0) {
		return "no end"
	}
	return rounded(plotPoint{y: y})
}

// htmlBars are the plots of bars for a page. Their ids begin with id.
func htmlBars(e results.Experiment, id string) (all []htmlPlot, note string) {
	drawn, note := barPlots(e)
	return htmlPlots(e, drawn, barPlot.svg, id), note
}

// htmlLines are the plots of curves for a page, with the note beside them.
func htmlLines(e results.Experiment, id string) (all []htmlPlot, note string) {
	drawn, note := plots(e)
	return htmlPlots(e, drawn, plot.svg, id), note
}

// htmlSearches are the plots of searches for a page.
func htmlSearches(e results.Experiment, id string) []htmlPlot {
	drawn, _ := capacityPlots(e)
	return htmlPlots(e, drawn, searchPlot.svg, id)
}
