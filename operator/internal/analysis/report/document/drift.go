package document

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

const (
	// leastDrift is how many trials a drift needs to be looked for.
	leastDrift = 8
	// driftLevel is the P below which there is a drift. Two metrics are looked at.
	driftLevel = 0.025
)

// drifts say whether trials became faster or slower in the order in which they ran, each by the
// mean of its point. The random order of rounds protects against such a drift. If there is one,
// trials that did not run in turn cannot be compared.
func drifts(e results.Experiment) []string {
	var notes []string
	for _, m := range shownMetrics {
		if m.metric != stats.Throughput && m.metric != stats.MeanLatency {
			continue
		}
		var at, share []float64
		for _, p := range e.Points {
			samples := model.SamplesOf(e, p, m.metric)
			mean := stat.Mean(samples, nil)
			i := 0
			for _, l := range e.Trials {
				if l.PointIndex != p.Index || l.Outcome != stats.Succeeded || !stats.Has(l, m.metric) || len(samples) < 2 || !(mean > 0) {
					continue
				}
				at, share = append(at, float64(l.Number)), append(share, samples[i]/mean-1)
				i++
			}
		}
		if len(at) < leastDrift {
			continue
		}
		t, err := stats.FindTrend(at, share)
		if err != nil || t.P >= driftLevel {
			continue
		}
		whole := t.Slope * (slices.Max(at) - slices.Min(at))
		notes = append(notes, fmt.Sprintf("The machines or the system drifted: %s changed by %+.1f%% from the first trial to the last, beside what points differ by (Kendall's test, P %.2g). "+
			"Rounds take this out of comparisons if trials ran in turn.", m.name, 100*whole, t.P))
	}
	return notes
}
