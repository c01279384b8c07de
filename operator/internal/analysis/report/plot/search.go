package plot

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/experiment/capacity"
)

const (
	// probabilityLabel is the label of the Y axis.
	probabilityLabel = "P(trial meets the objective)"
	// searchMargin is the part of the frame above 1 and below 0, for the trials.
	searchMargin = 0.16
)

func drawSearch(p document.SearchPlot, id string) string {
	low, high := p.Loads()
	frame := panel{left: frameLeft, top: frameTop, width: frameWidth, height: frameHeight, xMin: low, xMax: high, yMax: 1 + 2*searchMargin, logX: document.Wide([]float64{low, math.Sqrt(low * high), high})}
	y := func(chance float64) float64 { return frame.y(chance + searchMargin) }
	b := &strings.Builder{}
	openSVG(b, id, plotHeight+float64(len(p.Curves))*legendLine, p.Title+": "+probabilityLabel+" over "+p.Axis, describeSearch(p))
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frameLeft, y(v), frameWidth, frameLeft-8, y(v)+4, document.Tick(v))
	}
	for _, v := range frame.xTicks() {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frame.x(v), frameTop, frameHeight, frame.x(v), frameTop+frameHeight+18, document.Tick(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frameLeft+frameWidth/2, plotHeight-14, html.EscapeString(axisText(p.Axis, frame.logX)))
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle"%s>%s</text>`+"\n", frameTop+frameHeight/2, searchData(p, frame), probabilityLabel)
	row := searchMargin * frameHeight / (1 + 2*searchMargin) / float64(len(p.Curves)+1)
	for i, c := range p.Curves {
		drawSearchCurve(c, b, frame, y, row*float64(i+1))
		at := plotHeight + float64(i)*legendLine
		fmt.Fprintf(b, `<g class="c%d"><path class="line" d="M%.1f,%.1fh26"/>`, c.Style, frameLeft-20, at)
		dot(b, c.Style, false, frameLeft-7, at, "")
		fmt.Fprintf(b, `</g><text x="%.1f" y="%.1f">%s</text>`+"\n", frameLeft+12, at+4, html.EscapeString(shortLegend(c.Legend())))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// searchData of the frame: the probability has a margin above 1 and below 0.
func searchData(p document.SearchPlot, frame panel) string {
	frame.yMax = 1 + searchMargin
	return frameData(frame, -searchMargin, false, p.Axis, probabilityLabel)
}

// drawSearchCurve draws the curve, the interval, and the trials. The trials lie away units above 1
// and below 0.
func drawSearchCurve(c document.SearchCurve, b *strings.Builder, frame panel, y func(float64) float64, away float64) {
	fmt.Fprintf(b, `<g class="c%d"><path class="line"%s d="%s"/>`+"\n", c.Style, data("name", c.Name),
		pathOf(len(c.Loads), func(int) bool { return true }, func(i int) (float64, float64) { return frame.x(c.Loads[i]), y(c.Chances[i]) }))
	for _, t := range c.Trials {
		at := y(0) + away
		if t.Met {
			at = y(1) - away
		}
		fmt.Fprintf(b, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, frame.x(t.Load), at, trialDot)
	}
	if k := c.Capacity; k.Capacity != nil && k.Low != nil && k.High != nil {
		low, high, middle := frame.x(*k.Low), frame.x(*k.High), y(0.5)
		fmt.Fprintf(b, `<path class="line" d="M%.1f,%.1fH%.1fM%.1f,%.1fv12M%.1f,%.1fv12"/>`+"\n", low, middle, high, low, middle-6, high, middle-6)
		dot(b, c.Style, false, frame.x(*k.Capacity), middle, html.EscapeString(c.Legend()))
	}
	b.WriteString("</g>\n")
}

func describeSearch(p document.SearchPlot) string {
	var parts []string
	for _, c := range p.Curves {
		met := 0
		for _, t := range c.Trials {
			if t.Met {
				met++
			}
		}
		last := len(c.Chances) - 1
		parts = append(parts, fmt.Sprintf("%s; %d of %s met the objective; the probability falls from %.2f at %s to %.2f at %s.",
			c.Legend(), met, model.Count(len(c.Trials), "trial"), c.Chances[0], document.Tick3(c.Loads[0]), c.Chances[last], document.Tick3(c.Loads[last])))
	}
	return strings.Join(parts, " ")
}

// searchFigure is the plot as data. For each search it has the probability, the trials by load, and
// the capacity.
func searchFigure(p document.SearchPlot, name string) Figure {
	f := Figure{Name: name, Title: p.Title, X: FigureAxis{Label: p.Axis, Tight: true}, Y: FigureAxis{Label: probabilityLabel}}
	for _, c := range p.Curves {
		of := c.Name + ": "
		if len(p.Curves) == 1 {
			of = ""
		}
		line := FigureCurve{Name: of + "probability", Style: c.Style, Color: curveColor(c.Style), Line: true, Search: true}
		for i, x := range c.Loads {
			line.Points = append(line.Points, FigurePoint{X: x, Y: c.Chances[i]})
		}
		dots := FigureCurve{Name: of + "share of trials", Style: c.Style, Color: line.Color, Dots: true, Search: true}
		for _, load := range loadsOf(c.Trials) {
			met, of := 0.0, 0.0
			for _, t := range c.Trials {
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
		if k := c.Capacity; k.Capacity != nil && k.Low != nil && k.High != nil {
			f.Curves = append(f.Curves, FigureCurve{Name: of + "95% interval", Style: c.Style + 1, Color: line.Color, Dots: true, Search: true,
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
