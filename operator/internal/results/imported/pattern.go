package imported

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// pattern takes labels out of the names of files. The zero value takes every file and no label.
type pattern struct {
	name   *regexp.Regexp
	labels []string // of its groups
}

var parts = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9_-]*)\}|\*|[^{}*]+|[{}]`)

// compilePattern reads {axis} as the part of a name that is the axis's value, and * as any part of
// it. Neither holds a slash.
func compilePattern(text string) (pattern, error) {
	if text == "" {
		return pattern{}, nil
	}
	var p pattern
	var b strings.Builder
	for _, m := range parts.FindAllStringSubmatch(text, -1) {
		switch part, label := m[0], m[1]; {
		case label != "":
			p.labels = append(p.labels, label)
			b.WriteString("([^/]+?)")
		case part == "*":
			b.WriteString("[^/]*")
		case part == "{" || part == "}":
			return pattern{}, errors.New("the name of an axis stands in braces, as in {clients}")
		default:
			b.WriteString(regexp.QuoteMeta(part))
		}
	}
	seen := map[string]bool{}
	for _, label := range p.labels {
		if seen[label] {
			return pattern{}, fmt.Errorf("it names {%s} twice", label)
		}
		seen[label] = true
	}
	p.name = regexp.MustCompile("^" + b.String() + "$") // it has only quoted parts and our own groups
	return p, nil
}

// match takes the labels out of a name, and reports whether the pattern matches it.
func (p pattern) match(name string) (labels map[string]string, ok bool) {
	if p.name == nil {
		return nil, true
	}
	m := p.name.FindStringSubmatch(name)
	if m == nil {
		return nil, false
	}
	labels = map[string]string{}
	for i, label := range p.labels {
		labels[label] = m[i+1]
	}
	return labels, true
}
