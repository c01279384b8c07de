package claims_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// The repetitions for 80% power agree with tables of an independent simulation of two points. One
// is an order whose true difference is 5%, and one a ratio that is reported right and claimed
// within 10%. The last column is its share with three repetitions.
func TestPowerAgreesWithTables(t *testing.T) {
	points := []results.PointResult{{Index: 0, Coordinates: map[string]string{"v": "a"}}, {Index: 1, Coordinates: map[string]string{"v": "b"}}, {Index: 2, Coordinates: map[string]string{"v": "c"}}}
	paper := func(metric string, at map[string]string) (float64, bool) {
		x, ok := map[string]float64{"a": 1000, "b": 950}[at["v"]]
		return x, ok && metric == stats.Throughput
	}
	order := claim("throughput(v='a') > throughput(v='b')", "", "")
	ratio := claim("throughput(v='b') / throughput(v='a')", "0.95", "10%")
	unknown := claim("error_rate(v='a') < 0.1", "", "")
	uncovered := claim("max_throughput(v='c') > 5", "", "")
	for deviation, want := range map[float64]struct{ order, ratio int }{0.02: {5, 3}, 0.03: {8, 4}, 0.05: {18, 7}} {
		got := claims.PowerOf([]v1alpha1.Claim{order, ratio, unknown, uncovered}, points, paper, 3, deviation, 0.1)
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
		if fmt.Sprint(got) != fmt.Sprint(claims.PowerOf([]v1alpha1.Claim{order, ratio, unknown, uncovered}, points, paper, 3, deviation, 0.1)) {
			t.Error("the same question has two answers")
		}
	}
}

// Values that the paper does not give are assumed: in a comparison the greater side is greater by
// 10% of itself, and a quantity has its reported value. The power is the power of a paper with just
// these values.
func TestPowerOfWhatThePaperDoesNotSay(t *testing.T) {
	points := []results.PointResult{{Index: 0, Coordinates: map[string]string{"v": "a"}}, {Index: 1, Coordinates: map[string]string{"v": "b"}}, {Index: 2, Coordinates: map[string]string{"v": "c"}}}
	paper := func(metric string, at map[string]string) (float64, bool) {
		return 1000, at["v"] == "a" && metric == stats.Throughput
	}
	type says map[string]float64
	for _, tc := range []struct {
		expr, reported, within string
		metric                 string
		same                   says // a paper that gives the same power
	}{
		{expr: "throughput(v='b') < throughput(v='c')", metric: stats.Throughput, same: says{"b": 900, "c": 1000}},
		{expr: "throughput(v='a') > throughput(v='c')", metric: stats.Throughput, same: says{"a": 1000, "c": 900}},
		{expr: "mean_latency(v='a') < mean_latency(v='b') && mean_latency(v='b') < mean_latency(v='c')", metric: stats.MeanLatency, same: says{"a": 8.1, "b": 9, "c": 10}},
		{expr: "significantly_different(of='throughput', v=['b', 'c'])", metric: stats.Throughput, same: says{"b": 900, "c": 1000}},
		{expr: "throughput(v='b') > 5", metric: stats.Throughput, same: says{"b": 5 / 0.9}},
		{expr: "mean_latency(v='b') - mean_latency(v='c') > 3ms && mean_latency(v='b') - mean_latency(v='c') < 6ms", metric: stats.MeanLatency, same: says{"b": 10 + 10.0/3, "c": 10 + 10.0/3 - 5.4}},
		{expr: "throughput(v='b') / throughput(v='a')", reported: "0.5", within: "20%", metric: stats.Throughput, same: says{"a": 1000, "b": 500}},
	} {
		judged := []v1alpha1.Claim{claim(tc.expr, tc.reported, tc.within)}
		got := claims.PowerOf(judged, points, paper, 3, 0.03, 0.1)[0]
		if !got.Assumed || !got.Known {
			t.Errorf("%s: %+v", tc.expr, got)
			continue
		}
		said := claims.PowerOf(judged, points, func(metric string, at map[string]string) (float64, bool) {
			x, ok := tc.same[at["v"]]
			return x, ok && metric == tc.metric
		}, 3, 0.03, 0.1)[0]
		t.Logf("%s: %+v; said by a paper: %+v", tc.expr, got, said)
		if math.Abs(got.Share-said.Share) > 0.04 || said.Assumed || !said.Known { // each is right to within 3 points, with three standard errors
			t.Errorf("%s: %+v; of a paper that says so it is %+v", tc.expr, got, said)
		}
	}
	if got := claims.PowerOf([]v1alpha1.Claim{claim("throughput(v='a') > 2000", "", "")}, points, paper, 3, 0.05, 0.1)[0]; !got.Known || got.Assumed || got.Share > 0 {
		t.Errorf("the paper says that it is not so: %+v", got)
	}
}

// Nothing is assumed of what no value of the points decides: the power is unknown.
func TestPowerThatIsUnknown(t *testing.T) {
	points := []results.PointResult{{Index: 0, Coordinates: map[string]string{"v": "b"}}, {Index: 1, Coordinates: map[string]string{"v": "c"}}}
	silent := func(string, map[string]string) (float64, bool) { return 0, false }
	for _, expr := range []string{
		"throughput(v='z')", // there is no such point
		"throughput(v='b') < throughput(v='c') && throughput(v='c') < throughput(v='b')", // cannot hold
		"throughput(v='b') > 5 || throughput(v='c') > 5", "throughput(v='b') > 5 && (throughput(v='b') > 5 || throughput(v='c') > 5)", "!(throughput(v='b') < 5)",
		"error_rate(v='b') < 0.1", "max_throughput(v='b') > 5",
	} {
		if got := claims.PowerOf([]v1alpha1.Claim{claim(expr, "5", "10%")}, points, silent, 3, 0.03, 0.1)[0]; got.Known || got.Assumed || got.Share != 0 || got.Enough != 0 {
			t.Errorf("%s: %+v", expr, got)
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
