// Package pequin reads files of the Pequin artifact (Pesto, Basil and their baselines). Import
// turns a configuration of its experiments into an Experiment and a System. ReadFolder turns a
// folder of its results into results like ours.
//
// The package knows the artifact's names and rules, and nothing of a cluster. It is pure, except
// that ReadFolder reads the given file system.
package pequin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a configuration. The artifact's own configurations have some 12 kB.
const (
	maxConfig = 1 << 20
	maxDepth  = 32
)

// object is a JSON object without comments. Its members are in the order of the file. If several
// members have the same name, the last one counts.
type object struct {
	names  []string
	values map[string]any // object, []any, number, string, bool, nil
}

// number is a JSON number in the spelling of the file.
type number string

func (o *object) get(name string) any {
	if o == nil {
		return nil
	}
	return o.values[name]
}

// Duplicate is a key that a configuration has more than once. The last one wins, as in Python's
// json, which the artifact uses.
type Duplicate struct {
	Key   string
	Lines []int
	// Comment: the key begins with an underscore, so that none of them counts.
	Comment bool
}

// config is a configuration as read from JSON, before its values are interpreted.
type config struct {
	file       string
	top        *object
	lines      map[string]int // line of each key of the top level; of a duplicate key, the line of the last
	comments   []string       // keys that begin with an underscore, each once
	duplicates []Duplicate
}

// readConfig reads the JSON of a configuration. Errors name the file and the line.
func readConfig(file string, b []byte) (*config, error) {
	if len(b) > maxConfig {
		return nil, fmt.Errorf("%s: the configuration is larger than %d bytes", file, maxConfig)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	r := &configReader{data: b, config: &config{file: file, lines: map[string]int{}}, dec: jsontext.NewDecoder(bytes.NewReader(b),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	v, err := r.value(0)
	if err == nil {
		if _, trailing := r.dec.ReadToken(); !errors.Is(trailing, io.EOF) {
			err = errors.New("there is more after the end of the configuration")
		}
	}
	if err != nil {
		at := r.dec.InputOffset()
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			at, err = syntax.ByteOffset, r.explained(syntax)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			at, err = int64(len(b)), errors.New("the configuration is cut off")
		}
		return nil, fmt.Errorf("%s:%d: %w", file, r.line(at), err)
	}
	top, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("%s:1: the configuration is not a JSON object", file)
	}
	r.config.top = top
	return r.config, nil
}

// explained adds advice about mistakes that people make by hand. Python's reader, which the
// artifact uses, rejects all of them except NaN and Infinity.
func (r *configReader) explained(e *jsontext.SyntacticError) error {
	rest := bytes.TrimLeft(r.data[min(max(e.ByteOffset, 0), int64(len(r.data))):], " \t\r\n")
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(rest, []byte(p)) })
	}
	switch {
	case has(","):
		if next := bytes.TrimLeft(rest[1:], " \t\r\n"); len(next) > 0 && (next[0] == '}' || next[0] == ']') {
			return fmt.Errorf("a comma stands before %q: take it out", next[0])
		}
	case has("//", "/*", "#"):
		return errors.New("JSON has no comments: take it out, or make it a key that begins with _, as the artifact does")
	case has("True", "False", "None"):
		return errors.New("True, False and None are Python: write true, false and null")
	case has("NaN", "Infinity", "Inf"):
		return errors.New("NaN and Infinity are no JSON: give a number")
	case has("'"):
		return errors.New("JSON takes double quotes only")
	}
	return e.Err
}

type configReader struct {
	data   []byte
	dec    *jsontext.Decoder
	config *config
}

func (r *configReader) line(offset int64) int {
	return 1 + bytes.Count(r.data[:min(max(offset, 0), int64(len(r.data)))], []byte("\n"))
}

func (r *configReader) value(depth int) (any, error) {
	token, err := r.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("objects and lists are nested more than %d deep", maxDepth)
	}
	switch token.Kind() {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
}

func (r *configReader) list(depth int) (any, error) {
	list := []any{}
	for r.dec.PeekKind() != ']' {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.dec.ReadToken()
	return list, err
}

func (r *configReader) object(depth int) (any, error) {
	o := &object{values: map[string]any{}}
	lines := map[string][]int{}
	var order []string
	for r.dec.PeekKind() != '}' {
		token, err := r.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		if len(lines[name]) == 0 {
			order = append(order, name)
		}
		lines[name] = append(lines[name], r.line(r.dec.InputOffset()))
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if isComment(name) {
			continue
		}
		if _, there := o.values[name]; !there {
			o.names = append(o.names, name)
		}
		o.values[name] = v
		if depth == 0 {
			r.config.lines[name] = lines[name][len(lines[name])-1]
		}
	}
	for _, name := range order {
		if isComment(name) && !slices.Contains(r.config.comments, name) {
			r.config.comments = append(r.config.comments, name)
		}
		if len(lines[name]) > 1 {
			r.config.duplicates = append(r.config.duplicates, Duplicate{Key: name, Lines: lines[name], Comment: isComment(name)})
		}
	}
	_, err := r.dec.ReadToken()
	return o, err
}

func isComment(key string) bool { return strings.HasPrefix(key, "_") }

// text writes a value as JSON, for parameters that are lists or objects.
func text(v any) string {
	switch v := v.(type) {
	case number:
		return string(v)
	case string:
		return quoted(v)
	case bool:
		if v {
			return "true"
		}
		return "false"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = text(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *object:
		parts := make([]string, len(v.names))
		for i, name := range v.names {
			parts[i] = quoted(name) + ": " + text(v.values[name])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "null"
}

func quoted(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // not UTF-8
		b, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\ufffd"))
	}
	return string(b)
}
