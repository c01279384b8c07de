package parsers

import (
	"errors"
	"io"
	"strings"
)

// parseELECTSummary reads the summaries in Exp#-*.log. Scripts of ELECT write them, and scripts
// that DMTree took over from ELECT:
//
//	[Exp info] scheme: elect, workload: Write, KVNumber: 600000
//	Throughput (unit: op/s):
//	Average: 9992.38, Min:  9753.43, Max:  10231.33
//	Total storage overhead (unit: GiB): 185.90
//
// A line that begins with brackets begins a row. The text in the brackets is the label "info", and
// the text after them has the other labels. A metric is followed by "Only one round: x", by
// average, minimum and maximum, or directly by its number. Values are named metric, or metric and
// "average", "min", "max".
func parseELECTSummary(file string, r io.Reader, _ Spec) (*Table, error) {
	e := electReader{in: newLines(file, r), t: newTable()}
	for {
		line, err := e.in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := e.line(strings.TrimSpace(string(line))); err != nil {
			return nil, err
		}
	}
	if e.metric != "" {
		return nil, e.in.errorf("the file ends after %q, without its number; it is cut off", e.metric)
	}
	if err := e.flush(); err != nil {
		return nil, err
	}
	if len(e.t.Rows) == 0 {
		return nil, e.in.errorf("the file has no line that begins with [Exp info] or the like")
	}
	return e.t, nil
}

type electReader struct {
	in           *lines
	t            *Table
	row          *Row
	metric, unit string // whose number is on the next line; empty: none is awaited
}

func (e *electReader) line(line string) error {
	switch {
	case line == "" || line == "...":
		return nil
	case e.metric != "":
		return e.statistics(line)
	case line[0] == '[' && isElectTitle(line):
		return e.title(line)
	case e.row == nil:
		e.t.Skipped["other lines"]++
		return nil
	}
	return e.metricLine(line)
}

// isElectTitle: "[READ] Average operation latency (unit: us):" is a metric, "[Exp info] scheme:
// elect" a title.
func isElectTitle(line string) bool {
	inside, rest, found := strings.Cut(line[1:], "]")
	return found && strings.Contains(inside, " ") && strings.Contains(rest, ":")
}

func (e *electReader) title(line string) error {
	if err := e.flush(); err != nil {
		return err
	}
	info, rest, _ := strings.Cut(line[1:], "]")
	e.row = &Row{Line: e.in.number, Labels: map[string]string{"info": info}}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, found := strings.Cut(part, ":")
		if !found {
			return e.in.errorf("%q is not \"name: value\"", strings.TrimSpace(part))
		}
		e.row.Labels[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return nil
}

func (e *electReader) metricLine(line string) error {
	end := strings.LastIndex(line, "):")
	open := strings.LastIndex(line[:max(end, 0)], "(")
	if end < 0 || open <= 0 {
		return e.in.errorf("%q is not \"metric (unit: x):\"", line)
	}
	name, unit := strings.TrimSpace(line[:open]), strings.TrimPrefix(line[open+1:end], "unit: ")
	if rest := strings.TrimSpace(line[end+2:]); rest != "" {
		return e.value(name, unit, rest)
	}
	e.metric, e.unit = name, unit
	return nil
}

func (e *electReader) statistics(line string) error {
	name, unit := e.metric, e.unit
	e.metric = ""
	if number, found := strings.CutPrefix(line, "Only one round:"); found {
		return e.value(name, unit, strings.TrimSpace(number))
	}
	if !strings.HasPrefix(line, "Average") {
		return e.in.errorf("%q follows %q; it must be \"Only one round: x\" or \"Average: x, Min: y, Max: z\"", line, name)
	}
	for part := range strings.SplitSeq(line, ",") {
		what, number, found := strings.Cut(part, ":")
		if !found {
			return e.in.errorf("%q is not \"name: number\"", strings.TrimSpace(part))
		}
		if err := e.value(name+" "+strings.ToLower(strings.TrimSpace(what)), unit, strings.TrimSpace(number)); err != nil {
			return err
		}
	}
	return nil
}

func (e *electReader) value(name, unit, number string) error {
	x, err := parseCountable(number)
	if err != nil {
		return e.in.errorf("%s: %v", name, err)
	}
	if len(e.row.Values) >= maxValues {
		return e.in.errorf("there are more than %d values; a summary is smaller", maxValues)
	}
	e.row.Values = append(e.row.Values, Value{Name: name, Unit: unit, Number: x})
	return nil
}

// flush appends the current row.
func (e *electReader) flush() error {
	if e.row == nil {
		return nil
	}
	if len(e.row.Values) == 0 {
		return e.in.errorf("what line %d announces has no number; the file is damaged", e.row.Line)
	}
	if err := e.t.add(*e.row); err != nil {
		return e.in.errorf("%v", err)
	}
	e.row = nil
	return nil
}
