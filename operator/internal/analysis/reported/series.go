package reported

import (
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Bounds of an Experiment's reported series.
const (
	maxSeriesName = 63
	maxSeriesNote = 1024
)

// units has the units of an Experiment's metrics, with the factors from the sources' units. An
// operation of a store counts as a transaction.
var units = map[string]struct {
	unit    string
	factors map[string]float64
	short   string
}{
	"Throughput":                 {"tx/s", map[string]float64{"tx/s": 1, "ops/s": 1, "Mops/s": 1e6}, "throughput"},
	"ThroughputPerCorrectClient": {"tx/s", map[string]float64{"tx/s": 1, "ops/s": 1}, "per-correct-client"},
	"MeanLatency":                {"ms", map[string]float64{"ms": 1, "us": 1e-3, "s": 1e3}, "latency"},
	"P50Latency":                 {"ms", map[string]float64{"ms": 1, "us": 1e-3, "s": 1e3}, "p50"},
	"P90Latency":                 {"ms", map[string]float64{"ms": 1, "us": 1e-3, "s": 1e3}, "p90"},
	"P95Latency":                 {"ms", map[string]float64{"ms": 1, "us": 1e-3, "s": 1e3}, "p95"},
	"P99Latency":                 {"ms", map[string]float64{"ms": 1, "us": 1e-3, "s": 1e3}, "p99"},
	"P999Latency":                {"ms", map[string]float64{"ms": 1, "us": 1e-3, "s": 1e3}, "p99.9"},
}

// Series maps the curve onto reported series of an Experiment, one for each metric that an
// Experiment knows. The argument at fixes the Experiment's other axes. The result other has the
// metrics that the Experiment does not know.
func (c Curve) Series(at map[string]v1alpha1.Value) (series []v1alpha1.ReportedSeries, other []string) {
	for _, column := range c.Values {
		u, known := units[column.Metric]
		factor, convertible := u.factors[column.Unit]
		if !known || !convertible {
			other = append(other, fmt.Sprintf("%s (%s)", column.Metric, column.Unit))
			continue
		}
		s := v1alpha1.ReportedSeries{
			Name:   cut(c.Name, maxSeriesName-len(u.short)-1) + "-" + u.short,
			Metric: column.Metric, Unit: u.unit, At: at, Axis: c.Axis, Note: c.note(),
		}
		for i, n := range column.Numbers {
			if n != nil {
				s.Values = append(s.Values, v1alpha1.ReportedValue{X: c.X[i], Y: v1alpha1.NewValue(scaled(*n, factor))})
			}
		}
		series = append(series, s)
	}
	return series, other
}

// scaled multiplies without adding digits that the source does not have: 12345 us are 12.345 ms.
func scaled(n, factor float64) string {
	if factor == 1 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n*factor, 'g', 15, 64)
}

func (c Curve) note() string {
	var parts []string
	for _, p := range []struct{ head, text string }{{"", c.Note}, {"Inferred: ", c.XInferred}, {"Left out: ", c.LeftOut}} {
		if p.text != "" {
			parts = append(parts, p.head+p.text)
		}
	}
	return cut(strings.Join(parts, " "), maxSeriesNote)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.TrimRight(strings.ToValidUTF8(s[:most], ""), "-. ")
}
