package plot

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/results"
)

// usePlot draws the use of resources by the parts of a point over time, with the marks of its
// faults. Empty: the use is unknown.
func usePlot(s results.PointSeries, id, name string) string {
	xMin, xMax, cores, sent := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for _, u := range s.Use {
		xMin = min(xMin, float64(u.FirstMillis)/1000)
		xMax = max(xMax, float64(u.FirstMillis+u.IntervalMillis*int64(len(u.Cores)))/1000)
		cores, sent = max(cores, slices.Max(u.Cores)), max(sent, slices.Max(u.SentPerSecond)/1e6)
	}
	if cores <= 0 {
		return ""
	}
	upper := panel{left: frameLeft, top: timeTop, width: frameWidth, height: timeThroughput, xMin: xMin, xMax: xMax, yMax: roundUp(cores), xLabel: timeLabel}
	lower := panel{left: frameLeft, top: timeTop + timeThroughput + timeGap, width: frameWidth, height: timeLatency, xMin: xMin, xMax: xMax, yMax: roundUp(sent), xLabel: timeLabel}
	bottom := lower.top + lower.height
	b := &strings.Builder{}
	openSVG(b, id, bottom+54+legendLine*float64((len(s.Use)+1)/2), "Processors and network over time, "+name, describeUse(s))
	for _, outside := range [][2]float64{{xMin, 0}, {s.MeasureMillis / 1000, xMax}} {
		if a, z := upper.x(outside[0]), upper.x(outside[1]); outside[0] < outside[1] && z > a {
			for _, p := range []panel{upper, lower} {
				fmt.Fprintf(b, `<rect class="outside" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", a, p.top, z-a, p.height)
			}
		}
	}
	upper.grid(b, "processors used", false)
	lower.grid(b, "sent (MB/s)", true)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frameLeft+frameWidth/2, bottom+36, timeLabel)
	for i, u := range s.Use {
		middle := func(k int) float64 {
			return (float64(u.FirstMillis) + float64(u.IntervalMillis)*(float64(k)+0.5)) / 1000
		}
		known := func(k int) bool { return u.Cores[k] >= 0 }
		style := i % document.ManyCurves
		keyX, keyY := frameLeft+float64(i%2)*legendColumn, bottom+54+legendLine*float64(i/2)
		fmt.Fprintf(b, `<g class="c%d">`, style)
		for _, d := range []string{
			pathOf(len(u.Cores), known, func(k int) (x, y float64) { return upper.x(middle(k)), upper.y(u.Cores[k]) }),
			pathOf(len(u.Cores), known, func(k int) (x, y float64) { return lower.x(middle(k)), lower.y(u.SentPerSecond[k] / 1e6) }),
			fmt.Sprintf("M%.1f,%.1fh26", keyX, keyY),
		} {
			fmt.Fprintf(b, `<path class="line thin" d="%s"%s%s/>`, d, dashOf(dashes[style]), data("name", partName(u.Part)))
		}
		fmt.Fprintf(b, `</g><text x="%.1f" y="%.1f">%s</text>`+"\n", keyX+32, keyY+4, html.EscapeString(partName(u.Part)))
	}
	drawMarks(b, s.Marks, upper, bottom)
	b.WriteString("</svg>\n")
	return b.String()
}

// partName is the name of a part's pods in a legend.
func partName(part string) string { return "all " + part + "s" }

// describeUse puts a plot of resources into words.
func describeUse(s results.PointSeries) string {
	var parts []string
	for _, u := range s.Use {
		sum, n := 0.0, 0
		for i, c := range u.Cores {
			if start := u.FirstMillis + u.IntervalMillis*int64(i); c >= 0 && start >= 0 && float64(start) < s.MeasureMillis {
				sum, n = sum+c, n+1
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("In the window %s use %.2f processors in the mean, and %.2f at most.", partName(u.Part), sum/float64(n), slices.Max(u.Cores)))
		}
	}
	return strings.Join(parts, " ")
}
