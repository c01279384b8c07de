package format

import (
	"crypto/sha256"
	_ "embed" // page.js
	"encoding/base64"
	"html/template"
)

// pageScript shows values of figures below the pointer and enlarges them. A page is whole without.
//
//go:embed page.js
var pageScript string

// Script is the page's script, for the live page: it serves the script beside its own.
func Script() string { return pageScript }

// ScriptSource names the page's only script in a Content-Security-Policy, by the hash of its text.
func ScriptSource() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pagePolicy forbids a page to load anything, and to run any script but its own. If text of a
// stranger's results were not escaped, it would still not run as a script.
func pagePolicy() string {
	return `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src ` + ScriptSource() + `; base-uri 'none'; form-action 'none'">`
}

// scriptElement has the script as it is hashed: a template would leave out its comments.
func scriptElement() template.HTML {
	return template.HTML("<script>" + pageScript + "</script>") // #nosec G203 -- a constant of this package
}
