package model

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// TrialHistogram is the latency histogram of a valid trial: every transaction that it committed in
// the window.
type TrialHistogram struct {
	Trial       string
	Number      int32
	Point       int32
	Repetition  int32
	Coordinates map[string]string
	Bins        []results.Bin
}

// HistogramOf reads a trial's histogram. False: the trial does not count, or its results have none.
func HistogramOf(t results.Trial) (TrialHistogram, bool, error) {
	if t.Outcome != stats.Succeeded || t.Latency == "" {
		return TrialHistogram{}, false, nil
	}
	h, err := results.DecodeHistogram(t.Latency)
	if err != nil {
		return TrialHistogram{}, false, fmt.Errorf("latencies of trial %s: %w", t.Name, err)
	}
	return TrialHistogram{Trial: t.Name, Number: t.Number, Point: t.PointIndex, Repetition: t.Repetition, Coordinates: t.Coordinates, Bins: h.Bins()}, true, nil
}

// SortHistograms by the order in which the trials ran.
func SortHistograms(all []TrialHistogram) {
	slices.SortFunc(all, func(a, b TrialHistogram) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Trial, b.Trial))
	})
}
