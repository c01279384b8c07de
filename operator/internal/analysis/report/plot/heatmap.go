package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// The heatmap of latency over time has a row for each trial. It shows a trial that is unlike the
// others, which the mean hides.
const (
	heatLevels   = 6
	heatRow      = 16.0
	mostHeatRows = 30
)

// heatmap draws the trials of a point, one below the other. It is empty for a single trial, which
// the plot over time shows completely. Equal steps of the logarithm of latency are steps of
// opacity, so that readers tell them apart on light and dark pages and in print.
func heatmap(s results.PointSeries, id, name string) string {
	rows := s.ByTrial[:min(len(s.ByTrial), mostHeatRows)]
	low, high := latencySpan(rows)
	if len(rows) < 2 || high == 0 {
		return ""
	}
	width := float64(s.IntervalMillis)
	from, to := float64(s.FirstMillis), float64(s.FirstMillis)+width*float64(len(s.Throughput))
	p := panel{left: frameLeft, top: timeTop, width: frameWidth, height: heatRow * float64(len(rows)), xMin: from / 1000, xMax: to / 1000, yMax: 1}
	bottom := p.top + p.height
	b := &strings.Builder{}
	openSVG(b, id, bottom+84, "Mean latency of each trial over time, "+name, describeHeat(s, len(rows), low, high))
	paths := make([]strings.Builder, heatLevels)
	var nothing strings.Builder
	for r, t := range rows {
		y := p.top + heatRow*float64(r)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end"%s%s>%s</text>`, frameLeft-8, y+heatRow-4,
			data("name", "trial "+rowName(t.Name, r)), data("values", heatValues(t.Latency)), rowName(t.Name, r))
		for i := 0; i < len(t.Latency); {
			level, j := levelOf(t.Latency[i], low, high), i
			for j < len(t.Latency) && levelOf(t.Latency[j], low, high) == level {
				j++
			}
			x, z := p.x((from+width*float64(i))/1000), p.x((from+width*float64(j))/1000)
			if level < 0 {
				fmt.Fprintf(&nothing, "M%.1f,%.1fH%.1f", x, y+heatRow/2, z)
			} else {
				fmt.Fprintf(&paths[level], "M%.1f,%.1fH%.1fv%gH%.1fz", x, y, z, heatRow-1, x)
			}
			i = j
		}
	}
	for level := range paths {
		if d := paths[level].String(); d != "" {
			fmt.Fprintf(b, `<path class="heat" fill-opacity="%.2f" d="%s"/>`+"\n", heatOpacity(level), d)
		}
	}
	if nothing.Len() > 0 {
		fmt.Fprintf(b, `<path class="mark ends" d="%s"/>`+"\n", nothing.String())
	}
	drawMarks(b, s.Marks, p, bottom)
	for _, v := range p.xTicks() {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, p.x(v), bottom+18, document.Tick(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frameLeft+frameWidth/2, bottom+36, timeLabel)
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle"%s>trial</text>`+"\n", p.top+p.height/2, frameData(p, 0, false, timeLabel, "mean latency (ms)"))
	heatLegend(b, bottom+50, low, high)
	b.WriteString("</svg>\n")
	return b.String()
}

// heatValues are the latencies of a row for the page's script, with a dash where nothing was
// committed.
func heatValues(ms []float64) string {
	values := make([]string, len(ms))
	for i, v := range ms {
		if values[i] = "-"; v > 0 {
			values[i] = document.Tick3(v)
		}
	}
	return strings.Join(values, " ")
}

// rowName is the number at the end of a trial's name, by which a reader finds it in the table of
// trials. For another name, it is the number of the row.
func rowName(name string, row int) string {
	number := name[strings.LastIndexByte(name, '-')+1:]
	if number == "" || len(number) > 5 || strings.Trim(number, "0123456789") != "" {
		return strconv.Itoa(row + 1)
	}
	return number
}

// heatLegend shows the levels side by side, with the latencies between them below.
func heatLegend(b *strings.Builder, y, low, high float64) {
	const step = 62.0
	edge := func(level int) float64 { return low * math.Pow(high/low, float64(level)/heatLevels) }
	for level := range heatLevels {
		fmt.Fprintf(b, `<path class="heat" fill-opacity="%.2f" d="M%.1f,%.1fh%.1fv12h-%.1fz"/>`, heatOpacity(level), frameLeft+step*float64(level), y, step, step)
	}
	for level := range heatLevels + 1 {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, frameLeft+step*float64(level), y+27, html.EscapeString(document.Tick3(edge(level))))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f">ms; dashed: none</text>`+"\n", frameLeft+step*heatLevels+14, y+11)
}

func heatOpacity(level int) float64 { return 0.06 + 0.9*float64(level)/(heatLevels-1) }

// levelOf is the level of a latency; -1 if nothing was committed.
func levelOf(ms, low, high float64) int {
	switch {
	case ms == 0:
		return -1
	case high <= low:
		return 0
	}
	return min(heatLevels-1, int(heatLevels*math.Log(ms/low)/math.Log(high/low)))
}

// latencySpan is the minimum and the maximum latency of any bin in which something was committed.
func latencySpan(rows []results.TrialSeries) (low, high float64) {
	low = math.Inf(1)
	for _, t := range rows {
		for _, ms := range t.Latency {
			if ms > 0 {
				low, high = math.Min(low, ms), math.Max(high, ms)
			}
		}
	}
	return low, high
}

// describeHeat puts a heatmap into words: where each trial's latency is longest.
func describeHeat(s results.PointSeries, rows int, low, high float64) string {
	parts := []string{fmt.Sprintf("Mean latency of %s in bins of %d ms, from %s to %s ms.", model.Count(rows, "trial"), s.IntervalMillis, document.Tick3(low), document.Tick3(high))}
	if rows < len(s.ByTrial) {
		parts = append(parts, fmt.Sprintf("%d more trials are not drawn.", len(s.ByTrial)-rows))
	}
	for i, t := range s.ByTrial[:rows] {
		longest, at := 0.0, 0
		for k, ms := range t.Latency {
			if ms > longest {
				longest, at = ms, k
			}
		}
		parts = append(parts, fmt.Sprintf("Trial %s (%s): longest %s ms at %g s.", rowName(t.Name, i), t.Name, document.Tick3(longest), float64(s.FirstMillis+s.IntervalMillis*int64(at))/1000))
	}
	return strings.Join(parts, " ")
}
