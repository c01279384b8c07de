package claims_test

import (
	"fmt"
	"math"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// The repetitions for 80% power agree with tables of an independent simulation of two points: an order
// whose true difference is 5%, and a ratio that is reported right and claimed within 10%. The last
// column is its share with three repetitions.
func TestPowerAgreesWithTables(t *testing.T) {
	points := []results.PointResult{{Index: 0, Coordinates: map[string]string{"v": "a"}}, {Index: 1, Coordinates: map[string]string{"v": "b"}}, {Index: 2, Coordinates: map[string]string{"v": "c"}}}
	paper := func(metric string, at map[string]string) (float64, bool) {
		x, ok := map[string]float64{"a": 1000, "b": 950}[at["v"]]
		return x, ok && metric == stats.Throughput
	}
	order := claim("throughput(v='a') > throughput(v='b')", "", "")
	ratio := claim("throughput(v='b') / throughput(v='a')", "0.95", "10%")
	unknown := claim("mean_latency(v='a') < 5ms", "", "")
	uncovered := claim("throughput(v='c') > 5", "", "")
	for deviation, want := range map[float64]struct{ order, ratio int }{0.02: {5, 3}, 0.03: {8, 4}, 0.05: {18, 7}} {
		got := claims.PowerOf([]v1alpha1.Claim{order, ratio, unknown, uncovered}, points, paper, 3, deviation)
		if got[2].Known || got[3].Known {
			t.Errorf("the paper says nothing of a latency and of a point, and the power is %+v", got[2:])
		}
		for i, n := range []int{want.order, want.ratio} {
			t.Logf("deviation %.0f%%: %+v, the table has %d", 100*deviation, got[i], n)
			if math.Abs(float64(got[i].Enough-n)) > math.Max(1, 0.2*float64(n)) {
				t.Errorf("deviation %.0f%%, claim %d: %d repetitions for 80%%, the table has %d", 100*deviation, i, got[i].Enough, n)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(claims.PowerOf([]v1alpha1.Claim{order, ratio, unknown, uncovered}, points, paper, 3, deviation)) {
			t.Error("the same question has two answers")
		}
	}
}
