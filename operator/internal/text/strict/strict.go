// Package strict decodes objects that users write. Like the API server, it rejects unknown and
// repeated fields, and names of fields are case-sensitive. An error names the field, its line, and
// the correct form.
package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/text/suggest"
)

// FieldError is a mistake in one field of a document.
type FieldError struct {
	// Path of the field, such as spec.sweep[0].points.
	Path string
	// Line of the document, from 1; 0: unknown.
	Line int
	// Problem says what is wrong, and what would be right.
	Problem string
}

func (e *FieldError) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Problem
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Path, e.Problem)
}

// Decode decodes a YAML or JSON document. The error is a *FieldError if one field is to blame.
func Decode(document []byte, into any) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("read YAML: %w", err)
	}
	return DecodeJSON(text, document, into)
}

// DecodeJSON decodes JSON that was made from a document. Lines in errors are those of the document.
func DecodeJSON(text, document []byte, into any) error {
	problems, err := kjson.UnmarshalStrict(text, into)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return &FieldError{Path: mismatch.Field, Line: line(document, mismatch.Field), Problem: fmt.Sprintf("must be %s, and is a %s", called(mismatch.Type), mismatch.Value)}
	case err != nil:
		return err
	case len(problems) == 0:
		return nil
	}
	path, problem := unknown(problems[0], reflect.TypeOf(into))
	if path == "" {
		return problems[0]
	}
	return &FieldError{Path: path, Line: line(document, path), Problem: problem}
}

// called returns the name that users have for values of a type.
func called(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// unknown names the unknown field, and the known fields at its place.
func unknown(problem error, root reflect.Type) (path, text string) {
	m := unknownField.FindStringSubmatch(problem.Error())
	if m == nil {
		return "", ""
	}
	parent, name := "", m[1]
	if dot := strings.LastIndex(m[1], "."); dot >= 0 {
		parent, name = m[1][:dot], m[1][dot+1:]
	}
	known := fields(at(root, steps(parent)))
	if len(known) == 0 {
		return m[1], "there is no such field"
	}
	return m[1], suggest.Unknown("there is no field", name, known)
}

var step = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)

// steps splits a path into names and indexes.
func steps(path string) []string { return step.FindAllString(path, -1) }

// at follows steps from a type. It returns nil if they lead nowhere.
func at(t reflect.Type, steps []string) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(steps) == 0 || t == nil {
		return t
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		return at(t.Elem(), steps[1:])
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == steps[0]:
				return at(f.Type, steps[1:])
			case f.Anonymous && name == "":
				if found := at(f.Type, steps); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// fields returns the fields of a struct, under the names that users write.
func fields(t reflect.Type) (names []string) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, fields(f.Type)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}

// line returns the line of a field in a document, or that of the nearest field around it; 0:
// unknown.
func line(document []byte, path string) int {
	var root yamlv3.Node
	if yamlv3.Unmarshal(document, &root) != nil || len(root.Content) == 0 {
		return 0
	}
	node, found := root.Content[0], 0
	for _, s := range steps(path) {
		next := child(node, s)
		if next == nil {
			break
		}
		node, found = next.value, next.line
	}
	return found
}

type entry struct {
	value *yamlv3.Node
	line  int // of its key
}

func child(node *yamlv3.Node, step string) *entry {
	switch node.Kind {
	case yamlv3.AliasNode:
		return child(node.Alias, step)
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(strings.Trim(step, "[]")); err == nil && i < len(node.Content) {
			return &entry{node.Content[i], node.Content[i].Line}
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return &entry{node.Content[i+1], node.Content[i].Line}
			}
		}
	}
	return nil
}
