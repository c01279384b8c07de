package imported

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// CheckPath refuses a path of several files whose braces name no axes.
func CheckPath(path string) error {
	_, err := compilePattern(path)
	return err
}

// Rows reads what a script left as rows of points. A point without a row has the reason: the script
// wrote none, or several. A single file that cannot be read is an error. One of several such files
// is the reason for the points in its name.
func Rows(of *v1alpha1.ScriptResults, table *results.ScriptTable, points []v1alpha1.Point) ([]results.Row, error) {
	var read []Result
	var bad []badFile
	missing := table.Missing
	if missing == "" {
		var err error
		if read, bad, err = readScript(of, table); err != nil {
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
			rows[i].Missing = cmp.Or(whyBad(of, bad, wanted), fmt.Sprintf("%s has no row with %s", of.Path, labelsText(wanted)))
		case 1:
			rows[i].File, rows[i].Line, rows[i].Summary = at[0].From.File, at[0].From.Line, at[0].trial().Summary
		default:
			rows[i].Missing = fmt.Sprintf("%s has %d rows with %s, in %s: which one counts is not known; name another axis", of.Path, len(at), labelsText(wanted), placesOf(at))
		}
	}
	return rows, nil
}

// RowsOf reads the rows of one file that a script left, as Rows does, but for all points. A row has
// the cells of all its axes; name is that of the file.
func RowsOf(of *v1alpha1.ScriptResults, name, text string) ([]results.Row, error) {
	var read []Result
	if of.ManyFiles() {
		files, bad, err := readScript(of, &results.ScriptTable{Files: []results.ScriptFile{{Path: name, Text: text}}})
		switch {
		case err != nil:
			return nil, err
		case len(bad) > 0:
			return nil, bad[0].why
		case len(files) == 0:
			return nil, fmt.Errorf("%s is not one of the files %s: its path gives axes their values", name, of.Path)
		}
		read = files
	} else {
		one := *of
		one.Path = name
		var err error
		if read, err = readRows(&one, text); err != nil {
			return nil, err
		}
	}
	rows := make([]results.Row, len(read))
	for i, r := range read {
		rows[i] = results.Row{PointIndex: int32(i), Coordinates: map[string]string{}, File: name, Line: r.From.Line, Summary: r.trial().Summary}
		for _, a := range of.Axes {
			value, has := r.Labels[a.Name]
			if !has {
				return nil, fmt.Errorf("%s has a row without the axis %s", name, a.Name)
			}
			rows[i].Coordinates[a.Name] = value
		}
	}
	return rows, nil
}

// placesOf says where the first two of several rows are.
func placesOf(rows []Result) string {
	if rows[0].From.File == "" {
		return fmt.Sprintf("lines %d and %d", rows[0].From.Line, rows[1].From.Line)
	}
	return rows[0].String() + " and " + rows[1].String()
}

// badFile is one of several files that cannot be read, with what its name says.
type badFile struct {
	labels map[string]string
	why    error
}

// whyBad says why the file of a point could not be read.
func whyBad(of *v1alpha1.ScriptResults, bad []badFile, wanted map[string]string) string {
	for _, f := range bad {
		inName := map[string]string{}
		for _, name := range of.PathAxes() {
			inName[name] = wanted[name]
		}
		if matches(f.labels, inName) {
			return f.why.Error()
		}
	}
	return ""
}

// readScript reads the rows of one file, or of several.
func readScript(of *v1alpha1.ScriptResults, table *results.ScriptTable) (read []Result, bad []badFile, err error) {
	if !of.ManyFiles() {
		read, err = readRows(of, table.Text)
		return read, nil, err
	}
	relative := strings.TrimPrefix(of.Path, "~/")
	pattern, err := compilePattern(relative)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range table.Files {
		name := f.Path
		if !path.IsAbs(relative) { // the home directory comes before
			parts := strings.Split(name, "/")
			name = strings.Join(parts[max(0, len(parts)-1-strings.Count(relative, "/")):], "/")
		}
		labels, ok := pattern.match(name)
		if !ok {
			continue
		}
		rows, err := readOne(of, name, f)
		if err != nil {
			bad = append(bad, badFile{labels, err})
			continue
		}
		for _, r := range rows {
			maps.Copy(r.Labels, labels)
			r.From.File = name
			read = append(read, r)
		}
	}
	return read, bad, nil
}

