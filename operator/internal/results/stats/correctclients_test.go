package stats_test

import (
	"testing"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A point has throughput by correct client only if its trials say how many clients were correct.
func TestThroughputPerCorrectClient(t *testing.T) {
	line := func(point int32, throughput float64, correct int32) results.TrialLine {
		return results.TrialLine{PointIndex: point, Outcome: stats.Succeeded, Throughput: throughput, CorrectClients: correct}
	}
	points := stats.Points([]results.TrialLine{line(0, 700, 7), line(0, 770, 7), line(1, 700, 0)})
	if a := points[0].Metrics[stats.PerCorrectClientThroughput]; a.N != 2 || a.Mean != 105 || a.Min != 100 || a.Max != 110 {
		t.Errorf("of 700 and 770 tx/s by seven correct clients: %+v", a)
	}
	if a, ok := points[1].Metrics[stats.PerCorrectClientThroughput]; ok {
		t.Errorf("where the number of correct clients is not known: %+v", a)
	}
}
