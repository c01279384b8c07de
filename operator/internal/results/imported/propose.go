package imported

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Proposal proposes how to read a script's results. It is made from one of their files.
type Proposal struct {
	Results v1alpha1.ScriptResults
	// Values of each axis of the rows, in the order of the file.
	Values [][]string
	// Read is how many points of these axes have a row in the file. Missing says why the other
	// points have none.
	Read    int
	Missing []string
	// Metric is a number that the rows have, as claims call it.
	Metric string
	// Percentiles: the rows have the 50th and the 99th of the latency.
	Percentiles bool
	// Unread are the columns that are not read.
	Unread []string

	columns []v1alpha1.RowAxis // that may tell rows apart
}

// Points are how many points the axes have.
func (p *Proposal) Points() int {
	n := 1
	for _, values := range p.Values {
		n *= len(values)
	}
	return n
}

// Propose looks at a file that a script has left. Columns that name a throughput, a latency or a
// count are numbers, the first of each. Columns with words, those before the first number, and
// those with the name of a parameter, tell rows apart. Propose has read the file in the way that it
// proposes.
func Propose(path, text string) (*Proposal, error) {
	for _, format := range knownFormats {
		of := v1alpha1.ScriptResults{Path: path, Format: format}
		if rows, err := readRows(&of, text); err == nil && len(rows) > 0 {
			return proposeLabels(of, rows, &results.ScriptTable{Text: text})
		}
	}
	of := v1alpha1.ScriptResults{Path: path}
	records, lines, err := cells(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(records) < 2:
		return nil, fmt.Errorf("%s has no row below a line that names its columns", path)
	}
	header, rows := records[0], records[1:]
	if err := checkWidths(path, records, lines); err != nil {
		return nil, err
	}
	p := &Proposal{}
	numbers := false
	taken := map[string]bool{}
	for _, column := range header { // these are read in any case
		if name, unit, known := numberOf(column); known && unit == ownUnit {
			taken[name] = true
		}
	}
	for i, column := range header {
		if column == "" { // a comma ends each line
			continue
		}
		name, unit, known := numberOf(column)
		if known && unit != ownUnit && taken[name] {
			p.Unread = append(p.Unread, column) // the first of its kind counts
			continue
		}
		isNumber := !slices.ContainsFunc(rows, func(row []string) bool { return i >= len(row) || !isFloat(row[i]) })
		switch {
		case known && isNumber:
			taken[name] = true
			if unit != ownUnit {
				of.Numbers = append(of.Numbers, v1alpha1.RowNumber{Name: name, Column: column, Unit: unit})
			}
			numbers = true
		case !isNumber || !numbers || parameter.MatchString(column):
			of.Axes = append(of.Axes, axisOf(column))
		default:
			p.Unread = append(p.Unread, column)
		}
	}
	if !numbers {
		return nil, fmt.Errorf("%s: no column of %s looks like a throughput or a latency; write the System's results.numbers by hand", path, strings.Join(header, ", "))
	}
	p.Results = of
	read, err := readCells(&of, text)
	if err != nil {
		return nil, err
	}
	return p, p.try(read, &results.ScriptTable{Text: text})
}

// knownFormats are tried on a file before it is read as a table.
var knownFormats = []string{"HATSTable", "DMTreeTable", "ELECTSummary", "EigerGraph", FormatPequinStats, "YCSB"}

// ProposeFiles looks at files that a script has left, one for each point or more. The braces in
// path are axes already.
func ProposeFiles(path string, files []results.ScriptFile) (*Proposal, error) {
	table := &results.ScriptTable{Files: files}
	of := v1alpha1.ScriptResults{Path: path}
	if err := CheckPath(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	for _, of.Format = range knownFormats {
		read, bad, err := readScript(&of, table)
		if err == nil && len(read) > 0 && len(read) >= len(bad) {
			return proposeLabels(of, read, table)
		}
	}
	of.Format = ""
	first, err := Propose(files[0].Path, files[0].Text)
	if err != nil {
		return nil, err
	}
	of.Numbers, of.Axes = first.Results.Numbers, axesOfPath(&of)
	for _, a := range first.columns {
		if !slices.Contains(of.PathAxes(), a.Name) {
			of.Axes = append(of.Axes, a)
		}
	}
	read, _, err := readScript(&of, table)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Results: of, Unread: first.Unread}
	return p, p.try(read, table)
}

