package plot

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// The most points that are drawn over time, and the most fault marks that are named under such a
// plot.
const (
	mostOverTime   = 24
	mostNamedMarks = 12
)

// OverTime draws throughput and latency over time for the points with faults or with a changing
// load. note names the points that it does not draw.
func OverTime(e results.Experiment) (plots []Drawn, note string) {
	for i, s := range e.Series {
		if i == mostOverTime {
			return plots, fmt.Sprintf("Of %d points with faults or a changing load the first %d are drawn; the other ones' timelines are in their trials' results.", len(e.Series), mostOverTime)
		}
		if len(s.Throughput) == 0 {
			continue
		}
		name := cmp.Or(model.At(e.Axes, s.Coordinates), "the only point")
		plots = append(plots, Drawn{Title: fmt.Sprintf("%s (%s, bins of %d ms)", name, model.Count(s.Trials, "trial"), s.IntervalMillis), Says: overTimeCaption(s), SVG: escaped(timePlot(s, fmt.Sprintf("time%d", i), name))})
		if svg := heatmap(s, fmt.Sprintf("heat%d", i), name); svg != "" {
			plots = append(plots, Drawn{Title: name + ": mean latency of each trial", SVG: escaped(svg)})
		}
		if svg := usePlot(s, fmt.Sprintf("use%d", i), name); svg != "" {
			plots = append(plots, Drawn{Title: name + ": processors and network", SVG: escaped(svg)})
		}
	}
	return plots, ""
}

// overTimeCaption says how a plot over time was measured.
func overTimeCaption(s results.PointSeries) string {
	text := fmt.Sprintf("Mean over %s in bins of %d ms", model.Count(s.Trials, "valid trial"), s.IntervalMillis)
	if s.Trials > 1 {
		text += "; the band is from the least trial to the greatest"
	}
	return text + "."
}

// overTimeLegend says how to read the plots over time.
const overTimeLegend = "Lines are means over the valid trials, the band around throughput is from the least to the greatest of them. Latency is the mean of all transactions committed in a bin; " +
	"it is broken where none was. Vertical lines are when faults were confirmed in the first of their pods, resets of machines began, and Chaos Mesh was asked for what it did: solid with a full triangle where a fault began, dashed with a hollow one where it ended. " +
	"Grey: outside of the measurement window. Where there are several trials, each has a row of its own, with the number at the end of its name, the darker (on a dark page: the lighter) the longer its transactions took."

// offeredLegend explains the third line, if it is drawn.
const offeredLegend = " The dotted line beside throughput is the load: requests that were to be sent, per second, whether or not the system kept up. It is the mean over the trials."

// LegendOverTime is how to read these plots.
func LegendOverTime(e results.Experiment) string {
	if slices.ContainsFunc(e.Series, func(s results.PointSeries) bool { return len(s.Offered) > 0 }) {
		return overTimeLegend + offeredLegend
	}
	return overTimeLegend
}

// The places of a plot over time.
const (
	timeTop, timeThroughput, timeGap, timeLatency = 26.0, 190.0, 22.0, 130.0
)

