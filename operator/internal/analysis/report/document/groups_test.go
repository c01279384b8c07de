package document_test

import (
	"bytes"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Trials in a slow mode are named where the numbers are; trials that vary as usual are not.
func TestTrialsInGroupsAreShown(t *testing.T) {
	for name, slow := range map[string]float64{"usual": 1, "slow": 1.5} {
		e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"5", "50"}}}}
		for point, clients := range e.Axes[0].Values {
			for k, share := range []float64{1, 0.98, 1.02, 0.99, 1.01, 0.985} {
				l := results.TrialLine{PointIndex: int32(point), Coordinates: map[string]string{"clients": clients}, Outcome: stats.Succeeded,
					Repetition: int32(k), Committed: 1000, Throughput: 100 * share, MeanMillis: 10 * share, P99Millis: 30 * share}
				if point == 1 && k == 4 {
					l.MeanMillis *= slow
				}
				e.Trials = append(e.Trials, l)
			}
		}
		e.Points = stats.Points(e.Trials)
		var page bytes.Buffer
		if err := format.Markdown(&page, e); err != nil {
			t.Fatal(err)
		}
		const words = "mean latency ms at clients=50: trials lie in groups far apart"
		if strings.Contains(page.String(), words) != (slow > 1) || strings.Contains(page.String(), "ms at clients=5:") {
			t.Errorf("%s:\n%s", name, page.String())
		}
		if slow > 1 && !strings.Contains(page.String(), "10.2, 15.1") {
			t.Errorf("%s: the trials are not there:\n%s", name, page.String())
		}
	}
}
