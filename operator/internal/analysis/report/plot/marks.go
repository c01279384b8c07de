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

// dot draws a dot of a curve, with what it says when pointed at. The paper's are hollow.
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

// dashOf is the attribute of a dashed line; none for a solid one.
func dashOf(pattern string) string {
	if pattern == "" {
		return ""
	}
	return ` stroke-dasharray="` + pattern + `"`
}
