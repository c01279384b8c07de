package report

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A plot is an SVG of curves. Measured ones have their means as dots and every trial as a small
// dot. The 95% interval of the mean is a band over four points of an axis and more. It is whiskers
// over fewer, and for latency against throughput. The paper's ones are dashed and hollow, with the
// dots and in the colour of what they are compared with. The interval is the same at every n, and
// claims are judged by it. The minimum and the maximum of two to four trials hold the mean in 50 to
// 87% of experiments only. With them a point with fewer trials would look more precise than one
// with five.
type plot struct {
	title, xLabel, yLabel string
	// axis of the experiment that points have a value of, where xLabel is another.
	axis   string
	curves []curve
	// one is what lies at y = 1: the baseline of ratios. Empty: the numbers are no ratios.
	one string
	// metrics that are drawn, of package stats.
	metrics []string
	// Logarithmic axes (scaled).
	logX, logY bool
}

type curve struct {
	name   string
	style  int // which dots and colour
	paper  bool
	band   bool
	points []plotPoint
}

// plotPoint with its intervals; a value without one has low and high equal to it.
type plotPoint struct {
	x, y         float64
	xLow, xHigh  float64
	yLow, yHigh  float64
	intervalsToo bool
	at           string // of latency over throughput: the value of the axis
	knee         bool
	trials       [][2]float64
	load         countedLoad
	// half of what stands beside the mean in tables, by which both are rounded. 0: of the interval.
	half float64
}

// mostCurveGroups is how many times a page has the three plots of curves, each time of other
// variants.
const mostCurveGroups = 4

// plots of an experiment are throughput and mean latency over the axis that is a number, and
// latency against throughput if that axis is a load. A search has plots of its own (capacityPlots).
// Where there are more variants than can be told apart, there are these for each group of them. A
// note says where there are more groups than a page has room for. There are none where no axis is a
// number with several values.
func plots(e results.Experiment) (all []plot, note string) {
	axis, ok := numericAxis(e)
	if _, searched := capacityPlots(e); !ok || searched {
		return nil, ""
	}
	variants := variantsOf(e, axis)
	if len(variants) == 0 {
		return nil, ""
	}
	groups := (len(variants) + manyCurves - 1) / manyCurves
	size := (len(variants) + groups - 1) / groups // as equal as they can be
	for i := range groups {
		if i == mostCurveGroups {
			return all, fmt.Sprintf("The first %d of %d variants are drawn.", i*size, len(variants))
		}
		from, to := i*size, min((i+1)*size, len(variants))
		which := ""
		if groups > 1 {
			which = fmt.Sprintf(" (variants %d to %d of %d)", from+1, to, len(variants))
		}
		all = append(all, plotsOf(e, axis, variants[from:to], which)...)
	}
	return all, ""
}

// plotsOf are the plots of some variants. A line through latency and throughput says how latency
// grows with the load, so that it is drawn along a load alone.
func plotsOf(e results.Experiment, axis string, variants []variant, which string) []plot {
	all := []plot{
		{title: "Throughput" + which, xLabel: axis, yLabel: "throughput (tx/s)", metrics: []string{stats.Throughput}, curves: overAxis(e, axis, variants, stats.Throughput)},
		{title: "Mean latency" + which, xLabel: axis, yLabel: "mean latency (ms)", metrics: []string{stats.MeanLatency}, curves: overAxis(e, axis, variants, stats.MeanLatency)},
	}
	if isLoad(e, axis) {
		all = append(all, plot{title: against3 + which, xLabel: "throughput (tx/s)", yLabel: "mean latency (ms)", axis: axis, metrics: []string{stats.Throughput, stats.MeanLatency},
			curves: markKnees(against(e, axis, variants))})
	}
	var drawn []plot
	for _, p := range all {
		if len(p.curves) > 0 {
			drawn = append(drawn, p.besideOrApart()...)
		}
	}
	return drawn
}

// besideOrApart draws the paper's curves in a plot of their own where they are of another order
// than the measured ones, as bars are.
func (p plot) besideOrApart() []plot {
	own, theirs := p.split()
	common := placesOf(own.curves)
	maps.DeleteFunc(common, func(place string, _ bool) bool { return !placesOf(theirs.curves)[place] })
	x, y := greatestOf(own.curves, common)
	paperX, paperY := greatestOf(theirs.curves, common)
	if p.one != "" || !apart(y, paperY) && (len(p.metrics) < 2 || !apart(x, paperX)) {
		return []plot{p.scaled()}
	}
	title, which, found := strings.Cut(p.title, " (")
	theirs.title = title + inThePaper
	if found {
		theirs.title += " (" + which
	}
	return []plot{own, theirs}
}

