package printable

import "strings"

var texEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
	`~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `<`, `$<$`, `>`, `$>$`, `|`, `$|$`, `"`, `''`,
	"≈", `$\approx$`, "≥", `$\geq$`, "≤", `$\leq$`, "±", `$\pm$`, "µ", `$\mu$`, "×", `$\times$`, "–", "--", "…", `\ldots{}`, "\n", " ", "\r", " ")

// TeX writes text so that LaTeX prints it as it is.
func TeX(s string) string { return texEscapes.Replace(s) }
