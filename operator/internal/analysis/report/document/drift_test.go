package document_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Once, no report mentioned a drift of the machines. Now it names a drift of 20% over the
// experiment, with its size. For steady machines, it names no drift in 95% of experiments.
func TestDriftIsReported(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 14))
	said := func(drift float64) (n int, page string) {
		for range 100 {
			e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2", "3", "4"}}}}
			for k := range 5 {
				for p, clients := range e.Axes[0].Values {
					number := 4*k + p
					x := float64(1+p) * (1 + 0.02*rng.NormFloat64() + drift*float64(number)/20)
					e.Trials = append(e.Trials, results.TrialLine{Number: int32(number), PointIndex: int32(p), Coordinates: map[string]string{"clients": clients}, Repetition: int32(k),
						Outcome: stats.Succeeded, Committed: 1000, Throughput: 100 * x, MeanMillis: 10 * (1 + 0.02*rng.NormFloat64()), P99Millis: 30})
				}
			}
			e.Points = stats.Points(e.Trials)
			var b bytes.Buffer
			if err := format.Markdown(&b, e); err != nil {
				t.Fatal(err)
			}
			if page = b.String(); strings.Contains(page, "The machines or the system drifted") {
				n++
			}
		}
		return n, page
	}
	if n, _ := said(0); n > 9 {
		t.Errorf("of steady machines a drift is said in %d of 100 experiments", n)
	}
	if n, page := said(0.2); n < 99 || !strings.Contains(page, "throughput tx/s changed by +") {
		t.Errorf("a drift of 20%% is said in %d of 100 experiments:\n%s", n, page)
	}
}