// timePlot draws a point.
func timePlot(s results.PointSeries, id, name string) string {
	width := float64(s.IntervalMillis)
	from, to := float64(s.FirstMillis), float64(s.FirstMillis)+width*float64(len(s.Throughput))
	upper := panel{left: frameLeft, top: timeTop, width: frameWidth, height: timeThroughput, xMin: from / 1000, xMax: to / 1000, yMax: roundUp(max(slices.Max(s.ThroughputMax), greatest(s.Offered))), xLabel: timeLabel}
	lower := panel{left: frameLeft, top: timeTop + timeThroughput + timeGap, width: frameWidth, height: timeLatency, xMin: upper.xMin, xMax: upper.xMax, yMax: roundUp(slices.Max(s.Latency)), xLabel: timeLabel}
	bottom := lower.top + lower.height
	named := min(len(s.Marks), mostNamedMarks)
	lines := named
	if len(s.Marks) > named {
		lines++
	}
	b := &strings.Builder{}
	openSVG(b, id, bottom+44+float64(lines)*legendLine, "Throughput and latency over time, "+name, describeTimes(s))
	for _, outside := range [][2]float64{{upper.xMin, 0}, {s.MeasureMillis / 1000, upper.xMax}} {
		if a, z := upper.x(outside[0]), upper.x(outside[1]); outside[0] < outside[1] && z > a {
			for _, p := range []panel{upper, lower} {
				fmt.Fprintf(b, `<rect class="outside" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", a, p.top, z-a, p.height)
			}
		}
	}
	upper.grid(b, "throughput (tx/s)", false)
	lower.grid(b, "mean latency (ms)", true)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frameLeft+frameWidth/2, bottom+36, timeLabel)
	middle := func(i int) float64 { return (from + width*(float64(i)+0.5)) / 1000 }
	b.WriteString(`<g class="c0">` + "\n")
	if s.Trials > 1 {
		var up, down strings.Builder
		last := len(s.Throughput) - 1
		for i := range s.Throughput {
			fmt.Fprintf(&up, "%c%.1f,%.1f", penFor(i), upper.x(middle(i)), upper.y(s.ThroughputMax[i]))
			fmt.Fprintf(&down, "L%.1f,%.1f", upper.x(middle(last-i)), upper.y(s.ThroughputMin[last-i]))
		}
		fmt.Fprintf(b, `<path class="band" d="%s%sZ"%s/>`+"\n", up.String(), down.String(), data("name", "trials"))
	}
	all := func(int) bool { return true }
	fmt.Fprintf(b, `<path class="line thin" d="%s"/>`+"\n</g>\n", pathOf(len(s.Throughput), all, func(i int) (x, y float64) { return upper.x(middle(i)), upper.y(s.Throughput[i]) }))
	if len(s.Offered) > 0 {
		fmt.Fprintf(b, `<g class="c2"><path class="line thin" d="%s"%s%s/></g>`+"\n", pathOf(len(s.Offered), all, func(i int) (x, y float64) { return upper.x(middle(i)), upper.y(s.Offered[i]) }), dashOf(dashes[2]), data("name", "load"))
	}
	some := func(i int) bool { return s.Committed[i] > 0 }
	fmt.Fprintf(b, `<g class="c1"><path class="line thin" d="%s"/></g>`+"\n", pathOf(len(s.Latency), some, func(i int) (x, y float64) { return lower.x(middle(i)), lower.y(s.Latency[i]) }))
	drawMarks(b, s.Marks, upper, bottom)
	for i, m := range s.Marks[:named] {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", frameLeft, bottom+54+float64(i)*legendLine, html.EscapeString(markLetter(i)+": "+markText(m)))
	}
	if lines > named {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">and %d more</text>`+"\n", frameLeft, bottom+54+float64(named)*legendLine, len(s.Marks)-named)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func greatest(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values)
}

// pathOf joins neighbouring points that exist. A point without neighbours becomes a short stroke,
// so that it is visible.
func pathOf(n int, exists func(int) bool, place func(int) (x, y float64)) string {
	var b strings.Builder
	for i := range n {
		if !exists(i) {
			continue
		}
		x, y := place(i)
		before, after := i > 0 && exists(i-1), i+1 < n && exists(i+1)
		switch {
		case before:
			fmt.Fprintf(&b, "L%.1f,%.1f", x, y)
		case after:
			fmt.Fprintf(&b, "M%.1f,%.1f", x, y)
		default:
			fmt.Fprintf(&b, "M%.1f,%.1fh2", x-1, y)
		}
	}
	return b.String()
}

// drawMarks draws a line for each mark through both panels. It draws a band if the trials' instants
// differ by more than the width of the line.
func drawMarks(b *strings.Builder, marks []results.FaultMark, p panel, bottom float64) {
	for i, m := range marks {
		x := p.x(m.Millis / 1000)
		if a, z := p.x(m.MinMillis/1000), p.x(m.MaxMillis/1000); z-a > 2 {
			fmt.Fprintf(b, `<rect class="spread" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", a, p.top, z-a, bottom-p.top)
		}
		class, triangle := "mark", "l-5,-8h10z"
		if m.Ends {
			class = "mark ends"
		}
		fmt.Fprintf(b, `<path class="%s" d="M%.1f,%.1fV%.1f"/><path class="%s head" d="M%.1f,%.1f%s"><title>%s</title></path>`,
			class, x, p.top, bottom, class, x, p.top, triangle, html.EscapeString(markText(m)))
		if i < mostNamedMarks {
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, p.top-11, markLetter(i))
		}
		b.WriteString("\n")
	}
}

func markLetter(i int) string { return string(rune('A' + i)) }

// markText says what a mark is.
func markText(m results.FaultMark) string {
	text := m.Fault
	if m.Time > 1 {
		text += fmt.Sprintf(" (time %d)", m.Time)
	}
	verb := "began"
	if m.Ends {
		verb = "ended"
	}
	kind := model.WithObject(m.Kind, m.Object)
	switch k := timeline.Kind(m.Kind); { // as model.begins says
	case k.ByChaosMesh():
		text += fmt.Sprintf(" %s (%s), asked for at %.3f s", verb, kind, m.Millis/1000)
	case k.ConfirmedLate():
		text += fmt.Sprintf(" (%s) began at %.3f s", kind, m.Millis/1000)
	default:
		text += fmt.Sprintf(" %s (%s), confirmed at %.3f s", verb, kind, m.Millis/1000)
	}
	if m.MaxMillis-m.MinMillis >= 0.5 {
		text += fmt.Sprintf(" (%.3f to %.3f s)", m.MinMillis/1000, m.MaxMillis/1000)
	}
	if m.ConfirmedMillis > 0 {
		text += fmt.Sprintf(", confirmed by %.3f s", m.ConfirmedMillis/1000)
	}
	return text
}

// describeTimes puts a plot over time into words: the marks, and the numbers around them.
func describeTimes(s results.PointSeries) string {
	parts := []string{fmt.Sprintf("Mean throughput of %s in bins of %d ms, from %g to %g s.", model.Count(s.Trials, "trial"), s.IntervalMillis,
		float64(s.FirstMillis)/1000, float64(s.FirstMillis+s.IntervalMillis*int64(len(s.Throughput)))/1000)}
	lowest, at := math.Inf(1), 0.0
	for i, y := range s.Throughput {
		start := float64(s.FirstMillis) + float64(s.IntervalMillis)*float64(i)
		if start >= 0 && start < s.MeasureMillis && y < lowest {
			lowest, at = y, start
		}
	}
	if !math.IsInf(lowest, 1) {
		parts = append(parts, fmt.Sprintf("In the window it is least at %g s with %.0f tx/s; the most is %.0f tx/s; the highest mean latency of a bin is %.0f ms.",
			at/1000, lowest, slices.Max(s.Throughput), slices.Max(s.Latency)))
	}
	if len(s.Offered) > 0 {
		parts = append(parts, fmt.Sprintf("Of requests, %.0f to %.0f per second were offered.", slices.Min(s.Offered), slices.Max(s.Offered)))
	}
	for _, m := range s.Marks[:min(len(s.Marks), mostNamedMarks)] {
		parts = append(parts, markText(m)+".")
	}
	return strings.Join(parts, " ")
}