func axesOfPath(of *v1alpha1.ScriptResults) (axes []v1alpha1.RowAxis) {
	for _, name := range of.PathAxes() {
		axes = append(axes, v1alpha1.RowAxis{Name: name})
	}
	return axes
}

// ProposeRows takes columns and their values from text: scheme=serial,threads.
func ProposeRows(columns []string) (*Proposal, error) {
	p := &Proposal{Metric: "throughput"}
	for _, text := range columns {
		column, list, ok := strings.Cut(text, "=")
		values := strings.Split(list, ",")
		if !ok || column == "" || slices.Contains(values, "") {
			return nil, fmt.Errorf("%q must be COLUMN=VALUE,VALUE, such as scheme=serial,threads", text)
		}
		p.Results.Axes, p.Values = append(p.Results.Axes, axisOf(column)), append(p.Values, values)
	}
	return p, nil
}

// proposeLabels makes axes of the labels that tell the rows of a known format apart.
func proposeLabels(of v1alpha1.ScriptResults, read []Result, table *results.ScriptTable) (*Proposal, error) {
	names := map[string]bool{}
	for _, r := range read {
		for name := range r.Labels {
			names[name] = true
		}
	}
	p := &Proposal{Results: of}
	p.Results.Axes = axesOfPath(&of)
	for _, name := range sorted(names) {
		if !slices.Contains(of.PathAxes(), name) {
			p.Results.Axes = append(p.Results.Axes, axisOf(name))
		}
	}
	read, _, err := readScript(&p.Results, table)
	if err != nil {
		return nil, err
	}
	return p, p.try(read, table)
}

func sorted(names map[string]bool) (all []string) {
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// try reads the file as the proposal says. It drops axes with one value, which tell nothing apart.
func (p *Proposal) try(read []Result, table *results.ScriptTable) error {
	p.columns = slices.Clone(p.Results.Axes)
	for _, m := range []struct {
		name string
		of   func(Numbers) *float64
	}{
		{"throughput", func(n Numbers) *float64 { return n.Throughput }}, {"meanLatency", func(n Numbers) *float64 { return n.Mean }},
		{"p50Latency", func(n Numbers) *float64 { return n.P50 }}, {"p99Latency", func(n Numbers) *float64 { return n.P99 }},
	} {
		if p.Metric == "" && len(read) > 0 && m.of(read[0].Numbers) != nil {
			p.Metric = m.name
		}
	}
	p.Percentiles = len(read) > 0 && read[0].Numbers.P50 != nil && read[0].Numbers.P99 != nil
	var axes []v1alpha1.RowAxis
	for _, a := range p.Results.Axes {
		var values []string
		for _, r := range read {
			if v := r.Labels[a.Name]; !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 || slices.Contains(p.Results.PathAxes(), a.Name) {
			axes, p.Values = append(axes, a), append(p.Values, values)
		}
	}
	p.Results.Axes = axes
	const most = 1024 // points of an experiment
	if p.Points() > most {
		return fmt.Errorf("%s: the columns that tell rows apart have %d combinations; name in the System's results.axes those that do", p.Results.Path, p.Points())
	}
	var points []v1alpha1.Point
	for i := range p.Points() {
		at, rest := map[string]string{}, i
		for j := len(axes) - 1; j >= 0; j-- {
			at[axes[j].Name] = p.Values[j][rest%len(p.Values[j])]
			rest /= len(p.Values[j])
		}
		points = append(points, v1alpha1.Point{Index: int32(i), Coordinates: at})
	}
	rows, err := Rows(&p.Results, table, points)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Missing == "" {
			p.Read++
			continue
		}
		p.Missing = append(p.Missing, r.Missing)
	}
	return nil
}

func isFloat(cell string) bool {
	_, err := strconv.ParseFloat(cell, 64)
	return err == nil
}

// ownUnit stands for a column whose name gives both its number and its unit.
const ownUnit = "its own"

// Words of columns, and what they mean. The first that fits counts.
var columnWords = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`p?99\.?9|p999`), "P999Latency"},
	{regexp.MustCompile(`99`), "P99Latency"},
	{regexp.MustCompile(`90`), "P90Latency"},
	{regexp.MustCompile(`50|median`), "P50Latency"},
	{regexp.MustCompile(`p10\b|p10_`), "P10Latency"},
	{regexp.MustCompile(`max`), "MaxLatency"},
	{regexp.MustCompile(`lat|mean|avg|average|response`), "MeanLatency"},
	{regexp.MustCompile(`throughput|tput|thpt|thru|qps|iops|ops|tps|tx|req`), "Throughput"},
}

