package main

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Sentence is one sentence of a document. A heading and the last words of a block also count as a
// sentence, with or without a full stop.
type Sentence struct {
	Line  int    // of the sentence's block, from 1
	Text  string // code spans are replaced: see code
	Words int
	Table bool // in a cell of a table, or a heading: checked, but left out of the median
}

// code replaces code spans: each counts as one word, and hides the full stops in it.
const code = "`…`"

var parser = goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()

// Sentences returns the sentences of a Markdown document: those of paragraphs, list items, headings
// and cells of tables. It skips code blocks and HTML.
func Sentences(source []byte) []Sentence {
	var found []Sentence
	root := parser.Parse(text.NewReader(source))
	line := 1
	walk := func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
			line = 1 + bytes.Count(source[:n.Lines().At(0).Start], []byte("\n"))
		}
		switch n.Kind() {
		case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading, extast.KindTableCell:
		default:
			return ast.WalkContinue, nil
		}
		var b strings.Builder
		plain(&b, n, source)
		aside := n.Kind() == ast.KindHeading || n.Kind() == extast.KindTableCell
		for _, s := range split(b.String()) {
			found = append(found, Sentence{Line: line, Text: s, Words: words(s), Table: aside})
		}
		return ast.WalkSkipChildren, nil
	}
	if err := ast.Walk(root, walk); err != nil {
		panic(err) // walk returns no error
	}
	return found
}

// plain appends the text of a node without its markup.
func plain(b *strings.Builder, n ast.Node, source []byte) {
	preformatted := false // between <pre> and </pre>, which only tables have
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if tag, ok := c.(*ast.RawHTML); ok {
			switch name := string(tag.Segments.Value(source)); {
			case name == "<pre>":
				preformatted = true
			case name == "</pre>":
				preformatted = false
				b.WriteString(code)
			case strings.HasPrefix(name, "<br"):
				b.WriteByte(' ')
			}
			continue
		}
		if preformatted {
			continue
		}
		switch c := c.(type) {
		case *ast.CodeSpan:
			b.WriteString(code)
		case *ast.AutoLink:
			b.Write(c.Label(source))
		case *ast.Text:
			b.Write(c.Segment.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		default:
			plain(b, c, source)
		}
	}
}

// abbreviations end in a full stop that does not end a sentence.
var abbreviations = map[string]bool{
	"e.g.": true, "i.e.": true, "vs.": true, "cf.": true, "al.": true, "fig.": true, "sec.": true, "no.": true, "approx.": true,
	"incl.": true, "dr.": true, "resp.": true, "p.": true, "pp.": true,
}

// boundary is where a sentence may end: a mark, closing characters, and white space.
var boundary = regexp.MustCompile(`[.!?][)"'”’*_]*\s+`)

// split cuts a block into sentences. A sentence ends at a mark before a word that does not begin
// with a lower-case letter, unless an abbreviation ends there.
func split(block string) []string {
	block = strings.Join(strings.Fields(block), " ")
	var out []string
	start := 0
	for _, m := range boundary.FindAllStringIndex(block, -1) {
		if m[0] < start || !begins(block[m[1]:]) {
			continue
		}
		mark := m[0] + 1
		before := block[start:mark]
		last := strings.ToLower(strings.TrimLeft(before[strings.LastIndexByte(before, ' ')+1:], "(\"'“"))
		if abbreviations[last] {
			continue
		}
		out = append(out, strings.TrimSpace(block[start:m[1]]))
		start = m[1]
	}
	if rest := strings.TrimSpace(block[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

func begins(rest string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, "(\"'“*_"))
	return r != utf8.RuneError && !unicode.IsLower(r)
}

// words counts the words with a letter or a digit.
func words(s string) int {
	n := 0
	for _, w := range strings.Fields(s) {
		if strings.Contains(w, code) || strings.IndexFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0 {
			n++
		}
	}
	return n
}
