package parsers

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// parseCSV makes a row of each record under a header. Records may be quoted (RFC 4180), but each is
// one line: a record over several lines almost always has a quotation mark that is not closed.
func parseCSV(file string, r io.Reader, spec Spec) (*Table, error) {
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	in, t := newLines(file, r), newTable()
	var header []string
	var columns []int
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		record, err := csvRecord(string(line), spec.Comma)
		if err != nil {
			return nil, in.errorf("%v", err)
		}
		if header == nil {
			header = record
			if columns, err = findColumns(header, spec); err != nil {
				return nil, in.errorf("%v", err)
			}
			continue
		}
		if len(record) != len(header) {
			return nil, in.errorf("the line has %d columns, the header %d", len(record), len(header))
		}
		row := Row{Line: in.number, Labels: map[string]string{}}
		for i, f := range spec.Fields {
			if err := f.put(&row, strings.TrimSpace(record[columns[i]])); err != nil {
				return nil, in.errorf("%v", err)
			}
		}
		if err := t.add(row); err != nil {
			return nil, in.errorf("%v", err)
		}
	}
	if len(t.Rows) == 0 {
		return nil, in.errorf("the file has no record under a header")
	}
	return t, nil
}

func csvRecord(line string, comma rune) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	if comma != 0 {
		r.Comma = comma
	}
	record, err := r.Read()
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return nil, fmt.Errorf("column %d: %w", parse.Column, parse.Err)
	case err != nil:
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return record, nil
}

func findColumns(header []string, spec Spec) ([]int, error) {
	for i, name := range header {
		header[i] = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
	}
	columns := make([]int, len(spec.Fields))
	for i, f := range spec.Fields {
		if columns[i] = slices.Index(header, f.From); columns[i] < 0 {
			return nil, fmt.Errorf("the header has no column %q; it has %s", f.From, strings.Join(header, ", "))
		}
	}
	return columns, nil
}
