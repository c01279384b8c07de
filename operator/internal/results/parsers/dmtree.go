package parsers

import (
	"errors"
	"io"
	"math"
	"strings"
)

// dmtreeUnit of all numbers: the programs print "Transaction throughput (MOPS)" for each node.
const dmtreeUnit = "Mops/s"

// parseDMTreeTable reads the CSV of DMTree: an index structure and a workload in each line, with
// the throughput of all nodes and of each.
//
//	Index,Workload,Total,Node1,Node2,Node4
//	dmtree,ycsb-c,27.46976,9.14222,9.43155,8.89599
//
// A line of zeros is a run that did not take place; it is skipped and counted as "missing runs".
// The total must be the sum of the nodes.
func parseDMTreeTable(file string, r io.Reader, _ Spec) (*Table, error) {
	in, t := newLines(file, r), newTable()
	var header []string
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		fields := strings.Split(string(line), ",")
		switch {
		case len(line) == 0:
		case header == nil:
			if len(fields) < 4 || fields[0] != "Index" || fields[1] != "Workload" || fields[2] != "Total" {
				return nil, in.errorf("the header is %q; it begins with Index,Workload,Total and names at least one node", short(line))
			}
			header = fields
		default:
			if err := dmtreeLine(in, t, header, fields); err != nil {
				return nil, err
			}
		}
	}
	if len(t.Rows)+t.Skipped["missing runs"] == 0 {
		return nil, in.errorf("the file ends without a line of numbers")
	}
	return t, nil
}

func dmtreeLine(in *lines, t *Table, header, fields []string) error {
	if len(fields) != len(header) {
		return in.errorf("the line has %d columns, the header %d", len(fields), len(header))
	}
	row := Row{Line: in.number, Labels: map[string]string{"index": fields[0], "workload": fields[1]}}
	sum := 0.0
	for i := 2; i < len(fields); i++ {
		x, err := parseCountable(fields[i])
		if err != nil {
			return in.errorf("column %s: %v", header[i], err)
		}
		if i > 2 {
			sum += x
		}
		row.Values = append(row.Values, Value{Name: header[i], Unit: dmtreeUnit, Number: x})
	}
	total := row.Values[0].Number
	if math.Abs(total-sum) > 1e-6*math.Max(1, sum) {
		return in.errorf("the total is %s, the sum of the nodes %g", fields[2], sum)
	}
	if total == 0 {
		t.Skipped["missing runs"]++
		return nil
	}
	if err := t.add(row); err != nil {
		return in.errorf("%v", err)
	}
	return nil
}
