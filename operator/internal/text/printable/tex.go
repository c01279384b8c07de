package printable

import "strings"

var texEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
	`~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `<`, `$<$`, `>`, `$>$`, `|`, `$|$`, `"`, `''`,
	"≈", `$\approx$`, "≥", `$\geq$`, "≤", `$\leq$`, "±", `$\pm$`, "µ", `$\mu$`, "×", `$\times$`, "–", "--", "…", `\ldots{}`, "\n", " ", "\r", " ")

// TeX escapes a text so that LaTeX prints the text itself.
func TeX(s string) string { return texEscapes.Replace(s) }