// split gives the measured curves and the source's, each with the ends of axes that it would have
// alone. Axes are of the same kind: a logarithmic one beside a linear one shows another shape of
// the same curve, and a measurement of few points rarely spans two decades.
func (p plot) split() (own, theirs plot) {
	own, theirs = p, p
	own.curves = measuredCurves(p.curves)
	theirs.curves = slices.DeleteFunc(slices.Clone(p.curves), func(c curve) bool { return !c.paper })
	own, theirs = own.scaled(), theirs.scaled()
	if len(own.curves) == 0 || len(theirs.curves) == 0 {
		return own, theirs
	}
	ownX, ownY := own.values()
	theirX, theirY := theirs.values()
	logX := (own.logX || theirs.logX) && slices.Min(ownX) > 0 && slices.Min(theirX) > 0
	logY := (own.logY || theirs.logY) && slices.Min(ownY) > 0 && slices.Min(theirY) > 0
	own.logX, theirs.logX, own.logY, theirs.logY = logX, logX, logY, logY
	return own, theirs
}

// place of a point on the axis of the experiment.
func (p plotPoint) place() string { return cmp.Or(p.at, tick(p.x)) }

func placesOf(curves []curve) map[string]bool {
	places := map[string]bool{}
	for _, c := range curves {
		for _, p := range c.points {
			places[p.place()] = true
		}
	}
	return places
}

// greatestOf are the greatest means of curves at some places, or anywhere if there are none: a
// curve that reaches further is not of another order.
func greatestOf(curves []curve, places map[string]bool) (x, y float64) {
	for _, c := range curves {
		for _, p := range c.points {
			if len(places) == 0 || places[p.place()] {
				x, y = max(x, p.x), max(y, p.y)
			}
		}
	}
	return x, y
}

// Axes from which values are logarithmic: they span two decades, and there are some between the
// ends.
const (
	leastSpan   = 100.0
	leastValues = 3
)

// wide reports whether an axis of these values is logarithmic. Values at or below 0, which such an
// axis cannot show, keep it linear.
func wide(values []float64) bool {
	if len(values) == 0 {
		return false
	}
	least, most := slices.Min(values), slices.Max(values)
	values = slices.Clone(values)
	slices.Sort(values)
	return least > 0 && most >= leastSpan*least && len(slices.Compact(values)) >= leastValues
}

// scaled chooses the axes by all means and trials.
func (p plot) scaled() plot {
	xs, ys := p.values()
	p.logX, p.logY = wide(xs) || p.axis == "" && doubles(xs), wide(ys)
	return p
}

// leastDoubling is how many values that each double make an axis logarithmic.
const leastDoubling = 4

// doubles reports whether the values that an author chose for an axis are each twice the one before
// and more, such as batches of 1, 2, 4 and 8. On a linear axis half of them lie in one place.
func doubles(values []float64) bool {
	values = slices.Clone(values)
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) < leastDoubling || values[0] <= 0 {
		return false
	}
	for i := range values[1:] {
		if values[i+1] < 2*values[i] {
			return false
		}
	}
	return true
}

// values are all means and trials, on both axes.
func (p plot) values() (xs, ys []float64) {
	for _, c := range p.curves {
		for _, pt := range c.points {
			xs, ys = append(xs, pt.x), append(ys, pt.y)
			for _, t := range pt.trials {
				xs, ys = append(xs, t[0]), append(ys, t[1])
			}
		}
	}
	return xs, ys
}

// numericAxis is the axis that the paper's series run along, else the first whose values are
// numbers; it has several values.
func numericAxis(e results.Experiment) (string, bool) {
	best := ""
	for _, a := range e.Axes {
		if len(a.Values) < 2 || slices.ContainsFunc(a.Values, notANumber) {
			continue
		}
		if slices.ContainsFunc(e.Reported, func(s results.ReportedSeries) bool { return s.Axis == a.Name }) {
			return a.Name, true
		}
		if best == "" {
			best = a.Name
		}
	}
	return best, best != ""
}

// variant is a value of all axes but one.
type variant struct {
	name   string
	points []results.PointResult // by the value of that one
}

