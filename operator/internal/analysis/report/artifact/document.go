package artifact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/text/printable"
)

// A document is written twice, as LaTeX and as Markdown. Its text marks code by two characters that
// no text of a user keeps.
type document []section

// section has a title, and a level from 1.
type section struct {
	level int
	title string
	body  []any // paragraph, list, terms or commands
}

type (
	paragraph string
	list      []string
	// terms are entries with a name in bold.
	terms []term
	// commands are lines for a shell.
	commands []string
)

type term struct{ name, text string }

const codeBegins, codeEnds = "\ue000", "\ue001"

var codeMarks = strings.NewReplacer(codeBegins, "", codeEnds, "")

// code marks a text as code.
func code(text string) string { return codeBegins + codeMarks.Replace(text) + codeEnds }

// parts calls plain for texts between the marks and inCode for texts within them, in order.
func parts(text string, plain, inCode func(string) string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, codeBegins)
		b.WriteString(plain(before))
		if !found {
			return b.String()
		}
		within, after, _ := strings.Cut(rest, codeEnds)
		b.WriteString(inCode(within))
		text = after
	}
}

// markdown of a document.
func (d document) markdown() string {
	var b strings.Builder
	for i, s := range d {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s %s\n", strings.Repeat("#", s.level), markdownText(s.title))
		for _, part := range s.body {
			b.WriteString("\n")
			switch p := part.(type) {
			case paragraph:
				b.WriteString(markdownText(string(p)) + "\n")
			case list:
				for _, item := range p {
					b.WriteString("- " + markdownText(item) + "\n")
				}
			case terms:
				for _, t := range p {
					fmt.Fprintf(&b, "- **%s** %s\n", markdownText(t.name), markdownText(t.text))
				}
			case commands:
				b.WriteString("```sh\n" + strings.Join(p, "\n") + "\n```\n")
			}
		}
	}
	return b.String()
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "|", `\|`, "#", `\#`, "\n", " ", "\r", " ")

func markdownText(text string) string {
	return parts(text, markdownEscapes.Replace, func(within string) string {
		within = strings.ReplaceAll(within, "\n", " ")
		if strings.Contains(within, "`") {
			return "`` " + within + " ``"
		}
		return "`" + within + "`"
	})
}

// latex of a document, to be taken with \input: it needs no package.
func (d document) latex() string {
	var b strings.Builder
	commandOf := []string{"section", "subsection", "subsubsection"}
	for _, s := range d {
		fmt.Fprintf(&b, "\n\\%s{%s}\n", commandOf[min(s.level, len(commandOf))-1], latexText(s.title))
		for _, part := range s.body {
			b.WriteString("\n")
			switch p := part.(type) {
			case paragraph:
				b.WriteString(latexText(string(p)) + "\n")
			case list:
				latexItems(&b, p, func(item string) string { return "\\item " + latexText(item) })
			case terms:
				b.WriteString("\\begin{description}\n")
				for _, t := range p {
					fmt.Fprintf(&b, "  \\item[%s] %s\n", latexText(t.name), latexText(t.text))
				}
				b.WriteString("\\end{description}\n")
			case commands:
				b.WriteString("\\begin{quote}\\small\\raggedright\n")
				for i, line := range p {
					end := " \\\\\n"
					if i == len(p)-1 {
						end = "\n"
					}
					b.WriteString("  " + latexCode(line) + end)
				}
				b.WriteString("\\end{quote}\n")
			}
		}
	}
	return b.String()
}

func latexItems(b *strings.Builder, items []string, line func(string) string) {
	if len(items) == 0 {
		return
	}
	b.WriteString("\\begin{itemize}\n")
	for _, item := range items {
		b.WriteString("  " + line(item) + "\n")
	}
	b.WriteString("\\end{itemize}\n")
}

func latexText(text string) string { return parts(text, latexPlain, latexCode) }

// beyondLaTeX are characters that LaTeX's usual fonts may lack: it would stop at each.
var beyondLaTeX = regexp.MustCompile(`[^\x00-\x{17f}\x{2013}\x{2014}\x{2018}-\x{201d}\x{2022}\x{2026}\x{20ac}≈≥≤]`)

func latexPlain(text string) string {
	return printable.TeX(beyondLaTeX.ReplaceAllStringFunc(text, func(character string) string {
		r, _ := utf8.DecodeRuneInString(character)
		return fmt.Sprintf("U+%04X", r)
	}))
}

// latexCode is text in a typewriter's font, which may be broken after some characters: lines of
// code do not fit into columns. Neighbouring hyphens would become one dash.
func latexCode(text string) string {
	text = latexPlain(strings.ReplaceAll(text, "'", "\ue002"))
	text = strings.NewReplacer("''", `{\char34}`, "\ue002", `{\char39}`, "U+E002", `{\char39}`, "--", `-{}-`, "/", `/\allowbreak{}`, "=", `=\allowbreak{}`, `\_`, `\_\allowbreak{}`, ",", `,\allowbreak{}`, "(", `(\allowbreak{}`).Replace(text)
	return `\texttt{` + longHex.ReplaceAllStringFunc(text, func(digits string) string {
		var pieces []string
		for piece := range slices.Chunk([]byte(digits), 8) {
			pieces = append(pieces, string(piece))
		}
		return strings.Join(pieces, `\allowbreak{}`)
	}) + `}`
}

// longHex is a digest, which is wider than a column.
var longHex = regexp.MustCompile(`[0-9a-f]{32,}`)
