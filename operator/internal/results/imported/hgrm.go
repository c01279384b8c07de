package imported

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// FormatHdrPercentiles is the table of percentiles that HdrHistogram's libraries write, mostly as
// .hgrm, and that wrk2 --u_latency prints among other things:
//
//	       Value     Percentile TotalCount 1/(1-Percentile)
//
//	       0.511 0.500000000000       5004           2.00
//	      27.823 1.000000000000      10000            inf
//	#[Mean    =        0.745, StdDeviation   =        1.234]
//	#[Max     =       27.823, Total count    =        10000]
const FormatHdrPercentiles = "HdrPercentiles"

var (
	hgrmHeader = regexp.MustCompile(`^\W*Value\W+Percentile\W+TotalCount`)
	hgrmMean   = regexp.MustCompile(`^#\[Mean\s*=\s*([0-9.eE+-]+),`)
	hgrmTotal  = regexp.MustCompile(`^#\[Max\s*=\s*[0-9.eE+-]+, Total count\s*=\s*([0-9]+)\]`)
)

// hgrmRow says that a share of all values is at most this value.
type hgrmRow struct{ value, share float64 }

// readHdrPercentiles reads a table. It has no throughput. A percentile between two rows gets the
// value of the next row, which is not below it. The reader reports such a percentile.
func readHdrPercentiles(name string, data []byte, o Options) ([]Result, []string, error) {
	factor, known := millisOf[strings.ToLower(o.Unit)]
	if !known {
		return nil, nil, fmt.Errorf("%s: the table does not say the unit of its values: name it by --unit, one of ns, us, ms, s", name)
	}
	rows, r, err := hgrmRows(name, data, factor)
	if err != nil {
		return nil, nil, err
	}
	var named []string
	for _, p := range []struct {
		name  string
		share float64
		to    **float64
	}{{"p10", 0.1, &r.P10}, {"p50", 0.5, &r.P50}, {"p90", 0.9, &r.P90}, {"p99", 0.99, &r.P99}, {"p99.9", 0.999, &r.P999}, {"the maximum", 1, &r.Max}} {
		i := slices.IndexFunc(rows, func(row hgrmRow) bool { return row.share >= p.share-1e-9 })
		if i < 0 {
			return nil, nil, fmt.Errorf("%s: the table ends at %g%%: it has no row of the maximum, and may be cut off", name, 100*rows[len(rows)-1].share)
		}
		value := rows[i].value
		*p.to = &value
		if rows[i].share > p.share+1e-9 {
			named = append(named, fmt.Sprintf("of %s: the exact %s, for which its %.4f%% stand", name, p.name, 100*rows[i].share))
		}
	}
	if err := r.complete(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return []Result{r}, named, nil
}

// hgrmRows returns the rows of the table, and the numbers in the lines under it.
func hgrmRows(name string, data []byte, factor float64) (rows []hgrmRow, r Result, err error) {
	r.Labels = map[string]string{}
	inTable := false
	for i, line := range strings.Split(string(bytes.TrimSpace(data)), "\n") {
		line = strings.TrimRight(line, "\r")
		fields := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' || c == ',' })
		switch {
		case hgrmHeader.MatchString(line):
			if inTable {
				return nil, r, fmt.Errorf("%s:%d: a second table begins: it has two results", name, i+1)
			}
			inTable, r.From = true, results.Imported{Line: i + 1}
		case hgrmMean.MatchString(line):
			mean, err := strconv.ParseFloat(hgrmMean.FindStringSubmatch(line)[1], 64)
			if err != nil {
				return nil, r, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
			mean *= factor
			r.Mean = &mean
		case hgrmTotal.MatchString(line):
			total, err := strconv.ParseFloat(hgrmTotal.FindStringSubmatch(line)[1], 64)
			if err != nil {
				return nil, r, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
			r.Committed = &total
		case !inTable, len(fields) == 0, line[0] == '#':
		case r.Committed != nil || r.Mean != nil: // what follows the table
		case len(fields) < 3:
			return nil, r, fmt.Errorf("%s:%d: %q is no row of the table: a value, a share and a count", name, i+1, line)
		default:
			value, badValue := strconv.ParseFloat(fields[0], 64)
			share, badShare := strconv.ParseFloat(fields[1], 64)
			if err := errors.Join(badValue, badShare); err != nil {
				return nil, r, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
			if n := len(rows); value < 0 || share < 0 || share > 1 || n > 0 && (share < rows[n-1].share || value*factor < rows[n-1].value) {
				return nil, r, fmt.Errorf("%s:%d: %g at %g: values and shares must rise, and shares end at 1", name, i+1, value, share)
			}
			rows = append(rows, hgrmRow{value * factor, share})
		}
	}
	if len(rows) == 0 {
		return nil, r, fmt.Errorf("%s: there is no table of percentiles under \"Value Percentile TotalCount\"", name)
	}
	return rows, r, nil
}