// parameter matches columns that tell rows apart even after the first number.
var parameter = regexp.MustCompile(`(?i)^(?:(?:#|n|no\.?|num|number)[ _]?(?:of[ _]?)?)?(?:clients|threads|servers|nodes|replicas|shards|connections|workers)$|(?:batch|value|key|payload)[ _]?size$`)

// otherLatency is a latency that is no mean: the least, a deviation, another percentile.
var otherLatency = regexp.MustCompile(`min|std|dev|var|(?:^|[^0-9.])(?:1|5|20|25|75|80|95|98)(?:[^0-9]|$)`)

var (
	timeUnit = regexp.MustCompile(`(?:^|[^a-z])(ns|us|µs|ms|s|sec|secs|seconds|millis|micros)(?:$|[^a-z])`)
	unitOf   = map[string]string{"ns": "ns", "us": "us", "µs": "us", "micros": "us", "ms": "ms", "millis": "ms", "s": "s", "sec": "s", "secs": "s", "seconds": "s"}
	wordsOf  = regexp.MustCompile(`[^a-zA-Z0-9]+`)
)

// numberOf guesses what a column is by its name.
func numberOf(column string) (name, unit string, known bool) {
	base, unit := splitColumn(column)
	var n Numbers
	if to, what := n.place(base); to != nil {
		_, isTime := millisOf[strings.ToLower(unit)]
		_, isRate := perSecond[strings.ToLower(unit)]
		if what == counted || what == rate && (unit == "" || isRate) || what != rate && isTime {
			for known, column := range numberColumns {
				if same, _ := n.place(column); same == to {
					name = known
				}
			}
			return name, ownUnit, true
		}
	}
	lower := strings.ToLower(column)
	for _, w := range columnWords {
		if !w.pattern.MatchString(lower) {
			continue
		}
		if w.name == "Throughput" {
			switch {
			case strings.Contains(lower, "kops") || strings.Contains(lower, "ktps") || strings.Contains(lower, "kqps"):
				return w.name, "kops/s", true
			case strings.Contains(lower, "mops"):
				return w.name, "Mops/s", true
			}
			return w.name, "ops/s", true
		}
		m := timeUnit.FindStringSubmatch(lower)
		if m == nil || w.name == "MeanLatency" && otherLatency.MatchString(lower) {
			return "", "", false // a latency without a unit is not known
		}
		return w.name, unitOf[m[1]], true
	}
	return "", "", false
}

// otherNames rename columns with the name of an axis that Assay sets itself.
var otherNames = map[string]string{
	"system": "protocol", "clients": "load", "rate": "load", "f": "faults", "network": "net", "shards": "parts",
}

// axisOf makes an axis of a column: its name in lowerCamelCase.
func axisOf(column string) v1alpha1.RowAxis {
	name := ""
	for _, word := range wordsOf.Split(column, -1) {
		if word == "" {
			continue
		}
		first := unicode.ToUpper(rune(word[0]))
		if name == "" {
			first = unicode.ToLower(first)
		}
		name += string(first) + word[1:]
	}
	if name == "" || !unicode.IsLower(rune(name[0])) {
		name = "column" + name
	}
	if other, taken := otherNames[name]; taken {
		name = other
	}
	a := v1alpha1.RowAxis{Name: name}
	if name != column {
		a.Column = column
	}
	return a
}
