package parsers

import (
	"errors"
	"io"
	"strings"
)

// hatsMayBeNegative is the one column that HATS computes as a difference: its own sample has -598
// us for mlsm under workload C.
const hatsMayBeNegative = "Selection"

// parseHATSTable reads exp#_summary.txt of HATS: banners of #, and under each one or more tables
//
//	Scheme          Workload        Throughput(ops/s)    P50(us)         P99(us)         P999(us)
//	--------------------------------------------------------------------------------
//	hats            workloada       38105.22             511.00          14894.00        82891.00
//
// Each line makes a row with the labels experiment (of the banner), scheme, and whatever the second
// column is about (workload, consistency).
func parseHATSTable(file string, r io.Reader, _ Spec) (*Table, error) {
	h := hatsReader{in: newLines(file, r), t: newTable()}
	for {
		line, err := h.in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := h.line(strings.TrimSpace(string(line))); err != nil {
			return nil, err
		}
	}
	switch {
	case len(h.t.Rows) == 0:
		return nil, h.in.errorf("the file has no table that begins with Scheme")
	case h.open:
		return nil, h.in.errorf("the file ends after the header of a table; it is cut off")
	}
	return h.t, nil
}

type hatsReader struct {
	in      *lines
	t       *Table
	title   string
	columns []string // of the current table; nil: there is none
	open    bool     // a header was read and no row yet
}

func (h *hatsReader) line(line string) error {
	switch {
	case line == "":
		return h.end()
	case strings.Trim(line, "#") == "", strings.Trim(line, "-") == "":
		return nil
	case line[0] == '#':
		h.title = strings.TrimSpace(strings.Trim(line, "#"))
		return h.end()
	case strings.HasPrefix(line, "Scheme"):
		if err := h.end(); err != nil {
			return err
		}
		h.columns, h.open = hatsColumns(line), true
		if len(h.columns) < 3 {
			return h.in.errorf("the header %q has fewer than three columns", line)
		}
		return nil
	case h.columns == nil:
		h.t.Skipped["other lines"]++
		return nil
	}
	return h.row(line)
}

// end closes the current table.
func (h *hatsReader) end() error {
	if h.open {
		return h.in.errorf("the table above has a header and no row; the file is damaged")
	}
	h.columns = nil
	return nil
}

func (h *hatsReader) row(line string) error {
	fields := strings.Fields(line)
	if len(fields) != len(h.columns) {
		return h.in.errorf("the line has %d columns, its header %d (%s)", len(fields), len(h.columns), strings.Join(h.columns, ", "))
	}
	h.open = false
	row := Row{Line: h.in.number, Labels: map[string]string{
		"experiment": h.title, strings.ToLower(h.columns[0]): fields[0], strings.ToLower(h.columns[1]): fields[1]}}
	for i := 2; i < len(fields); i++ {
		x, err := parseNumber(fields[i])
		if err != nil {
			return h.in.errorf("column %s: %v", h.columns[i], err)
		}
		name, unit := splitUnit(h.columns[i])
		if x < 0 {
			if name != hatsMayBeNegative {
				return h.in.errorf("column %s: %s is negative", h.columns[i], fields[i])
			}
			h.t.warn("%s:%d: %s is %s %s, which no time can be: HATS computes it as a difference", h.in.file, h.in.number, name, fields[i], unit)
		}
		row.Values = append(row.Values, Value{Name: name, Unit: unit, Number: x})
	}
	if err := h.t.add(row); err != nil {
		return h.in.errorf("%v", err)
	}
	return nil
}

// hatsColumns splits a header at two blanks and more, and after a unit: "Avg CoV" is one column,
// "AverageReadLatency(us) Out-of-Range(%)" are two.
func hatsColumns(header string) []string {
	var columns []string
	for part := range strings.SplitSeq(strings.ReplaceAll(header, ") ", ")  "), "  ") {
		if part = strings.TrimSpace(part); part != "" {
			columns = append(columns, part)
		}
	}
	return columns
}
