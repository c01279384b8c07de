package parsers

import (
	"errors"
	"io"
	"strings"
)

// parseYCSB reads what YCSB prints at the end of a run:
//
//	[OVERALL], RunTime(ms), 54123
//	[OVERALL], Throughput(ops/sec), 460.72
//	[READ], Operations, 12500
//	[READ], 99thPercentileLatency(us), 55435
//	[READ], Return=OK, 12500
//
// Each section makes a row with the label operation. The counts of the "histogram" measurement type
// (a line for each millisecond, ten million in some workload files) are counted as skipped, as is
// the other output around the report. A report without its throughput is incomplete.
func parseYCSB(file string, r io.Reader, _ Spec) (*Table, error) {
	in, t := newLines(file, r), newTable()
	at := map[string]int{}
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := ycsbLine(in, t, at, string(line)); err != nil {
			return nil, err
		}
	}
	overall, ok := at["OVERALL"]
	if ok {
		_, ok = t.Rows[overall].Get("Throughput")
	}
	if !ok {
		return nil, in.errorf("the file ends without a line \"[OVERALL], Throughput(ops/sec), ...\"; it is no report of YCSB, or it is cut off")
	}
	return t, nil
}

func ycsbLine(in *lines, t *Table, at map[string]int, line string) error {
	section, rest, found := strings.Cut(line, "], ")
	if line == "" || line[0] != '[' || (!found && !strings.HasSuffix(line, "]")) {
		if line != "" {
			t.Skipped["other lines"]++
		}
		return nil
	}
	metric, number, found := strings.Cut(rest, ", ")
	if !found || section == "[" || metric == "" {
		return in.errorf("%q is not \"[SECTION], metric, number\"", line)
	}
	x, err := parseCountable(number)
	if err != nil {
		return in.errorf("%q: %v", line, err)
	}
	if isBucket(metric) {
		t.Skipped["histogram buckets"]++
		return nil
	}
	section = section[1:]
	i, known := at[section]
	if !known {
		i = len(t.Rows)
		at[section] = i
		if err := t.add(Row{Line: in.number, Labels: map[string]string{"operation": section}}); err != nil {
			return in.errorf("%v", err)
		}
	}
	name, unit := splitUnit(metric)
	if _, twice := t.Rows[i].Get(name); twice {
		return in.errorf("[%s] has %s twice; the file holds more than one report", section, name)
	}
	if t.values++; t.values > maxValues {
		return in.errorf("there are more than %d values; a summary is smaller", maxValues)
	}
	t.Rows[i].Values = append(t.Rows[i].Values, Value{Name: name, Unit: unit, Number: x})
	return nil
}

// isBucket: "17" or ">1000" is a bucket of a histogram in milliseconds.
func isBucket(metric string) bool {
	digits := strings.TrimPrefix(metric, ">")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
