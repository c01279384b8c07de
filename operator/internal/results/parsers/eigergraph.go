package parsers

import (
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// eigerColumns are the columns of combined.graph. The README of Eiger-PORT explains threads, the
// two throughputs and their ratio; the others are the columns that the stress tool prints each
// second (operations, keys, columns, bytes). In its sample there are 5 keys in a transaction, 5
// columns for each key and 128 bytes in each, which fits.
var eigerColumns = []struct{ name, unit string }{
	{"threads", ""}, {"throughput", "tx/s"}, {"keys", "keys/s"}, {"columns", "columns/s"}, {"bytes", "bytes/s"},
}

// parseEigerGraph reads combined.graph: a line for each number of threads, with Eiger-PORT's five
// columns, Eiger's five, and the ratio of the throughputs. Each line makes two rows, with the label
// system; the ratio is Eiger-PORT's.
func parseEigerGraph(file string, r io.Reader, _ Spec) (*Table, error) {
	in, t := newLines(file, r), newTable()
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		if err := eigerLine(in, t, fields); err != nil {
			return nil, err
		}
	}
	if len(t.Rows) == 0 {
		return nil, in.errorf("the file has no line of numbers")
	}
	return t, nil
}

func eigerLine(in *lines, t *Table, fields []string) error {
	n := len(eigerColumns)
	if len(fields) != 2*n+1 {
		return in.errorf("there are %d columns; combined.graph has %d", len(fields), 2*n+1)
	}
	numbers := make([]float64, len(fields))
	for i, f := range fields {
		x, err := parseCountable(f)
		if err != nil {
			return in.errorf("column %d: %v", i+1, err)
		}
		numbers[i] = x
	}
	if numbers[0] != numbers[n] {
		return in.errorf("Eiger-PORT ran with %s threads, Eiger with %s; a line compares the same number", fields[0], fields[n])
	}
	ratio := numbers[2*n]
	if want := numbers[1] / numbers[n+1]; !(math.Abs(ratio-want) <= 0.001*math.Max(1, want)) {
		return in.errorf("the ratio is %s; %s / %s is %.3f", fields[2*n], fields[1], fields[n+1], want)
	}
	for i, system := range []string{"Eiger-PORT", "Eiger"} {
		row := Row{Line: in.number, Labels: map[string]string{"system": system, "threads": strconv.FormatFloat(numbers[0], 'f', -1, 64)}}
		for k, c := range eigerColumns[1:] {
			row.Values = append(row.Values, Value{Name: c.name, Unit: c.unit, Number: numbers[i*n+k+1]})
		}
		if i == 0 {
			row.Values = append(row.Values, Value{Name: "ratio", Number: ratio})
		}
		if err := t.add(row); err != nil {
			return in.errorf("%v", err)
		}
	}
	return nil
}