func variantsOf(e results.Experiment, axis string) []variant {
	var others []results.Axis
	for _, a := range e.Axes {
		if a.Name != axis && len(a.Values) > 1 {
			others = append(others, a)
		}
	}
	var variants []variant
	for _, p := range e.Points {
		name := at(others, p.Coordinates)
		if len(others) == 1 {
			name = p.Coordinates[others[0].Name]
		}
		i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
		if i < 0 {
			variants = append(variants, variant{name: name})
			i = len(variants) - 1
		}
		variants[i].points = append(variants[i].points, p)
	}
	for _, v := range variants {
		slices.SortStableFunc(v.points, func(a, b results.PointResult) int {
			return compareNumbers(a.Coordinates[axis], b.Coordinates[axis])
		})
	}
	return variants
}

func compareNumbers(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

// overAxis has a measured curve for each variant, and the paper's beside it.
func overAxis(e results.Experiment, axis string, variants []variant, metric string) []curve {
	var curves []curve
	for i, v := range variants {
		measured := curve{name: v.name, style: i, band: true}
		for _, p := range v.points {
			a, ok := p.Metrics[metric]
			if x, err := strconv.ParseFloat(p.Coordinates[axis], 64); ok && err == nil {
				pt := barMean(a)
				pt.x, pt.xLow, pt.xHigh = x, x, x
				for _, y := range samplesOf(e, p, metric) {
					pt.trials = append(pt.trials, [2]float64{x, y})
				}
				measured.points = append(measured.points, pt)
			}
		}
		paper := curve{name: strings.TrimSpace(v.name + " (paper)"), style: i, paper: true}
		for _, xy := range paperCurve(e, axis, metric, v) {
			paper.points = append(paper.points, plotPoint{x: xy[0], y: xy[1]})
		}
		curves = appendCurves(curves, measured, paper)
	}
	return curves
}

// against has latency over throughput for each variant, in the order of the axis.
func against(e results.Experiment, axis string, variants []variant) []curve {
	var curves []curve
	for i, v := range variants {
		measured := curve{name: v.name, style: i}
		for _, p := range v.points {
			x, okX := p.Metrics[stats.Throughput]
			y, okY := p.Metrics[stats.MeanLatency]
			if okX && okY {
				low, high := spread(y)
				measured.points = append(measured.points, plotPoint{x: x.Mean, xLow: x.Low, xHigh: x.High, y: y.Mean, yLow: y.Low, yHigh: y.High, half: (high - low) / 2,
					intervalsToo: x.N > 1, at: p.Coordinates[axis], trials: latencyOverThroughput(e, p), load: loadOf(e, p)})
			}
		}
		paper := curve{name: strings.TrimSpace(v.name + " (paper)"), style: i, paper: true}
		latency := paperCurve(e, axis, stats.MeanLatency, v)
		for _, t := range paperCurve(e, axis, stats.Throughput, v) {
			for _, l := range latency {
				if l[0] == t[0] {
					paper.points = append(paper.points, plotPoint{x: t[1], y: l[1], at: tick(t[0])})
					break
				}
			}
		}
		curves = appendCurves(curves, measured, paper)
	}
	return curves
}

// latencyOverThroughput of each trial of a point.
func latencyOverThroughput(e results.Experiment, p results.PointResult) (trials [][2]float64) {
	x, y := samplesOf(e, p, stats.Throughput), samplesOf(e, p, stats.MeanLatency)
	for i := range y {
		if len(x) == len(y) { // else some trial has no latency
			trials = append(trials, [2]float64{x[i], y[i]})
		}
	}
	return trials
}

func appendCurves(curves []curve, more ...curve) []curve {
	for _, c := range more {
		if len(c.points) > 0 {
			curves = append(curves, c)
		}
	}
	return curves
}

// paperCurve is what the paper reports of a variant along an axis, in tx/s or ms, at all its
// points: also those that the sweep does not have.
func paperCurve(e results.Experiment, axis, metric string, v variant) [][2]float64 {
	for _, s := range e.Reported {
		f, known := factor(s)
		if !known || s.Axis != axis || metricOfSeries(s) != metric || len(v.points) == 0 || !agrees(s.At, v.points[0].Coordinates) {
			continue
		}
		var xy [][2]float64
		for i, text := range s.X {
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				xy = append(xy, [2]float64{x, s.Y[i] * f})
			}
		}
		return xy
	}
	return nil
}

