package parsers

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table has the numbers of a summary as they are printed: nothing is converted or computed.
type Table struct {
	// Rows in the order of the file.
	Rows []Row
	// Skipped counts the parts of the file that are not in Rows, by kind: "other lines", "histogram
	// buckets", "missing runs".
	Skipped map[string]int
	// Warnings name numbers that were read and look wrong.
	Warnings []string

	values int
}

// Row of a table.
type Row struct {
	// Line of the file that the row begins in, from 1; 0 where the format has no lines (JSON).
	Line int
	// Labels say what the row is about: {scheme: hats, workload: workloada}.
	Labels map[string]string
	// Values in the order of the file.
	Values []Value
}

// Value is one number of a row.
type Value struct {
	// Name of the metric, as the file has it.
	Name string
	// Unit, as the file has it. Empty: the number has none, or the file does not say.
	Unit string
	// Number as printed.
	Number float64
}

// Get returns the value of that name, and whether there is one.
func (r Row) Get(name string) (Value, bool) {
	i := slices.IndexFunc(r.Values, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return r.Values[i], true
}

func newTable() *Table { return &Table{Skipped: map[string]int{}} }

// add appends a row, within the bounds of a table.
func (t *Table) add(r Row) error {
	t.values += len(r.Values)
	if len(t.Rows) >= maxRows || t.values > maxValues {
		return fmt.Errorf("there are more than %d rows or %d values; a summary is smaller", maxRows, maxValues)
	}
	t.Rows = append(t.Rows, r)
	return nil
}

// warn keeps the first hundred warnings.
func (t *Table) warn(format string, args ...any) {
	if len(t.Warnings) < 100 {
		t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...))
	}
}

// ReadTable reads a summary. file is its name for errors; spec is used by the generic formats only.
func ReadTable(format, file string, r io.Reader, spec Spec) (*Table, error) {
	names := []string{}
	for _, f := range formats {
		if f.Name == format && f.table != nil {
			return f.table(file, r, spec)
		}
		if f.table != nil {
			names = append(names, f.Name)
		}
	}
	return nil, fmt.Errorf("the format %q is not one of a summary; those are %s", format, strings.Join(names, ", "))
}

// splitUnit takes "P99(us)" apart into its name and unit.
func splitUnit(column string) (name, unit string) {
	open := strings.LastIndexByte(column, '(')
	if open <= 0 || !strings.HasSuffix(column, ")") {
		return column, ""
	}
	return strings.TrimSpace(column[:open]), column[open+1 : len(column)-1]
}
