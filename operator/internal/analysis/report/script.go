package report

import (
	"crypto/sha256"
	_ "embed" // page.js
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
)

// pageScript shows values of figures below the pointer and enlarges them. A page is whole without.
//
//go:embed page.js
var pageScript string

// ScriptSource names the page's only script in a Content-Security-Policy, by the hash of its text.
func ScriptSource() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pagePolicy forbids a page to load anything, and to run any script but its own: a text of a
// stranger's results that were not escaped would be no script.
func pagePolicy() string {
	return `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src ` + ScriptSource() + `; base-uri 'none'; form-action 'none'">`
}

// scriptElement has the script as it is hashed: a template would leave out its comments.
func scriptElement() template.HTML {
	return template.HTML("<script>" + pageScript + "</script>") // #nosec G203 -- a constant of this package
}

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
