package claims

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/results"
)

// In a drawn trial every latency falls by the share by which throughput rises, and each round has a
// trial of each point.
func TestDrawnTrials(t *testing.T) {
	mean := results.TrialLine{Throughput: 200, MeanMillis: 1, P10Millis: 2, P50Millis: 3, P90Millis: 4, P95Millis: 5, P99Millis: 6, P999Millis: 7}
	s := simulation{means: []results.TrialLine{mean, mean}, deviation: 0.1}
	lines := s.experiment(rand.New(rand.NewPCG(1, 2)), 500)
	sum, squares := 0.0, 0.0
	for i, l := range lines {
		if int(l.Number) != i || int(l.Repetition) != i/2 {
			t.Fatalf("trial %d has number %d and repetition %d", i, l.Number, l.Repetition)
		}
		by := l.Throughput/200 - 1
		sum, squares = sum+by, squares+by*by
		for millis, got := range map[float64]float64{1: l.MeanMillis, 2: l.P10Millis, 3: l.P50Millis, 4: l.P90Millis, 5: l.P95Millis, 6: l.P99Millis, 7: l.P999Millis} {
			if math.Abs(got-millis*(1-by)) > 1e-9 {
				t.Errorf("throughput is off by %g, and the latency of %g ms is %g", by, millis, got)
			}
		}
	}
	n := float64(len(lines))
	if deviation := math.Sqrt(squares / n); n != 1000 || math.Abs(sum/n) > 0.01 || math.Abs(deviation-0.1) > 0.01 {
		t.Errorf("%g trials are off by %.3f in the mean, and by %.3f in their deviation; want 1000, 0 and 0.1", n, sum/n, deviation)
	}
}
