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
	"assay.dev/assay/operator/internal/results"
)

// mostCDFs is how many plots of distributions a page has.
const mostCDFs = 12

// Distributions draws the latencies' distributions. There is a plot for each value of the axis that
// is a number, with a curve for each variant. If no axis is a number, there is one plot, or more if
// one cannot hold all points.
func Distributions(e results.Experiment) (plots []Drawn, note string) {
	axis, ok := document.NumericAxis(e)
	groups := map[string][]results.PointLatency{}
	var order []string
	for i, l := range e.Latencies {
		key := fmt.Sprint(i / document.ManyCurves)
		if ok {
			key = axis + " = " + l.Coordinates[axis]
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], l)
	}
	others := slices.DeleteFunc(slices.Clone(e.Axes), func(a results.Axis) bool { return ok && a.Name == axis || len(a.Values) < 2 })
	for i, key := range order {
		if i == mostCDFs {
			return plots, fmt.Sprintf("The first %d of %d distributions are drawn.", mostCDFs, len(order))
		}
		for len(groups[key]) > 0 {
			n := min(document.ManyCurves, len(groups[key]))
			title := "Latency"
			if ok {
				title += ", " + key
			}
			plots = append(plots, Drawn{Title: title, SVG: escaped(cdfPlot(groups[key][:n], others, fmt.Sprintf("cdf%d", len(plots)), title))})
			groups[key] = groups[key][n:]
		}
	}
	return plots, ""
}

// CDFLegend says how to read the distributions.
const CDFLegend = "Share of the transactions that took at most so long, of all that the valid trials of a point committed in the window: their histograms are merged, so that a percentile here is that of all transactions, and not the mean of the trials' percentiles that the table of points has. One bad trial moves the two apart. Dots: median, p90, p99; n: transactions. " +
	"The time's axis is logarithmic; a curve ends where there are too few transactions to show more."

// cdfCaption says what was measured for a plot of distributions.
const cdfCaption = "All transactions that the valid trials of a point committed in the window: their histograms are merged."

// cdfPlot draws the distributions of some points.
func cdfPlot(points []results.PointLatency, axes []results.Axis, id, title string) string {
	least, greatest := math.Inf(1), 0.0
	var says, legend []string
	for _, l := range points {
		for _, ms := range l.Millis {
			least, greatest = math.Min(least, math.Max(ms, 0.001)), math.Max(greatest, ms)
		}
		texts := latencyTexts(l, cmp.Or(model.At(axes, l.Coordinates), "all"))
		says = append(says, texts[0]+".")
		legend = append(legend, shortLegend(texts...))
	}
	if greatest == 0 {
		least, greatest = 0.1, 1
	}
	p := panel{left: frameLeft, top: frameTop, width: frameWidth, height: frameHeight, xMin: niceBelow(least), xMax: niceAbove(greatest), yMax: 1, logX: true, xLabel: "latency (ms)"}
	b := &strings.Builder{}
	openSVG(b, id, plotHeight+float64(len(points))*legendLine, title+": share of transactions over latency in ms", strings.Join(says, " "))
	p.grid(b, "share of transactions", true)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">latency (ms), logarithmic</text>`+"\n", frameLeft+frameWidth/2, plotHeight-14)
	for i, l := range points {
		fmt.Fprintf(b, `<g class="c%d"><path class="line" d="%s"%s%s/>`+"\n", i,
			pathOf(len(l.Millis), func(int) bool { return true }, func(k int) (x, y float64) { return p.x(l.Millis[k]), p.y(l.Percentiles[k] / 100) }), dashOf(dashes[i]), data("name", cmp.Or(model.At(axes, l.Coordinates), "all")))
		for _, q := range []float64{50, 90, 99} {
			if k := slices.Index(l.Percentiles, q); k >= 0 {
				text := fmt.Sprintf("p%g: %s ms", q, model.Short(l.Millis[k]))
				dotSaying(b, i, false, p.x(l.Millis[k]), p.y(q/100), html.EscapeString(text), cmp.Or(model.At(axes, l.Coordinates), "all")+"\n"+text)
			}
		}
		y := plotHeight + float64(i)*legendLine
		fmt.Fprintf(b, `<path class="line" d="M%.1f,%.1fh40"%s/>`, frameLeft-20, y, dashOf(dashes[i]))
		dot(b, i, false, frameLeft, y, "")
		fmt.Fprintf(b, `</g><text x="%.1f" y="%.1f">%s</text>`+"\n", frameLeft+28, y+4, html.EscapeString(legend[i]))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// latencyTexts summarize a distribution, the longest text first.
func latencyTexts(l results.PointLatency, name string) []string {
	var texts []string
	for _, percentiles := range [][]float64{{50, 90, 99}, {50, 99}, {50}, nil} {
		text := fmt.Sprintf("%s: n=%d", name, l.Count)
		for _, p := range percentiles {
			if i := slices.Index(l.Percentiles, p); i >= 0 {
				text += fmt.Sprintf(", p%g %s ms", p, document.Tick3(l.Millis[i]))
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// longestLegend is how many characters fit beside a plot's dot, in the widest font that is common.
const longestLegend = 73

// shortLegend is the first of the texts that fits, or the last one cut off; the whole is in the
// plot's description.
func shortLegend(texts ...string) string {
	var last []rune
	for _, text := range texts {
		if last = []rune(text); len(last) <= longestLegend {
			return text
		}
	}
	return string(last[:longestLegend-1]) + "…"
}

// niceBelow and niceAbove are the next 1, 2 or 5 times a power of ten.
func niceBelow(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*power <= v {
			return m * power
		}
	}
	return power
}

func niceAbove(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power > v {
			return m * power
		}
	}
	return 10 * power
}
