package plot

import (
	"fmt"
	"html"
	"math"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
)

// panel maps values onto a rectangle of an SVG.
type panel struct {
	left, top, width, height float64
	xMin, xMax, yMax         float64 // y starts at 0
	logX                     bool
	xLabel                   string // for the page's script
}

func (p panel) x(v float64) float64 {
	lo, hi := p.xMin, p.xMax
	if p.logX {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(math.Max(v, p.xMin))
	}
	return p.left + p.width*(math.Min(math.Max(v, lo), hi)-lo)/(hi-lo)
}

func (p panel) y(v float64) float64 {
	return p.top + p.height*(1-math.Min(math.Max(0, v), p.yMax)/p.yMax)
}

// grid draws the lines of both axes; the values of x are written under the panel when it is the
// lowest.
func (p panel) grid(b *strings.Builder, yLabel string, lowest bool) {
	step := niceStep(p.yMax)
	for i := 0.0; i*step <= p.yMax*1.0001; i++ {
		v := i * step
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", p.left, p.y(v), p.width, p.left-8, p.y(v)+4, document.Tick(v))
	}
	for _, v := range p.xTicks() {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/>`+"\n", p.x(v), p.top, p.height)
		if lowest {
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", p.x(v), p.top+p.height+18, document.Tick(v))
		}
	}
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle"%s>%s</text>`+"\n", p.top+p.height/2, frameData(p, 0, false, p.xLabel, yLabel), html.EscapeString(yLabel))
}

func (p panel) xTicks() []float64 {
	var ticks []float64
	if !p.logX {
		step := niceStep((p.xMax - p.xMin) / 2) // time has twice as many ticks as the rest
		for i := int(math.Ceil(p.xMin/step - 1e-9)); float64(i)*step <= p.xMax+step*1e-9; i++ {
			ticks = append(ticks, float64(i)*step)
		}
		return ticks
	}
	several := []float64{1, 2, 5}
	if math.Log10(p.xMax/p.xMin) > 3 {
		several = several[:1]
	}
	for power := math.Pow(10, math.Floor(math.Log10(p.xMin))); power <= p.xMax; power *= 10 {
		for _, m := range several {
			if v := m * power; v >= p.xMin*0.999 && v <= p.xMax*1.001 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// roundUp is the least tick that is not below the greatest value, so that a curve ends inside of
// its panel.
func roundUp(greatest float64) float64 {
	step := niceStep(greatest)
	return math.Max(step, math.Ceil(greatest/step)*step)
}

// openSVG starts a picture with its text alternative: a title, and a description with the numbers
// that the curves show.
func openSVG(b *strings.Builder, id string, height float64, title, description string) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`+"\n",
		plotWidth, height, id, id, id, html.EscapeString(title), id, html.EscapeString(description))
}
