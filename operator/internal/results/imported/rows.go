package imported

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Rows reads what a script left as rows of points. A point without a row has the reason: the script
// wrote none, or several. A file that cannot be read is an error.
func Rows(of *v1alpha1.ScriptResults, table *results.ScriptTable, points []v1alpha1.Point) ([]results.Row, error) {
	var read []Result
	missing := table.Missing
	if missing == "" {
		var err error
		if read, err = readRows(of, table.Text); err != nil {
			return nil, err
		}
	}
	rows := make([]results.Row, len(points))
	for i, p := range points {
		rows[i] = results.Row{PointIndex: p.Index, Coordinates: maps.Clone(p.Coordinates), Missing: missing}
		if rows[i].Coordinates == nil {
			rows[i].Coordinates = map[string]string{}
		}
		if missing != "" {
			continue
		}
		wanted := map[string]string{}
		for _, a := range of.Axes {
			wanted[a.Name] = p.Coordinates[a.Name]
		}
		var at []Result
		for _, r := range read {
			if matches(r.Labels, wanted) {
				at = append(at, r)
			}
		}
		switch len(at) {
		case 0:
			rows[i].Missing = fmt.Sprintf("%s has no row with %s", of.Path, labelsText(wanted))
		case 1:
			rows[i].Line, rows[i].Summary = at[0].From.Line, at[0].trial().Summary
		default:
			rows[i].Missing = fmt.Sprintf("%s has %d rows with %s, in lines %d and %d: which one counts is not known; name another axis", of.Path, len(at), labelsText(wanted), at[0].From.Line, at[1].From.Line)
		}
	}
	return rows, nil
}

// matches reports whether a row has the cells, where 4.0 is 4.
func matches(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if label, ok := labels[name]; !ok || canonical(results.Axis{Values: []string{value}}, label) != value {
			return false
		}
	}
	return true
}

func readRows(of *v1alpha1.ScriptResults, text string) ([]Result, error) {
	if of.Format == "" || of.Format == "Table" {
		return readCells(of, text)
	}
	read, _, err := readers[of.Format].read(of.Path, []byte(text), Options{Format: of.Format})
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, a := range of.Axes {
		names[a.Name] = a.ColumnOrDefault()
	}
	for i := range read {
		read[i].Labels = rename(read[i].Labels, names)
	}
	return read, nil
}

// numberColumns are the names of columns by which numbers are known.
var numberColumns = map[string]string{
	"Throughput": "throughput", "MeanLatency": "mean", "P10Latency": "p10", "P50Latency": "p50", "P90Latency": "p90", "P99Latency": "p99",
	"P999Latency": "p999", "MaxLatency": "max", "Committed": "committed", "Aborted": "aborted", "Errors": "errors", "Timeouts": "timeouts",
}

// readCells reads a table under a header, whose cells have tabs, commas or blanks between them. The
// columns that the System names get the names by which they are known.
func readCells(of *v1alpha1.ScriptResults, text string) ([]Result, error) {
	records, lines, err := cells(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.Path, err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("%s is empty; its first line must name the columns", of.Path)
	}
	header := slices.Clone(records[0])
	for _, a := range of.Axes {
		i := slices.Index(records[0], a.ColumnOrDefault())
		if i < 0 {
			return nil, fmt.Errorf("%s has no column %q, which is the axis %s; its columns are %s", of.Path, a.ColumnOrDefault(), a.Name, strings.Join(records[0], ", "))
		}
		header[i] = a.Name
	}
	for _, n := range of.Numbers {
		i := slices.Index(records[0], n.Column)
		if i < 0 {
			return nil, fmt.Errorf("%s has no column %q, which is %s; its columns are %s", of.Path, n.Column, n.Name, strings.Join(records[0], ", "))
		}
		header[i] = numberColumns[n.Name]
		if n.Unit != "" {
			header[i] += "(" + n.Unit + ")"
		}
	}
	var all []Result
	for i, record := range records[1:] {
		if len(record) != len(header) {
			return nil, fmt.Errorf("%s:%d: it has %d cells under %d columns", of.Path, lines[i+1], len(record), len(header))
		}
		r, counts, err := csvResult(header, record)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", of.Path, lines[i+1], err)
		}
		if counts {
			r.From.Line = lines[i+1]
			all = append(all, r)
		}
	}
	return all, nil
}

// cells splits a table by what its header has between columns. Empty lines, and lines that begin
// with a #, are left out; of the first of those the # alone is, where it is the header.
func cells(text string) (records [][]string, lines []int, err error) {
	comma := rune(0)
	for n, line := range strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") && len(records) > 0 {
			continue
		}
		if len(records) == 0 {
			trimmed = strings.TrimSpace(strings.TrimPrefix(trimmed, "#"))
			line = trimmed
			switch {
			case strings.Contains(trimmed, "\t"):
				comma = '\t'
			case strings.Contains(trimmed, ","):
				comma = ','
			}
		}
		record := strings.Fields(trimmed)
		if comma != 0 {
			in := csv.NewReader(bytes.NewReader([]byte(line)))
			in.Comma, in.LazyQuotes, in.FieldsPerRecord = comma, true, -1
			if record, err = in.Read(); err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", n+1, err)
			}
		}
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		records, lines = append(records, record), append(lines, n+1)
	}
	return records, lines, nil
}
