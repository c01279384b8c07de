package model

import (
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// SamplesOf are the values of a metric in the valid trials of a point. Nil: the results lack some
// of the trials' lines, which are left out if they take too much room.
func SamplesOf(e results.Experiment, p results.PointResult, metric string) []float64 {
	var samples []float64
	for _, l := range e.Trials {
		if l.PointIndex == p.Index && l.Outcome == stats.Succeeded && stats.Has(l, metric) {
			samples = append(samples, stats.Of(l, metric))
		}
	}
	if len(samples) != p.Metrics[metric].N {
		return nil
	}
	return samples
}

// SummaryOf summarises these values. It is false if there is none.
func SummaryOf(e results.Experiment, p results.PointResult, metric string) (stats.Summary, bool) {
	samples := SamplesOf(e, p, metric)
	s, err := stats.Summarize(samples)
	return s, err == nil && !slices.Contains(s.Cautions, stats.NoSamples)
}
