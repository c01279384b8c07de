package claims_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// The repetitions for 80% power agree with tables of an independent simulation of two points: an
// order whose true difference is 5%, and a ratio that is reported right and claimed within 10%. The
// last column is its share with three repetitions.
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
		if share := orderHolds(1000, 950, 3, deviation); math.Abs(got[0].Share-share) > 0.03 {
			t.Errorf("deviation %.0f%%: the order's power is %.3f; a simulation with Welch's interval has %.3f, and 3 points are allowed", deviation*100, got[0].Share, share)
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

// orderHolds simulates, with nothing of package stats, how often Welch's interval of the difference
// of two means, of n trials each, lies above 0.
func orderHolds(a, b float64, n int, deviation float64) float64 {
	const experiments = 20000
	rng := rand.New(rand.NewPCG(5, 6))
	draw := func(mean float64) (float64, float64) {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = mean * (1 + deviation*rng.NormFloat64())
		}
		m, v := stat.MeanVariance(xs, nil)
		return m, v / float64(n)
	}
	holds := 0
	for range experiments {
		ma, va := draw(a)
		mb, vb := draw(b)
		freedom := (va + vb) * (va + vb) / ((va*va + vb*vb) / float64(n-1))
		if ma-mb > (distuv.StudentsT{Nu: freedom, Sigma: 1}).Quantile(0.975)*math.Sqrt(va+vb) {
			holds++
		}
	}
	return float64(holds) / experiments
}
