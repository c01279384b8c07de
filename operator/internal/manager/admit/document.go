package admit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Document is one object in a file.
type Document struct {
	// File is the name of the file, or - for stdin. Line is the line where the document begins,
	// from 1.
	File string
	Line int
	// Object as written, without defaults.
	Object *unstructured.Unstructured

	root *yamlv3.Node // nil: there is no text
	odd  []oddity
}

// Documents reads the objects of a stream of YAML or JSON. It leaves out empty documents. The
// problems are about the text: invalid YAML, and repeated keys.
func Documents(data []byte, file string) ([]*Document, Problems) {
	if problem := notText(data, file); problem != nil {
		return nil, Problems{problem}
	}
	var documents []*Document
	var problems Problems
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	rest, lines := data, 0 // the rest of data, and the number of lines before it
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, problems
		}
		if err != nil {
			return documents, append(problems, &Problem{File: file, Detail: err.Error()})
		}
		if begin := bytes.Index(rest, text); begin >= 0 {
			lines += bytes.Count(rest[:begin], []byte("\n"))
			rest = rest[begin:]
		}
		d, wrong := newDocument(text, file, lines)
		lines += bytes.Count(text, []byte("\n"))
		rest = rest[min(len(rest), len(text)):]
		problems = append(problems, wrong...)
		if d != nil {
			documents = append(documents, d)
		}
	}
}

// newDocument reads one document. lines is how many lines of the file precede it.
func newDocument(text []byte, file string, lines int) (*Document, Problems) {
	d := &Document{File: file, Line: lines + 1}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil {
		return nil, Problems{d.at(syntaxError(text, err))}
	}
	if len(root.Content) == 0 { // the document has only comments
		return nil, nil
	}
	d.root = root.Content[0]
	if d.root.Kind != yamlv3.MappingNode {
		return nil, Problems{d.at(&Problem{Line: d.root.Line, Column: d.root.Column, Detail: "an object begins with apiVersion and kind, each on a line with a colon; this is " + calledNode(d.root)})}
	}
	var problems Problems
	visit(d.root, "", func(path string, node *yamlv3.Node) { problems = append(problems, d.keys(path, node)...) })
	if len(problems) > 0 {
		return nil, problems
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err == nil {
		d.Object = &unstructured.Unstructured{}
		err = utiljson.Unmarshal(asJSON, &d.Object.Object)
	}
	if err != nil {
		return nil, Problems{d.at(&Problem{Line: 1, Column: 1, Detail: mistake(plain(err.Error()), "", "")})}
	}
	visit(d.root, "", func(path string, node *yamlv3.Node) {
		if o, ok := odd(path, node); ok {
			d.odd = append(d.odd, o)
		}
	})
	return d, nil
}

// Textless wraps an object without a text. Its problems have no lines.
func Textless(object *unstructured.Unstructured, file string) *Document {
	return &Document{File: file, Object: object}
}

// With returns the document with a changed object. Lines are those of the text, if the text has the
// field.
func (d *Document) With(object *unstructured.Unstructured) *Document {
	changed := *d
	changed.Object = object
	return &changed
}

// at turns a place in the document's text into a place in the file.
func (d *Document) at(p *Problem) *Problem {
	p.File = d.File
	if p.Line > 0 {
		p.Line += d.Line - 1
	}
	return p
}

// keys returns the problems of the keys of one mapping.
func (d *Document) keys(path string, node *yamlv3.Node) (problems Problems) {
	if node.Kind != yamlv3.MappingNode {
		return nil
	}
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		problem := &Problem{Line: key.Line, Column: key.Column, Field: join(path, key.Value)}
		switch {
		case key.Kind != yamlv3.ScalarNode:
			problem.Field, problem.Detail = path, "a key must be a name, and this is "+calledNode(key)+"; text that begins with { or [ needs quotes"
		case key.Tag == "!!merge":
			continue
		case key.Style == 0 && meant(key.Value) != "":
			problem.Detail = fmt.Sprintf("YAML reads the key %s as %s; write it in quotes: %q", key.Value, meant(key.Value), key.Value)
		case first[key.Value] > 0:
			problem.Detail = fmt.Sprintf("the field is there twice; the first is in line %d. Remove one", first[key.Value]+d.Line-1)
		default:
			first[key.Value] = key.Line
			continue
		}
		problems = append(problems, d.at(problem))
	}
	return problems
}

// visit calls f for a node and all nodes below it, with their paths. It does not follow aliases.
func visit(node *yamlv3.Node, path string, f func(path string, node *yamlv3.Node)) {
	f(path, node)
	switch node.Kind {
	case yamlv3.SequenceNode:
		for i, item := range node.Content {
			visit(item, fmt.Sprintf("%s[%d]", path, i), f)
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			visit(node.Content[i+1], join(path, node.Content[i].Value), f)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func calledNode(node *yamlv3.Node) string {
	switch node.Kind {
	case yamlv3.SequenceNode:
		return "a list"
	case yamlv3.MappingNode:
		return "an object"
	}
	return "text"
}

// notText returns the problem of a file that is no text.
func notText(data []byte, file string) *Problem {
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		return &Problem{File: file, Detail: "this is a compressed file, not YAML; a bundle is shown by kubectl assay report --file, and an archive must be unpacked"}
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return &Problem{File: file, Detail: "this text is in UTF-16; save it as UTF-8"}
	case bytes.IndexByte(data, 0) >= 0:
		return &Problem{File: file, Detail: "this is a binary file, not YAML"}
	}
	return nil
}

// plain removes the names of libraries from a message.
func plain(text string) string {
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
