package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// metricOfSeries is the metric that a series is about: of a measurement its name.
func metricOfSeries(s results.ReportedSeries) string {
	if s.Metric == measurementSeries {
		return s.Measurement
	}
	return stats.OfSeries[s.Metric]
}

// measurementSeries is the metric of series that are about a measurement.
const measurementSeries = "Measurement"

// factors turn the units that papers use into tx/s and ms.
var factors = map[string]map[string]float64{
	stats.Throughput: {
		"tx/s": 1, "txn/s": 1, "tps": 1, "op/s": 1, "ops/s": 1, "req/s": 1, "1/s": 1,
		"ktx/s": 1e3, "ktxn/s": 1e3, "ktps": 1e3, "kop/s": 1e3, "kops/s": 1e3, "kreq/s": 1e3,
	},
	stats.MeanLatency: {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3},
}

// paperValue is what the paper reports at a point, in tx/s or ms. The first series that has the
// point wins.
func paperValue(e results.Experiment, metric string, coordinates map[string]string) (float64, bool) {
	for _, s := range e.Reported {
		factor, known := factor(s)
		if !known || metricOfSeries(s) != metric || !agrees(s.At, coordinates) {
			continue
		}
		for i, x := range s.X {
			if results.SameValue(x, coordinates[s.Axis]) {
				return s.Y[i] * factor, true
			}
		}
	}
	return 0, false
}

// paperBetween is the paper's value at a point that it does not report. It is on the straight line
// between the two that it reports on either side, of an axis of numbers. False: it reports the
// point, or nothing on one side. It is for tables only: no verdict reads it.
func paperBetween(e results.Experiment, metric string, coordinates map[string]string) (float64, bool) {
	if _, has := paperValue(e, metric, coordinates); has {
		return 0, false
	}
	for _, s := range e.Reported {
		factor, known := factor(s)
		if !known || metricOfSeries(s) != metric || !agrees(s.At, coordinates) {
			continue
		}
		x, err := strconv.ParseFloat(coordinates[s.Axis], 64)
		if err != nil {
			continue
		}
		below, above := -1, -1
		at := make([]float64, len(s.X))
		for i := range s.X {
			if at[i], err = strconv.ParseFloat(s.X[i], 64); err != nil {
				break
			}
			if at[i] < x && (below < 0 || at[i] > at[below]) {
				below = i
			}
			if at[i] > x && (above < 0 || at[i] < at[above]) {
				above = i
			}
		}
		if err == nil && below >= 0 && above >= 0 {
			share := (x - at[below]) / (at[above] - at[below])
			return (s.Y[below] + share*(s.Y[above]-s.Y[below])) * factor, true
		}
	}
	return 0, false
}

// paperCells are the paper's value at a point and the ratio of what was measured to it. A value
// between two that the paper reports has a mark.
func paperCells(e results.Experiment, metric string, p results.PointResult) []string {
	measured := p.Metrics[metric]
	paper, has := paperValue(e, metric, p.Coordinates)
	if has {
		return []string{paperCell(paper, true), ratioCell(measured, paper, true)}
	}
	if paper, has = paperBetween(e, metric, p.Coordinates); !has {
		return []string{"-", "-"}
	}
	ratio := ratioCell(measured, paper, true)
	if ratio != "-" {
		ratio = between + ratio
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(paper, 'g', betweenDigits, 64), 64)
	if err != nil {
		rounded = paper // a number that was just written is read again
	}
	return []string{between + strconv.FormatFloat(rounded, 'f', -1, 64), ratio}
}

const (
	// between marks a value of the paper's that lies between two that it reports.
	between = "≈"
	// betweenDigits are the digits of such a value: papers' curves are read to about 1%.
	betweenDigits = 3
)

// factor turns the values of a series into tx/s or ms, corrected. Those of a measurement are in its
// unit.
func factor(s results.ReportedSeries) (float64, bool) {
	kind := stats.OfSeries[s.Metric]
	switch kind {
	case stats.Throughput, stats.PerCorrectClientThroughput:
		kind = stats.Throughput
	default:
		kind = stats.MeanLatency
	}
	f, ok := factors[kind][strings.ToLower(s.Unit)]
	if s.Metric == measurementSeries {
		f, ok = 1, true
	}
	if s.Correction > 0 {
		f *= s.Correction
	}
	return f, ok
}

func agrees(at, coordinates map[string]string) bool {
	for axis, value := range at {
		if mine, ok := coordinates[axis]; !ok || !results.SameValue(mine, value) {
			return false
		}
	}
	return true
}

// paperNotes say what of the paper's values is not in the table, and what the source left unclear.
// Series of which the same is to be said share a note.
func paperNotes(e results.Experiment) []string {
	var unknown, elsewhere, unclear sharedNotes
	for _, s := range e.Reported {
		if _, known := factor(s); !known {
			unknown.add(s.Name, fmt.Sprintf("in %q, which cannot be converted to tx/s or ms: not in the table.", s.Unit))
			continue
		}
		var xs []string
		for _, x := range s.X {
			if !slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
				return agrees(s.At, p.Coordinates) && results.SameValue(x, p.Coordinates[s.Axis])
			}) {
				xs = append(xs, x)
			}
		}
		if len(xs) > 0 {
			elsewhere.add(s.Name, fmt.Sprintf("also at %s = %s, which this sweep has not.", s.Axis, strings.Join(xs, ", ")))
		}
		if s.Correction > 0 {
			unclear.add(s.Name, fmt.Sprintf("its values are multiplied by %s everywhere.", strconv.FormatFloat(s.Correction, 'f', -1, 64)))
		}
		if s.Note != "" {
			unclear.add(s.Name, s.Note)
		}
	}
	notes := slices.Concat(unknown.lines(), elsewhere.lines(), unclear.lines())
	if slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
		return slices.ContainsFunc(shownMetrics, func(m shownMetric) bool { _, ok := paperBetween(e, m.metric, p.Coordinates); return ok })
	}) {
		notes = append(notes, between+": the paper does not report this point. The value lies on the straight line between its neighbours there, and no verdict uses it.")
	}
	return notes
}

// sharedNotes are notes on series, in the order in which they were first made.
type sharedNotes struct {
	texts  []string
	series map[string][]string
}

func (n *sharedNotes) add(series, text string) {
	if n.series == nil {
		n.series = map[string][]string{}
	}
	if n.series[text] == nil {
		n.texts = append(n.texts, text)
	}
	n.series[text] = append(n.series[text], series)
}

func (n *sharedNotes) lines() []string {
	var lines []string
	for _, text := range n.texts {
		lines = append(lines, fmt.Sprintf("Paper, %s: %s", strings.Join(n.series[text], ", "), text))
	}
	return lines
}