// readOne reads one of several files, whose name gives axes their values.
func readOne(of *v1alpha1.ScriptResults, name string, f results.ScriptFile) ([]Result, error) {
	if f.Missing != "" {
		return nil, fmt.Errorf("%s: %s", name, f.Missing)
	}
	one := *of
	one.Path = name
	one.Axes = slices.DeleteFunc(slices.Clone(of.Axes), func(a v1alpha1.RowAxis) bool { return slices.Contains(of.PathAxes(), a.Name) })
	return readRows(&one, f.Text)
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
	read, _, err := readerOf(of.Format)(of.Path, []byte(text), Options{Format: of.Format})
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

func readerOf(format string) func(string, []byte, Options) ([]Result, []string, error) {
	if format == FormatPequinStats {
		return readPequinStats
	}
	return readers[format].read
}

// numberColumns are the names of columns by which place finds numbers, by the names of the API.
var numberColumns = map[string]string{
	"Throughput": "throughput", "MeanLatency": "mean", "P10Latency": "p10", "P50Latency": "p50", "P90Latency": "p90", "P99Latency": "p99",
	"P999Latency": "p999", "MaxLatency": "max", "Committed": "committed", "Aborted": "aborted", "Errors": "errors", "Timeouts": "timeouts",
}

// checkWidths refuses a line with more or fewer cells than the first: the meaning of its cells is
// unknown.
func checkWidths(path string, records [][]string, lines []int) error {
	for i, record := range records {
		if len(record) != len(records[0]) {
			return fmt.Errorf("%s:%d: it has %d cells, and line %d, with the columns' names, has %d; if one of the two is no part of the table, have the script's command leave it out", path, lines[i], len(record), lines[0], len(records[0]))
		}
	}
	return nil
}

// readCells reads a table under a header, whose cells have tabs, commas or blanks between them.
// Columns that the System names get the names of axes and the names of numberColumns.
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
	if err := checkWidths(of.Path, records, lines); err != nil {
		return nil, err
	}
	var all []Result
	for i, record := range records[1:] {
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

// cells splits a table at the separator of its header. It leaves out empty lines and lines that
// begin with a #. If the header begins with a #, it leaves out only the #.
func cells(text string) (records [][]string, lines []int, err error) {
	all := strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n")
	first := headerOf(all)
	comma := separator(uncommented(all[first]))
	for n, line := range all {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || n != first && strings.HasPrefix(trimmed, "#") {
			continue
		}
		if n == first {
			line = uncommented(line)
		}
		record, err := split(line, comma)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		records, lines = append(records, record), append(lines, n+1)
	}
	return records, lines, nil
}

// headerOf is the index of the line that names the columns: the first one that is not empty. Lines
// that begin with a # may come first. If the line below them has no number, it names the columns,
// and they are comments. If it has a number, it is a row, and one of the lines with a # names its
// cells.
func headerOf(lines []string) int {
	var comments []int
	for n, line := range lines {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "":
		case strings.HasPrefix(trimmed, "#"):
			comments = append(comments, n)
		case len(comments) == 0 || !slices.ContainsFunc(splitRow(line), isFloat):
			return n
		default:
			return max(comments[0], slices.IndexFunc(lines[:n], func(above string) bool { return names(above, line) }))
		}
	}
	if len(comments) > 0 {
		return comments[0]
	}
	return 0
}

// names reports whether a line that begins with a # has a name for each cell of a row.
func names(comment, row string) bool {
	comma := separator(uncommented(comment))
	header, err := split(uncommented(comment), comma)
	cells, bad := split(row, comma)
	return err == nil && bad == nil && strings.HasPrefix(strings.TrimSpace(comment), "#") && len(header) == len(cells)
}

// splitRow splits a line at commas and blanks.
func splitRow(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

func uncommented(line string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
}

// separator is what the names of columns have between them: a tab, a comma, or 0 for blanks.
func separator(header string) rune {
	switch {
	case strings.Contains(header, "\t"):
		return '\t'
	case strings.Contains(header, ","):
		return ','
	}
	return 0
}

func split(line string, comma rune) ([]string, error) {
	record := strings.Fields(line)
	if comma != 0 {
		in := csv.NewReader(strings.NewReader(line))
		in.Comma, in.LazyQuotes, in.FieldsPerRecord = comma, true, -1
		var err error
		if record, err = in.Read(); err != nil {
			return nil, err
		}
	}
	for i := range record {
		record[i] = strings.TrimSpace(record[i])
	}
	return record, nil
}
