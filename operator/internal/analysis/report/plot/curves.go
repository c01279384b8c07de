// Package plot draws the plots of a report as SVG, for the page (Drawn) and as files of their own
// (Picture). Programs that draw the figures of a paper get the same plots as data (Figure).
package plot

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
)

// The size of a plot in user units, and of the frame that the curves are in.
const (
	plotWidth, plotHeight    = 640.0, 400.0
	frameLeft, frameRight    = 70.0, 20.0
	frameTop, frameBottom    = 16.0, 50.0
	legendLine, legendColumn = 18.0, 300.0

	frameWidth  = plotWidth - frameLeft - frameRight
	frameHeight = plotHeight - frameTop - frameBottom

	maxTicks = 6.0

	// widestInterval is how far an interval may reach above all trials, as a factor. Beyond it, the
	// interval is cut off.
	widestInterval = 1.5
)

// scale maps values onto the frame. A linear axis starts at 0, so that no reader mistakes a small
// difference for a great one. The x axis starts below 0 if the experiment's axis has values there.
// A logarithmic one starts at the 1, 2 or 5 times a power of ten below the least value.
type scale struct {
	xMin, xMax, yMin, yMax float64
	xStep, yStep           float64 // of linear axes
	logX, logY             bool
}

func scaleOf(p document.LinePlot) scale {
	var xMin, xMax, yMax float64
	if p.One != "" {
		yMax = 1
	}
	leastX, leastY := math.Inf(1), math.Inf(1)
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			xMin, xMax, yMax = min(xMin, pt.X), max(xMax, pt.X), max(yMax, pt.Y)
			leastX, leastY = min(leastX, pt.X), min(leastY, pt.Y)
			for _, t := range pt.Trials {
				xMax, yMax = max(xMax, t[0]), max(yMax, t[1])
				leastX, leastY = min(leastX, t[0]), min(leastY, t[1])
			}
		}
	}
	xMost, yMost := xMax, yMax
	for _, c := range p.Curves {
		for _, pt := range c.Points { // intervals of two trials would leave no room for the curves
			xMax, yMax = max(xMax, min(pt.XHigh, widestInterval*xMost)), max(yMax, min(pt.YHigh, widestInterval*yMost))
		}
	}
	s := scale{xStep: niceStep(xMax - xMin), yStep: niceStep(yMax), yMax: roundUp(yMax), logX: p.LogX, logY: p.LogY}
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