// The size of a plot in user units, and of the frame that the curves are in.
const (
	plotWidth, plotHeight    = 640.0, 400.0
	frameLeft, frameRight    = 70.0, 20.0
	frameTop, frameBottom    = 16.0, 50.0
	legendLine, legendColumn = 18.0, 300.0

	frameWidth  = plotWidth - frameLeft - frameRight
	frameHeight = plotHeight - frameTop - frameBottom

	maxTicks = 6.0

	// widestInterval is by how much an interval may lie above all trials. Beyond, it is cut off.
	widestInterval = 1.5
)

// scale maps values onto the frame. A linear axis starts at 0, so that no reader mistakes a small
// difference for a great one; that of x below it where an experiment's axis has values there. A
// logarithmic one starts at the 1, 2 or 5 times a power of ten below the least value.
type scale struct {
	xMin, xMax, yMin, yMax float64
	xStep, yStep           float64 // of linear axes
	logX, logY             bool
}

func (p plot) scale() scale {
	var xMin, xMax, yMax float64
	if p.one != "" {
		yMax = 1
	}
	leastX, leastY := math.Inf(1), math.Inf(1)
	for _, c := range p.curves {
		for _, pt := range c.points {
			xMin, xMax, yMax = min(xMin, pt.x), max(xMax, pt.x), max(yMax, pt.y)
			leastX, leastY = min(leastX, pt.x), min(leastY, pt.y)
			for _, t := range pt.trials {
				xMax, yMax = max(xMax, t[0]), max(yMax, t[1])
				leastX, leastY = min(leastX, t[0]), min(leastY, t[1])
			}
		}
	}
	xMost, yMost := xMax, yMax
	for _, c := range p.curves {
		for _, pt := range c.points { // intervals of two trials would leave no room for the curves
			xMax, yMax = max(xMax, min(pt.xHigh, widestInterval*xMost)), max(yMax, min(pt.yHigh, widestInterval*yMost))
		}
	}
	s := scale{xStep: niceStep(xMax - xMin), yStep: niceStep(yMax), yMax: roundUp(yMax), logX: p.logX, logY: p.logY}
	s.xMin = math.Floor(xMin/s.xStep) * s.xStep
	s.xMax = math.Max(s.xMin+s.xStep, math.Ceil(xMax/s.xStep)*s.xStep)
	if s.logX {
		s.xMin, s.xMax = niceBelow(leastX), niceAbove(xMost)
	}
	if s.logY {
		s.yMin, s.yMax = niceBelow(leastY), niceAbove(yMost)
	}
	return s
}

// share is where a value lies between the ends of an axis: from 0 to 1.
func share(v, low, high float64, log bool) float64 {
	v = math.Min(high, math.Max(low, v))
	if log {
		return math.Log(v/low) / math.Log(high/low)
	}
	return (v - low) / (high - low)
}

// niceStep is the 1, 2 or 5 times a power of ten that gives about as many ticks as there should be.
func niceStep(greatest float64) float64 {
	if greatest <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(greatest/maxTicks)))
	for _, m := range []float64{1, 2, 5, 10} {
		if greatest/(m*power) <= maxTicks {
			return m * power
		}
	}
	return 10 * power
}

func (s scale) x(v float64) float64 { return frameLeft + frameWidth*share(v, s.xMin, s.xMax, s.logX) }

func (s scale) y(v float64) float64 {
	return frameTop + frameHeight*(1-share(v, s.yMin, s.yMax, s.logY))
}

// ticks of an axis.
func ticks(low, high, step float64, log bool) (all []float64) {
	if log {
		return panel{xMin: low, xMax: high, logX: true}.xTicks()
	}
	for i := math.Round(low / step); i*step <= high+step*1e-4; i++ {
		all = append(all, i*step)
	}
	return all
}

