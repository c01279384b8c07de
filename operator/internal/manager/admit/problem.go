package admit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Problem is a reason to refuse a file.
type Problem struct {
	// File that has the problem, and the place of the value, from 1. The place is 0 if there is no
	// text.
	File         string
	Line, Column int
	// Kind and Name of the object. Empty for a problem of the text.
	Kind, Name string
	// Field of the object, such as spec.sweep[0].points.
	Field string
	// Detail says what is wrong, and what would be right.
	Detail string
}

func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	for _, part := range []string{strings.TrimSpace(p.Kind + " " + p.Name), p.Field, p.Detail} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	return strings.TrimPrefix(b.String(), ": ")
}

// Problems are all problems, in the order of the files.
type Problems []*Problem

// Error lists all problems, a line each.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// OrNil returns the list as an error, or nil if the list is empty.
func (p Problems) OrNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

var step = regexp.MustCompile(`\[([^\]]*)\]|[^.\[\]]+`)

// steps splits a path into names, indexes, and keys in brackets, as in spec.parameters[fastPath].
func steps(path string) (steps []string) {
	for _, m := range step.FindAllStringSubmatch(path, -1) {
		if strings.HasPrefix(m[0], "[") {
			steps = append(steps, m[1])
		} else {
			steps = append(steps, m[0])
		}
	}
	return steps
}

// place returns the place of a field in the text of a document: where its value begins, or its key
// if the value begins in a later line. For a missing field it returns the place of its parent.
func place(root *yamlv3.Node, path string) (line, column int) {
	node := root
	if node == nil {
		return 0, 0
	}
	line, column = node.Line, node.Column
	for _, s := range steps(path) {
		value, key := child(node, s)
		if value == nil {
			break
		}
		node = value
		line, column = value.Line, value.Column
		if key != nil && key.Line != value.Line {
			line, column = key.Line, key.Column
		}
	}
	return line, column
}

// child returns a child of a node, by key, by index, or by the name of an item.
func child(node *yamlv3.Node, step string) (value, key *yamlv3.Node) {
	switch node.Kind {
	case yamlv3.AliasNode:
		return child(node.Alias, step)
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i]
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], nil
		}
		for _, item := range node.Content {
			if name, _ := child(item, "name"); name != nil && name.Value == step {
				return item, nil
			}
		}
	}
	return nil, nil
}

// valueAt returns the value at a path of an object, or nil if there is none.
func valueAt(object any, path string) any {
	for _, s := range steps(path) {
		switch node := object.(type) {
		case map[string]any:
			object = node[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			object = node[i]
		default:
			return nil
		}
	}
	return object
}
