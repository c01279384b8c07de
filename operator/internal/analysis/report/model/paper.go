package model

import (
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// MetricOfSeries is the metric that a series is about. For a measurement, it is the measurement's
// name.
func MetricOfSeries(s results.ReportedSeries) string {
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

// PaperValue is what the paper reports at a point, in tx/s or ms. The first series that has the
// point wins.
func PaperValue(e results.Experiment, metric string, coordinates map[string]string) (float64, bool) {
	for _, s := range e.Reported {
		factor, known := Factor(s)
		if !known || MetricOfSeries(s) != metric || !Agrees(s.At, coordinates) {
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

// PaperBetween is the paper's value at a point that it does not report. The value lies on the
// straight line between the reported values on either side, along an axis of numbers. False: the
// paper reports the point, or nothing on one side. The value is for tables only: no verdict reads
// it.
func PaperBetween(e results.Experiment, metric string, coordinates map[string]string) (float64, bool) {
	if _, has := PaperValue(e, metric, coordinates); has {
		return 0, false
	}
	for _, s := range e.Reported {
		factor, known := Factor(s)
		if !known || MetricOfSeries(s) != metric || !Agrees(s.At, coordinates) {
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

// Factor turns the values of a series into tx/s or ms, corrected. Those of a measurement are in its
// unit.
func Factor(s results.ReportedSeries) (float64, bool) {
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

// Agrees reports whether the coordinates have all values that are asked for.
func Agrees(at, coordinates map[string]string) bool {
	for axis, value := range at {
		if mine, ok := coordinates[axis]; !ok || !results.SameValue(mine, value) {
			return false
		}
	}
	return true
}