// svg draws the plot.
func (p plot) svg(id string) string {
	s := p.scale()
	b := &strings.Builder{}
	columns := p.legendColumns()
	legend := p.legend()
	rows := float64((len(legend) + columns - 1) / columns)
	openSVG(b, id, plotHeight+rows*legendLine, p.title+": "+p.yLabel+" over "+p.xLabel, p.describe())
	p.frame(b, s)
	if p.one != "" {
		fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,%.1fh%.1f"/>`+"\n", frameLeft, s.y(1), frameWidth)
	}
	for _, c := range p.curves {
		c.draw(b, s, p)
	}
	for i, entry := range legend {
		x, y := frameLeft+float64(i%columns)*legendColumn-20, plotHeight+float64(i/columns)*legendLine
		entry.draw(b, x, y)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x+32, y+4, html.EscapeString(shortLegend(entry.name)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legendEntry is a name with what it names, drawn 26 units wide from x on.
type legendEntry struct {
	name string
	draw func(b *strings.Builder, x, y float64)
}

// legend has the curves, then what else is drawn.
func (p plot) legend() (all []legendEntry) {
	knee := false
	for _, c := range p.curves {
		all = append(all, legendEntry{c.legend(), func(b *strings.Builder, x, y float64) {
			fmt.Fprintf(b, `<g class="c%d"><path class="line" d="M%.1f,%.1fh26"%s/>`, c.style, x, y, dash(c.paper))
			dot(b, c.style, c.paper, x+13, y, "")
			b.WriteString("</g>")
		}})
		knee = knee || slices.ContainsFunc(c.points, func(pt plotPoint) bool { return pt.knee })
	}
	if p.one != "" {
		all = append(all, legendEntry{p.one, func(b *strings.Builder, x, y float64) {
			fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,%.1fh26"/>`, x, y)
		}})
	}
	if knee {
		all = append(all, legendEntry{"knee", func(b *strings.Builder, x, y float64) {
			fmt.Fprintf(b, `<path class="mark" transform="translate(%.1f,%.1f)" d="%s"/>`, x+13, y, kneeRing)
		}})
	}
	return all
}

// longestInColumn is how many characters of a name fit into one of two columns.
const longestInColumn = 38

// legendColumns is 2, or 1 where a name is too long for that.
func (p plot) legendColumns() int {
	for _, c := range p.curves {
		if len([]rune(c.legend())) > longestInColumn {
			return 1
		}
	}
	return 2
}

// legend is the curve's name; where there is one variant it has none.
func (c curve) legend() string {
	if c.paper && c.name == strings.TrimSpace(paperSuffix) {
		return "the paper"
	}
	return cmp.Or(c.name, "measured")
}

// describe puts the curves into words: where each starts and ends. The numbers are in the page's
// tables.
func (p plot) describe() string {
	var parts []string
	for _, c := range p.curves {
		first, last := c.points[0], c.points[len(c.points)-1]
		text := fmt.Sprintf("%s: %s, from %s at %s to %s at %s", cmp.Or(c.name, "measured"), count(len(c.points), "point"), rounded(first), tick3(first.x), rounded(last), tick3(last.x))
		if i := slices.IndexFunc(c.points, func(p plotPoint) bool { return p.knee }); i >= 0 {
			text += fmt.Sprintf("; knee %s at %s", rounded(c.points[i]), tick3(c.points[i].x))
		}
		parts = append(parts, text+".")
	}
	return strings.Join(parts, " ")
}

// rounded writes a point's value with as many decimals as the tables do (meanCell).
func rounded(p plotPoint) string {
	half := p.half
	if half == 0 {
		half = (p.yHigh - p.yLow) / 2
	}
	return stats.Rounded(p.y, half)
}

// tick3 writes a place on an axis, with decimals where it is measured and not chosen.
func tick3(v float64) string { return stats.Rounded(v, 0) }

// frame draws grid, ticks and labels.
func (p plot) frame(b *strings.Builder, s scale) {
	for _, v := range ticks(s.yMin, s.yMax, s.yStep, s.logY) {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frameLeft, s.y(v), frameWidth, frameLeft-8, s.y(v)+4, tick(v))
	}
	for _, v := range ticks(s.xMin, s.xMax, s.xStep, s.logX) {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", s.x(v), frameTop, frameHeight, s.x(v), frameTop+frameHeight+18, anchor(s.x(v), tick(v)), tick(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frameLeft+frameWidth/2, plotHeight-14, html.EscapeString(axisText(p.xLabel, s.logX)))
	middle := frameTop + frameHeight/2
	frame := panel{left: frameLeft, top: frameTop, width: frameWidth, height: frameHeight, xMin: s.xMin, xMax: s.xMax, yMax: s.yMax, logX: s.logX}
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle"%s>%s</text>`+"\n", middle,
		frameData(frame, s.yMin, s.logY, p.xLabel, p.yLabel), html.EscapeString(axisText(p.yLabel, s.logY)))
}

// letterWidth is how wide a letter of a plot is, about.
const letterWidth = 8.0

// anchor of a label below x: its middle, or its end where it would reach beyond the picture.
func anchor(x float64, label string) string {
	if x+letterWidth*float64(len(label))/2 > plotWidth {
		return "end"
	}
	return "middle"
}

// axisText is the label of an axis, which says what it is not: linear.
func axisText(label string, log bool) string {
	if log {
		return label + ", logarithmic"
	}
	return label
}

// penFor is how SVG reaches the i-th point of a path: the first without drawing.
func penFor(i int) rune {
	if i == 0 {
		return 'M'
	}
	return 'L'
}

func tick(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6+0, 'f', -1, 64) // + 0 makes 0 of -0
}

func dash(paper bool) string {
	if paper {
		return ` stroke-dasharray="5 4"`
	}
	return ""
}

func (c curve) draw(b *strings.Builder, s scale, in plot) {
	fmt.Fprintf(b, `<g class="c%d">`+"\n", c.style)
	if c.band {
		c.drawBand(b, s)
	}
	var path strings.Builder
	for i, p := range c.points {
		fmt.Fprintf(&path, "%c%.1f,%.1f", penFor(i), s.x(p.x), s.y(p.y))
	}
	if len(c.points) > 1 {
		fmt.Fprintf(b, `<path class="line" d="%s"%s%s/>`+"\n", path.String(), dash(c.paper), data("name", c.legend()))
	}
	for _, p := range c.points {
		if p.intervalsToo && !c.band { // drawBand has those of the others
			fmt.Fprintf(b, `<path class="line thin" d="M%.1f,%.1fH%.1fM%.1f,%.1fV%.1f"/>`, s.x(p.xLow), s.y(p.y), s.x(p.xHigh), s.x(p.x), s.y(p.yLow), s.y(p.yHigh))
		}
		for _, t := range p.trials {
			fmt.Fprintf(b, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, s.x(t[0]), s.y(t[1]), trialDot)
		}
		if p.knee {
			fmt.Fprintf(b, `<path class="line thin" transform="translate(%.1f,%.1f)" d="%s"/>`, s.x(p.x), s.y(p.y), kneeRing)
		}
		dotSaying(b, c.style, c.paper, s.x(p.x), s.y(p.y), html.EscapeString(fmt.Sprintf("%s: %s, %s", c.name, tick(p.x), rounded(p))), c.tells(p, in))
	}
	b.WriteString("</g>\n")
}

// tells is a point with all that is known of it, for who points at it.
func (c curve) tells(p plotPoint, in plot) string {
	x := tick(p.x)
	if p.at != "" { // measured, too
		x = tick3(p.x)
	}
	lines := []string{c.legend()}
	if p.at != "" && in.axis != "" {
		lines = append(lines, in.axis+": "+p.at)
	}
	value := in.yLabel + ": " + rounded(p)
	if p.intervalsToo {
		value += ", 95% interval " + boundText(p.yLow) + " to " + boundText(p.yHigh)
	}
	lines = append(lines, in.xLabel+": "+x, value)
	if n := len(p.trials); n > 0 {
		lines = append(lines, count(n, "trial"))
	}
	return strings.Join(lines, "\n")
}

// leastBand is how many points a band takes: between two or three it would claim to know what lies
// between them.
const leastBand = 4

// drawBand fills between the intervals' ends, over each run of points that have one. The points of
// a short run have whiskers.
func (c curve) drawBand(b *strings.Builder, s scale) {
	for i := 0; i < len(c.points); {
		if !c.points[i].intervalsToo {
			i++
			continue
		}
		j := i
		for j < len(c.points) && c.points[j].intervalsToo {
			j++
		}
		if j-i < leastBand {
			for _, p := range c.points[i:j] {
				x, low, high := s.x(p.x), s.y(p.yLow), s.y(p.yHigh)
				fmt.Fprintf(b, `<path class="line thin" d="M%.1f,%.1fV%.1fM%.1f,%.1fh8M%.1f,%.1fh8"/>`+"\n", x, low, high, x-4, low, x-4, high)
			}
			i = j
			continue
		}
		var up, down strings.Builder
		for k := i; k < j; k++ {
			fmt.Fprintf(&up, "%c%.1f,%.1f", penFor(k-i), s.x(c.points[k].x), s.y(c.points[k].yHigh))
			back := c.points[j-1-(k-i)]
			fmt.Fprintf(&down, "L%.1f,%.1f", s.x(back.x), s.y(back.yLow))
		}
		fmt.Fprintf(b, `<path class="band" d="%s%sZ"/>`+"\n", up.String(), down.String())
		i = j
	}
}
