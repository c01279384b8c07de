package plot

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
)

// shapes of dots, around the origin, as many as there are colours.
var shapes = [document.ManyCurves]string{
	"M-4,0C-4,-2.2,-2.2,-4,0,-4C2.2,-4,4,-2.2,4,0C4,2.2,2.2,4,0,4C-2.2,4,-4,2.2,-4,0z", // circle
	"M-3.5,-3.5h7v7h-7z",      // square
	"M0,-4.5L4.3,3.2H-4.3z",   // triangle
	"M0,-5L4.4,0L0,5L-4.4,0z", // diamond
	"M0,4.5L4.3,-3.2H-4.3z",   // triangle on its tip
	"M-1.5,-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
	"M-4.5,-2.5h9v5h-9z",
	"M-2.5,-4.5h5v9h-5z",
}

// kneeRing is drawn around the knee of a curve.
const kneeRing = "M-8.5,0C-8.5,-4.7,-4.7,-8.5,0,-8.5C4.7,-8.5,8.5,-4.7,8.5,0C8.5,4.7,4.7,8.5,0,8.5C-4.7,8.5,-8.5,4.7,-8.5,0z"

// trialDot is the small dot of one trial.
const trialDot = "M-2,0C-2,-1.1,-1.1,-2,0,-2C1.1,-2,2,-1.1,2,0C2,1.1,1.1,2,0,2C-1.1,2,-2,1.1,-2,0z"

// dashes of lines without dots.
var dashes = [document.ManyCurves]string{"", "7 4", "2 3", "10 3 2 3", "14 4", "5 2 1 2 1 2", "1 2", "10 3 5 3"}

// dot draws a dot of a curve, with the text for a reader who points at it. Dots of the paper are
// hollow.
func dot(b *strings.Builder, style int, paper bool, x, y float64, says string) {
	dotSaying(b, style, paper, x, y, says, "")
}

// dotSaying draws a dot that says more on a page with its script.
func dotSaying(b *strings.Builder, style int, paper bool, x, y float64, says, more string) {
	class := "dot"
	if paper {
		class = "dot hollow"
	}
	fmt.Fprintf(b, `<path class="%s" transform="translate(%.1f,%.1f)" d="%s"%s>`, class, x, y, shapes[style%document.ManyCurves], data("says", more))
	if says != "" {
		fmt.Fprintf(b, "<title>%s</title>", says)
	}
	b.WriteString("</path>\n")
}

// capHalf is half of the stroke across the end of a whisker.
const capHalf = 3.5

// lying and standing are the paths of a whisker, the interval of a mean: thin, and with a stroke
// across each end. Whiskers as thick as a curve and without ends once looked like a curve. An end
// that the frame cuts off has no stroke across.
func lying(y, low, high, left, right float64) string {
	if high <= low {
		return ""
	}
	d := fmt.Sprintf("M%.1f,%.1fH%.1f", low, y, high)
	for _, x := range []float64{low, high} {
		if x > left && x < right {
			d += fmt.Sprintf("M%.1f,%.1fv%g", x, y-capHalf, 2*capHalf)
		}
	}
	return d
}

// standing is for a frame of curves, in which y grows downwards.
func standing(x, low, high float64) string {
	if low <= high {
		return ""
	}
	d := fmt.Sprintf("M%.1f,%.1fV%.1f", x, low, high)
	for _, y := range []float64{low, high} {
		if y > frameTop && y < frameTop+frameHeight {
			d += fmt.Sprintf("M%.1f,%.1fh%g", x-capHalf, y, 2*capHalf)
		}
	}
	return d
}

// whisker draws the path of an interval. It draws nothing if the interval is a point.
func whisker(b *strings.Builder, d string) {
	if d != "" {
		fmt.Fprintf(b, `<path class="whisker" d="%s"/>`+"\n", d)
	}
}

// dashOf is the attribute of a dashed line; none for a solid one.
func dashOf(pattern string) string {
	if pattern == "" {
		return ""
	}
	return ` stroke-dasharray="` + pattern + `"`
}
