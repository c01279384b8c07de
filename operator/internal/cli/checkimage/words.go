package checkimage

import (
	"regexp"
	"slices"
	"strings"
)

// builtins are words of a shell's command that are no programs: keywords, and commands that shells
// run themselves.
var builtins = strings.Fields(`! { } [ [[ : . if then else elif fi for while until do done case esac in select function time
	alias bg break cd command continue declare echo eval exec exit export false fg getopts hash jobs kill let local printf pwd read readonly return set
	shift shopt source test times trap true type ulimit umask unset wait`)

// leading are builtins after which a command begins.
var leading = strings.Fields(`! { if then else elif while until do exec command eval time`)

var (
	separators  = regexp.MustCompile("\\|\\|?|&&?|;;?|\n|\\$?\\(|\\)|`")
	assignment  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	programWord = regexp.MustCompile(`^[A-Za-z0-9_./][-A-Za-z0-9_./+]*$`)
	templates   = regexp.MustCompile(`\{\{[^}]*\}\}`)
	arithmetic  = regexp.MustCompile(`\$\(\(([^()]|\([^()]*\))*\)\)`)
	quotes      = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	caseLabel   = regexp.MustCompile(`^\S*\)$`)
)

// programsIn guesses which words of a shell's script are programs: words that begin a command and
// are no builtin. It is a guess, since programsIn does not parse quotes, substitutions and
// functions.
func programsIn(script string) map[string]bool {
	out := map[string]bool{}
	script = templates.ReplaceAllString(script, "X")
	var lines []string
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines = append(lines, line)
		}
	}
	script = quotes.ReplaceAllString(arithmetic.ReplaceAllString(strings.Join(lines, ""), "X"), "Q")
	for _, part := range separators.Split(script, -1) {
		words := strings.Fields(part)
		if slices.Contains(words, "in") && len(words) > 0 && (words[0] == "case" || words[0] == "for") {
			continue
		}
		for len(words) > 0 && (slices.Contains(leading, words[0]) || assignment.MatchString(words[0]) || caseLabel.MatchString(words[0])) {
			words = words[1:]
		}
		if len(words) == 0 || slices.Contains(builtins, words[0]) || !programWord.MatchString(words[0]) || words[0] == "Q" || words[0] == "X" {
			continue
		}
		if strings.Trim(words[0], "0123456789") != "" {
			out[words[0]] = true
		}
	}
	return out
}
