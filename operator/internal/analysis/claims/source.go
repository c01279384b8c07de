package claims

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// source is an expression as CEL reads it, with the way back to what its author wrote.
//
// CEL has neither keyword arguments nor durations as literals, and claims need both to read like
// prose. So tokens (never text in quotes) are rewritten before CEL sees them:
//
//	f(clients=10, variant='fp')   ->   f({'clients': 10, 'variant': 'fp'})
//	4.1ms                         ->   duration('4.1ms')
type source struct {
	text   string
	origin []int // of each character of text, and of its end: the offset of the character that it comes from
	author []rune
}

// tokenKind is the kind of a token, as the rewriting sees it.
type tokenKind int

const (
	tokenSpace tokenKind = iota // white space and comments
	tokenIdent
	tokenNumber
	tokenString
	tokenOther // operators and brackets
)

type token struct {
	kind  tokenKind
	at    int // offset of its first character
	runes []rune
}

func (t token) is(text string) bool { return string(t.runes) == text }

// rewriter walks the tokens that matter, with a stack of the open brackets.
type rewriter struct {
	source source
	out    []rune
	tokens []token
	open   []bracket
}

// bracket is an open bracket; call and keywords are about the parentheses of a function.
type bracket struct {
	call     bool
	keywords bool
}

// newSource rewrites an expression.
func newSource(expr string) (source, error) {
	r := &rewriter{source: source{author: []rune(expr)}}
	if n := len(r.source.author); n > maxLength {
		return source{}, r.source.errorAt(maxLength, "the expression has %d characters; at most %d are possible", n, maxLength)
	}
	r.tokens = tokens(r.source.author)
	for i := range r.tokens {
		if err := r.token(i); err != nil {
			return source{}, err
		}
	}
	r.source.origin = append(r.source.origin, len(r.source.author))
	r.source.text = string(r.out)
	return r.source, nil
}

func (r *rewriter) token(i int) error {
	t := r.tokens[i]
	if t.kind != tokenSpace && r.top().call && r.startsArgument(i) && r.top().keywords != r.assigns(i) && !t.is(")") {
		return r.source.errorAt(t.at, "write every argument as axis=value")
	}
	switch {
	case t.is("(") || t.is("[") || t.is("{"):
		r.emit(t.at, t.runes)
		b := bracket{call: t.is("(") && r.near(i, -1).kind == tokenIdent}
		b.keywords = b.call && r.assigns(i+1)
		if b.keywords {
			r.emit(t.at, []rune("{"))
		}
		r.open = append(r.open, b)
		if len(r.open) > maxDepth {
			return r.source.errorAt(t.at, "brackets nest deeper than %d", maxDepth)
		}
		return nil
	case t.is(")") || t.is("]") || t.is("}"):
		if r.top().keywords {
			r.emit(t.at, []rune("}"))
		}
		if len(r.open) > 0 {
			r.open = r.open[:len(r.open)-1]
		}
	case t.kind == tokenIdent && r.top().keywords && r.startsArgument(i):
		r.emit(t.at, []rune("'"+string(t.runes)+"'"))
		return nil
	case t.is("="):
		if !r.top().keywords || !r.startsArgument(i-r.back(i)) {
			return r.source.errorAt(t.at, "a single = belongs to an argument, as in clients=10; compare with <, <=, > or >=")
		}
		r.emit(t.at, []rune(":"))
		return nil
	case t.kind == tokenNumber && isDuration(t.runes):
		r.emit(t.at, []rune("duration('"+string(t.runes)+"')"))
		return nil
	}
	r.emit(t.at, t.runes)
	return nil
}

func (r *rewriter) top() bracket {
	if len(r.open) == 0 {
		return bracket{}
	}
	return r.open[len(r.open)-1]
}

// near is the next token that is not space before (step -1) or after (step 1) the i-th.
func (r *rewriter) near(i, step int) token {
	for i += step; i >= 0 && i < len(r.tokens); i += step {
		if r.tokens[i].kind != tokenSpace {
			return r.tokens[i]
		}
	}
	return token{}
}

// back is how many tokens lie between the i-th and the one before it that is not space, plus one.
func (r *rewriter) back(i int) int {
	n := 1
	for i-n > 0 && r.tokens[i-n].kind == tokenSpace {
		n++
	}
	return n
}

// startsArgument reports whether the i-th token is the first of an argument, given that it is in
// the parentheses of a call.
func (r *rewriter) startsArgument(i int) bool {
	before := r.near(i, -1)
	return before.is("(") || before.is(",")
}

// assigns reports whether name= stands at the i-th token, space before it left out.
func (r *rewriter) assigns(i int) bool {
	for i < len(r.tokens) && r.tokens[i].kind == tokenSpace {
		i++
	}
	return i < len(r.tokens) && r.tokens[i].kind == tokenIdent && r.near(i, 1).is("=")
}

