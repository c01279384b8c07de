package admit

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// maxSearched is the longest text, in bytes, in which the line of a mistake is searched: the search
// parses the text once for each line.
const maxSearched = 64 << 10

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxError explains an error of the YAML parser in our words, with the line of the mistake. The
// parser names the line in which the surrounding object begins, or none.
func syntaxError(text []byte, err error) *Problem {
	said, line := plain(err.Error()), 1
	if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
		said = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(text) <= maxSearched {
		line = firstBad(lines)
	}
	line = max(1, min(line, len(lines)))
	written := strings.TrimRight(string(lines[line-1]), "\r\n")
	indent := len(written) - len(strings.TrimLeft(written, " \t"))
	return &Problem{Line: line, Column: indent + 1, Detail: mistake(said, written[:indent], written[indent:])}
}

// firstBad returns the line, from 1, after the longest beginning of a text that is valid YAML. If a
// bracket or quote is never closed, it is the line where it opens. If an indentation is wrong, it
// is the line of the indentation.
func firstBad(lines [][]byte) int {
	for n := len(lines) - 1; n > 0; n-- {
		var node yamlv3.Node
		if yamlv3.Unmarshal(bytes.Join(lines[:n], nil), &node) == nil {
			return n + 1
		}
	}
	return 1
}

// mistake names the usual cause of a parser's message about a line, given its indentation and the
// rest.
func mistake(said, indent, rest string) string {
	value := rest
	if _, after, found := strings.Cut(rest, ": "); found {
		value = strings.TrimSpace(after)
	}
	switch {
	case strings.Contains(indent, "\t"):
		return "a tab indents this line; YAML wants spaces"
	case strings.Contains(said, "control characters"), strings.Contains(said, "UTF-8"), strings.Contains(said, "UTF-16"):
		return "this is not text in UTF-8"
	case strings.Contains(said, "unknown anchor"):
		return fmt.Sprintf("there is no anchor for *%s; text that begins with * needs quotes", quoted(said))
	case strings.Contains(said, "excessive aliasing"):
		return "aliases of aliases make this document too large; write it out"
	case strings.Contains(said, "',' or '}'"), strings.Contains(said, "',' or ']'"), strings.Contains(said, "node content") && strings.ContainsAny(rest, "{["):
		return "a { or [ that is opened here is not closed, or a comma is missing"
	case strings.Contains(said, "unexpected end of stream"), strings.Contains(said, "quoted scalar"), opensQuote(value):
		return "a quote that is opened here is not closed"
	case strings.Contains(said, "mapping values are not allowed") && strings.Contains(value, ": "):
		return fmt.Sprintf("a value with a colon and a space needs quotes: %q", value)
	case strings.Contains(said, "cannot start any token") && value != "":
		return fmt.Sprintf("a value that begins with %c needs quotes: %q", value[0], value)
	case (strings.HasPrefix(value, "'") || strings.HasPrefix(value, `"`)) && strings.Contains(said, "expected key"):
		return "something follows the closing quote; put all of the value in quotes"
	case strings.Contains(said, "expected key"), strings.Contains(said, "'-' indicator"), strings.Contains(said, "mapping values are not allowed"), strings.Contains(said, "could not find expected ':'"):
		return fmt.Sprintf("this line is indented by %d and does not fit the lines before it; fields of one object begin in one column, each with its name and a colon", len(indent))
	}
	return "this is not YAML: " + said
}

// quoted returns the first text in quotes of a parser's message.
func quoted(said string) string {
	_, after, _ := strings.Cut(said, "'")
	name, _, _ := strings.Cut(after, "'")
	return name
}

// opensQuote reports whether a value begins with a quote that its line does not close.
func opensQuote(value string) bool {
	if value == "" || (value[0] != '"' && value[0] != '\'') {
		return false
	}
	return strings.Count(value, value[:1]) == 1
}

// oddity is a value that YAML reads in an unexpected way.
type oddity struct {
	path    string
	node    *yamlv3.Node
	read    string // the value that YAML reads
	boolean bool
}

// odd finds unquoted text that YAML 1.1, the version of Kubernetes, reads as a boolean, or as a
// number with another spelling: no, on, 1e3, 0x10, 1_000.
func odd(path string, node *yamlv3.Node) (oddity, bool) {
	if node.Kind != yamlv3.ScalarNode || node.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle|yamlv3.LiteralStyle|yamlv3.FoldedStyle) != 0 {
		return oddity{}, false
	}
	if read := meant(node.Value); read != "" {
		return oddity{path: path, node: node, read: read, boolean: true}, true
	}
	if !unusualNumber.MatchString(node.Value) {
		return oddity{}, false
	}
	read, ok := asNumber(node.Value)
	return oddity{path: path, node: node, read: read}, ok
}

var unusualNumber = regexp.MustCompile(`^[-+]?(0[xob]?[0-9a-fA-F_]+|[0-9][0-9_]*_[0-9_.]*|([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+)$`)

// meant returns the boolean that YAML 1.1 reads a word as. Empty: none, or the word is true or
// false itself.
func meant(word string) string {
	switch word {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return "true"
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return "false"
	}
	return ""
}

// asNumber returns the number that Kubernetes' parser reads a text as.
func asNumber(text string) (string, bool) {
	read, err := yaml.YAMLToJSON([]byte("x: " + text))
	number := strings.TrimSuffix(strings.TrimPrefix(string(read), `{"x":`), "}")
	return number, err == nil && number != text && !strings.HasPrefix(number, `"`)
}
