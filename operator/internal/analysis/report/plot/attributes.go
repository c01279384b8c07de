package plot

import (
	"fmt"
	"html/template"
	"strings"
)

// data is an attribute for the page's script. Pictures in files of their own leave it out.
func data(name, value string) string {
	if value == "" {
		return ""
	}
	return " data-" + name + `="` + template.HTMLEscapeString(value) + `"`
}

// frameData says what a place in a panel means, for the page's script. It has where the panel lies,
// the ends of both axes, which of them are logarithmic (1), and their labels.
func frameData(p panel, yMin float64, logY bool, xLabel, yLabel string) string {
	text := fmt.Sprintf("%.1f %.1f %.1f %.1f %g %g %g %g %d %d", p.left, p.top, p.width, p.height, p.xMin, p.xMax, yMin, p.yMax, flag(p.logX), flag(logY))
	return data("frame", text) + data("x", xLabel) + data("y", yLabel)
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// isData reports whether an attribute is for the page's script.
func isData(attribute string) bool { return strings.HasPrefix(attribute, "data-") }
