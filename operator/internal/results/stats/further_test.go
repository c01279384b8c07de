package stats_test

import (
	"slices"
	"testing"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A point has the percentiles that its source reports, over the trials that have them.
func TestPointsHaveFurtherMetrics(t *testing.T) {
	further := stats.Further([]string{"P999Latency", "Throughput", "P90Latency", "ThroughputPerCorrectClient", "Measurement", "P999Latency"})
	if want := []string{stats.P90Latency, stats.P999Latency}; !slices.Equal(further, want) {
		t.Fatalf("further metrics are %q, want %q", further, want)
	}
	line := func(p90, p999 float64) results.TrialLine {
		return results.TrialLine{Outcome: stats.Succeeded, Committed: 10, P90Millis: p90, P999Millis: p999}
	}
	lines := []results.TrialLine{line(2, 8), line(4, 0)}
	got := stats.Points(lines, further...)[0].Metrics
	if p90, p999 := got[stats.P90Latency], got[stats.P999Latency]; p90.N != 2 || p90.Mean != 3 || p999.N != 1 || p999.Mean != 8 {
		t.Errorf("p90 is %+v, want 3 of 2 trials; p999 is %+v, want 8 of one", p90, p999)
	}
	if _, has := stats.Points(lines)[0].Metrics[stats.P999Latency]; has {
		t.Error("a point has a percentile that nothing asked for")
	}
}
