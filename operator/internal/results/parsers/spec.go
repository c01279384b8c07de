package parsers

import (
	"errors"
	"fmt"
)

// Spec says how one of the generic formats is read.
type Spec struct {
	// Pattern of RegularExpression: RE2 with named groups, (?P<latency>[0-9.]+). It must match some
	// line.
	Pattern string
	// Comma of CSV; 0 is a comma.
	Comma rune
	// Rows of JSONPath (RFC 9535): each node that it selects is a row, and the fields' paths begin
	// there. Empty: the document is the only row.
	Rows string
	// Fields that are read, from 1 to 64.
	Fields []Field
}

// Field is one label or number of a row.
type Field struct {
	// Name in the row. Default: From.
	Name string
	// From is a named group (RegularExpression), a column by its name in the header (CSV), or a
	// path (JSONPath, beginning with $).
	From string
	// Label: the field is text that says what the row is about. Else it is a number.
	Label bool
	// Unit of the number, for Value.Unit.
	Unit string
	// Negative: the number may be negative. Else a negative number is refused, since counts and
	// times have none.
	Negative bool
}

func (f Field) name() string {
	if f.Name == "" {
		return f.From
	}
	return f.Name
}

func (s Spec) check() error {
	if len(s.Fields) == 0 || len(s.Fields) > 64 {
		return errors.New("name from 1 to 64 fields to read")
	}
	seen := map[string]bool{}
	for _, f := range s.Fields {
		if f.From == "" {
			return fmt.Errorf("field %q does not say where it is from", f.Name)
		}
		if seen[f.name()] {
			return fmt.Errorf("field %q is there twice", f.name())
		}
		seen[f.name()] = true
	}
	return nil
}

// put adds a field's text to a row.
func (f Field) put(row *Row, text string) error {
	if f.Label {
		row.Labels[f.name()] = text
		return nil
	}
	x, err := parseNumber(text)
	if err == nil && x < 0 && !f.Negative {
		err = fmt.Errorf("%s is negative", text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.name(), err)
	}
	row.Values = append(row.Values, Value{Name: f.name(), Unit: f.Unit, Number: x})
	return nil
}