// drawLines draws the plot.
func drawLines(p document.LinePlot, id string) string {
	s := scaleOf(p)
	b := &strings.Builder{}
	columns := legendColumns(p)
	legend := legendOf(p)
	rows := float64((len(legend) + columns - 1) / columns)
	openSVG(b, id, plotHeight+rows*legendLine, p.Title+": "+p.YLabel+" over "+p.XLabel, describeLines(p))
	drawFrame(p, b, s)
	if p.One != "" {
		fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,%.1fh%.1f"/>`+"\n", frameLeft, s.y(1), frameWidth)
	}
	for _, c := range p.Curves {
		drawCurve(c, b, s, p)
	}
	for i, entry := range legend {
		x, y := frameLeft+float64(i%columns)*legendColumn-20, plotHeight+float64(i/columns)*legendLine
		entry.draw(b, x, y)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x+32, y+4, html.EscapeString(shortLegend(entry.name)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legendEntry is a name with its sign, which is drawn 26 units wide from x on.
type legendEntry struct {
	name string
	draw func(b *strings.Builder, x, y float64)
}

// legendOf has the curves, then what else is drawn.
func legendOf(p document.LinePlot) (all []legendEntry) {
	knee := false
	for _, c := range p.Curves {
		all = append(all, legendEntry{c.Legend(), func(b *strings.Builder, x, y float64) {
			fmt.Fprintf(b, `<g class="c%d"><path class="line" d="M%.1f,%.1fh26"%s/>`, c.Style, x, y, dash(c.Paper))
			dot(b, c.Style, c.Paper, x+13, y, "")
			b.WriteString("</g>")
		}})
		knee = knee || slices.ContainsFunc(c.Points, func(pt document.Point) bool { return pt.Knee })
	}
	if p.One != "" {
		all = append(all, legendEntry{p.One, func(b *strings.Builder, x, y float64) {
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
func legendColumns(p document.LinePlot) int {
	for _, c := range p.Curves {
		if len([]rune(c.Legend())) > longestInColumn {
			return 1
		}
	}
	return 2
}

// describeLines puts the curves into words: where each starts and ends. The numbers are in the
// page's tables.
func describeLines(p document.LinePlot) string {
	var parts []string
	for _, c := range p.Curves {
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		text := fmt.Sprintf("%s: %s, from %s at %s to %s at %s", cmp.Or(c.Name, "measured"), model.Count(len(c.Points), "point"), document.Rounded(first), document.Tick3(first.X), document.Rounded(last), document.Tick3(last.X))
		if i := slices.IndexFunc(c.Points, func(p document.Point) bool { return p.Knee }); i >= 0 {
			text += fmt.Sprintf("; knee %s at %s", document.Rounded(c.Points[i]), document.Tick3(c.Points[i].X))
		}
		parts = append(parts, text+".")
	}
	return strings.Join(parts, " ")
}

// drawFrame draws grid, ticks and labels.
func drawFrame(p document.LinePlot, b *strings.Builder, s scale) {
	for _, v := range ticks(s.yMin, s.yMax, s.yStep, s.logY) {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frameLeft, s.y(v), frameWidth, frameLeft-8, s.y(v)+4, document.Tick(v))
	}
	for _, v := range ticks(s.xMin, s.xMax, s.xStep, s.logX) {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", s.x(v), frameTop, frameHeight, s.x(v), frameTop+frameHeight+18, anchor(s.x(v), document.Tick(v)), document.Tick(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frameLeft+frameWidth/2, plotHeight-14, html.EscapeString(axisText(p.XLabel, s.logX)))
	middle := frameTop + frameHeight/2
	frame := panel{left: frameLeft, top: frameTop, width: frameWidth, height: frameHeight, xMin: s.xMin, xMax: s.xMax, yMax: s.yMax, logX: s.logX}
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle"%s>%s</text>`+"\n", middle,
		frameData(frame, s.yMin, s.logY, p.XLabel, p.YLabel), html.EscapeString(axisText(p.YLabel, s.logY)))
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

// axisText is the label of an axis. It says if the axis is not linear.
func axisText(label string, log bool) string {
	if log {
		return label + ", logarithmic"
	}
	return label
}

// penFor is the command of SVG for the i-th point of a path: it moves to the first without drawing.
func penFor(i int) rune {
	if i == 0 {
		return 'M'
	}
	return 'L'
}

func dash(paper bool) string {
	if paper {
		return ` stroke-dasharray="5 4"`
	}
	return ""
}

func drawCurve(c document.Curve, b *strings.Builder, s scale, in document.LinePlot) {
	fmt.Fprintf(b, `<g class="c%d">`+"\n", c.Style)
	if c.Band {
		drawBand(c, b, s)
	}
	var path strings.Builder
	for i, p := range c.Points {
		fmt.Fprintf(&path, "%c%.1f,%.1f", penFor(i), s.x(p.X), s.y(p.Y))
	}
	if len(c.Points) > 1 {
		fmt.Fprintf(b, `<path class="line" d="%s"%s%s/>`+"\n", path.String(), dash(c.Paper), data("name", c.Legend()))
	}
	for _, p := range c.Points {
		if p.IntervalsToo && !c.Band { // drawBand draws the intervals of the others
			whisker(b, lying(s.y(p.Y), s.x(p.XLow), s.x(p.XHigh), frameLeft, frameLeft+frameWidth)+standing(s.x(p.X), s.y(p.YLow), s.y(p.YHigh)))
		}
		for _, t := range p.Trials {
			fmt.Fprintf(b, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, s.x(t[0]), s.y(t[1]), trialDot)
		}
		if p.Knee {
			fmt.Fprintf(b, `<path class="line thin" transform="translate(%.1f,%.1f)" d="%s"/>`, s.x(p.X), s.y(p.Y), kneeRing)
		}
		dotSaying(b, c.Style, c.Paper, s.x(p.X), s.y(p.Y), html.EscapeString(fmt.Sprintf("%s: %s, %s", c.Name, document.Tick(p.X), document.Rounded(p))), tellPoint(c, p, in))
	}
	b.WriteString("</g>\n")
}

// tellPoint has all facts about a point, for a reader who points at it.
func tellPoint(c document.Curve, p document.Point, in document.LinePlot) string {
	x := document.Tick(p.X)
	if p.At != "" { // measured, too
		x = document.Tick3(p.X)
	}
	lines := []string{c.Legend()}
	if p.At != "" && in.Axis != "" {
		lines = append(lines, in.Axis+": "+p.At)
	}
	value := in.YLabel + ": " + document.Rounded(p)
	if p.IntervalsToo {
		value += ", 95% interval " + boundText(p.YLow) + " to " + boundText(p.YHigh)
	}
	lines = append(lines, in.XLabel+": "+x, value)
	if n := len(p.Trials); n > 0 {
		lines = append(lines, model.Count(n, "trial"))
	}
	return strings.Join(lines, "\n")
}

// leastBand is how many points a band needs: with two or three, it would claim to know what lies
// between them.
const leastBand = 4

// drawBand fills between the intervals' ends, over each run of points with an interval. The points
// of a short run have whiskers.
func drawBand(c document.Curve, b *strings.Builder, s scale) {
	for i := 0; i < len(c.Points); {
		if !c.Points[i].IntervalsToo {
			i++
			continue
		}
		j := i
		for j < len(c.Points) && c.Points[j].IntervalsToo {
			j++
		}
		if j-i < leastBand {
			for _, p := range c.Points[i:j] {
				whisker(b, standing(s.x(p.X), s.y(p.YLow), s.y(p.YHigh)))
			}
			i = j
			continue
		}
		var up, down strings.Builder
		for k := i; k < j; k++ {
			fmt.Fprintf(&up, "%c%.1f,%.1f", penFor(k-i), s.x(c.Points[k].X), s.y(c.Points[k].YHigh))
			back := c.Points[j-1-(k-i)]
			fmt.Fprintf(&down, "L%.1f,%.1f", s.x(back.X), s.y(back.YLow))
		}
		fmt.Fprintf(b, `<path class="band" d="%s%sZ"/>`+"\n", up.String(), down.String())
		i = j
	}
}
