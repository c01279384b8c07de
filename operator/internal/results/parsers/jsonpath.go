package parsers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/theory/jsonpath"
)

// maxJSONDocument is the largest document that JSONPath reads, since a path may need all of it at
// once.
const maxJSONDocument = 16 << 20

// parseJSONPath makes a row of each node that Spec.Rows selects, with RFC 9535 paths. If a key is
// there twice, the last counts, as in Python.
func parseJSONPath(file string, r io.Reader, spec Spec) (*Table, error) {
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	paths := make([]*jsonpath.Path, len(spec.Fields))
	for i, f := range spec.Fields {
		p, err := jsonpath.Parse(f.From)
		if err != nil {
			return nil, fmt.Errorf("%s: the path of field %s: %w", file, f.name(), err)
		}
		paths[i] = p
	}
	if spec.Rows == "" {
		spec.Rows = "$"
	}
	rows, err := jsonpath.Parse(spec.Rows)
	if err != nil {
		return nil, fmt.Errorf("%s: the path of the rows: %w", file, err)
	}
	document, err := decodeJSON(file, r)
	if err != nil {
		return nil, err
	}
	t := newTable()
	for i, node := range rows.Select(document) {
		row := Row{Labels: map[string]string{}}
		for k, f := range spec.Fields {
			if err := putNode(&row, f, paths[k].Select(node)); err != nil {
				return nil, fmt.Errorf("%s: node %d of %s: %w", file, i, spec.Rows, err)
			}
		}
		if err := t.add(row); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("%s: %s selects nothing", file, spec.Rows)
	}
	return t, nil
}

func putNode(row *Row, f Field, nodes jsonpath.NodeList) error {
	if len(nodes) != 1 {
		return fmt.Errorf("%s: %s selects %d nodes; it must be one", f.name(), f.From, len(nodes))
	}
	switch v := nodes[0].(type) {
	case json.Number:
		return f.put(row, v.String())
	case string:
		return f.put(row, v)
	case bool:
		return f.put(row, strconv.FormatBool(v))
	}
	return fmt.Errorf("%s: %s is not a number, text or boolean", f.name(), f.From)
}

// decodeJSON reads one document, with numbers as they are written.
func decodeJSON(file string, r io.Reader) (any, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxJSONDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: read: %w", file, err)
	}
	if len(b) > maxJSONDocument {
		line := 1 + bytes.Count(b, []byte("\n"))
		return nil, fmt.Errorf("%s:%d: the document is larger than %d bytes", file, line, maxJSONDocument)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var document any
	err = d.Decode(&document)
	if err == nil {
		if _, trailing := d.Token(); trailing == nil || !errors.Is(trailing, io.EOF) {
			err = errors.New("there is more after the end of the document")
		}
	}
	if err != nil {
		at := d.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			at, err = int64(len(b)), errors.New("the document is cut off")
		}
		return nil, fmt.Errorf("%s:%d: %w", file, 1+bytes.Count(b[:min(at, int64(len(b)))], []byte("\n")), err)
	}
	return document, nil
}