// emit writes text that stands for the author's characters at offset. If both have the same length,
// each character comes from its own. Else all come from the first.
func (r *rewriter) emit(at int, text []rune) {
	same := at+len(text) <= len(r.source.author) && string(r.source.author[at:at+len(text)]) == string(text)
	for i, c := range text {
		r.out = append(r.out, c)
		if same {
			r.source.origin = append(r.source.origin, at+i)
		} else {
			r.source.origin = append(r.source.origin, at)
		}
	}
}

// tokens cuts an expression. It never fails: what is not an expression is left to CEL to report.
func tokens(s []rune) []token {
	var ts []token
	for at := 0; at < len(s); {
		kind, end := next(s, at)
		ts = append(ts, token{kind: kind, at: at, runes: s[at:end]})
		at = end
	}
	return ts
}

func next(s []rune, at int) (tokenKind, int) {
	c := s[at]
	switch {
	case unicode.IsSpace(c):
		return tokenSpace, while(s, at, unicode.IsSpace)
	case c == '/' && at+1 < len(s) && s[at+1] == '/':
		return tokenSpace, while(s, at, func(c rune) bool { return c != '\n' })
	case c == '\'' || c == '"':
		return tokenString, stringEnd(s, at, false)
	case unicode.IsDigit(c):
		return tokenNumber, while(s, at, func(c rune) bool { return isWord(c) || c == '.' })
	case isWord(c):
		end := while(s, at, isWord)
		if end < len(s) && (s[end] == '\'' || s[end] == '"') { // r'...', b"..."
			return tokenString, stringEnd(s, end, strings.ContainsAny(string(s[at:end]), "rR"))
		}
		return tokenIdent, end
	case strings.ContainsRune("=<>!", c) && at+1 < len(s) && s[at+1] == '=':
		return tokenOther, at + 2
	}
	return tokenOther, at + 1
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

func while(s []rune, at int, holds func(rune) bool) int {
	for at < len(s) && holds(s[at]) {
		at++
	}
	return at
}

// stringEnd is the offset after the string whose opening quote is at.
func stringEnd(s []rune, at int, raw bool) int {
	quote := string(s[at])
	if strings.HasPrefix(string(s[at:]), strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for i := at + len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(string(s[i:]), quote) {
			return i + len(quote)
		}
	}
	return len(s)
}

func isDuration(s []rune) bool {
	if len(s) == 0 || !unicode.IsLetter(s[len(s)-1]) { // "0" is a duration to Go, and a number to a claim
		return false
	}
	_, err := time.ParseDuration(string(s))
	return err == nil
}

// Error is what is wrong with an expression, and where.
type Error struct {
	Line, Column int    // from 1, in characters
	Token        string // what stands there; empty at the end of the expression
	Message      string
}

func (e *Error) Error() string {
	field, detail := e.Where()
	return field + ": " + detail
}

// Where says that it is the field expr, and what is wrong with it.
func (e *Error) Where() (field, detail string) {
	at := "at the end"
	if e.Token != "" {
		at = fmt.Sprintf("at %s", e.Token)
	}
	return "expr", fmt.Sprintf("%d:%d, %s: %s", e.Line, e.Column, at, e.Message)
}

// maxToken is how much of a token an error shows.
const maxToken = 40

// errorAt is an error at an offset of the author's text.
func (s source) errorAt(offset int, format string, args ...any) *Error {
	e := &Error{Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	t := s.tokenAt(offset)
	if e.Token = string(t.runes); len(t.runes) > maxToken {
		e.Token = string(t.runes[:maxToken]) + "..."
	}
	for _, c := range s.author[:min(t.at, len(s.author))] {
		e.Column++
		if c == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// tokenAt is the token that holds an offset of the author's text, or the next one where there is
// space. At the end it has no characters.
func (s source) tokenAt(offset int) token {
	for _, t := range tokens(s.author) {
		if t.kind != tokenSpace && t.at+len(t.runes) > offset {
			return t
		}
	}
	return token{at: len(s.author)}
}

// nameOf is the offset of a function's name. CEL reports the call of the function at offset, which
// is its opening bracket.
func (s source) nameOf(offset int) int {
	name := offset
	for _, t := range tokens(s.author) {
		if t.at >= offset {
			break
		}
		if t.kind != tokenSpace {
			name = t.at
		}
	}
	if s.tokenAt(offset).is("(") {
		return name
	}
	return offset
}

// offset of the author's text for a line (from 1) and column (from 0) of the rewritten text.
func (s source) offset(line, column int) int {
	at := 0
	text := []rune(s.text)
	for ; line > 1 && at < len(text); at++ {
		if text[at] == '\n' {
			line--
		}
	}
	return s.origin[min(at+max(column, 0), len(s.origin)-1)]
}
