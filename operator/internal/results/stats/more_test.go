package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// The number that More says is enough must decide in about 80% of simulated experiments whose truth
// is the estimate, and two thirds of it must decide less often.
func TestMoreDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b, deviation float64
		n               int
		low, high       float64
	}{
		"a difference above 0":              {a: 1000, b: 970, deviation: 30, n: 3, low: 0, high: math.Inf(1)},
		"a difference that is not above 0":  {a: 970, b: 1000, deviation: 30, n: 5, low: 0, high: math.Inf(1)},
		"within a bound, in its middle":     {a: 1000, b: 900, deviation: 50, n: 3, low: 60, high: 140},
		"within a bound, near its end":      {a: 1000, b: 900, deviation: 20, n: 3, low: 85, high: 400},
		"beyond a bound":                    {a: 1000, b: 900, deviation: 50, n: 4, low: 140, high: 180},
		"a wide one with 25 trials already": {a: 1000, b: 990, deviation: 40, n: 25, low: -40, high: 40},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.deviation / math.Sqrt(float64(tc.n))
			now := stats.Difference(exactly(tc.n, tc.a, tc.deviation), exactly(tc.n, tc.b, tc.deviation))
			if math.Abs(now.High-now.Low) < s {
				t.Fatalf("%+v is no interval", now)
			}
			n, ok := stats.More(now, tc.n, tc.low, tc.high)
			if !ok || n <= tc.n {
				t.Fatalf("More = %d, %t with %d trials", n, ok, tc.n)
			}
			rng := rand.New(rand.NewPCG(14, uint64(n)))
			share := func(n int) float64 {
				decided := 0
				const experiments = 4000
				for range experiments {
					xs, ys := make([]float64, n), make([]float64, n)
					for i := range xs {
						xs[i], ys[i] = tc.a+tc.deviation*rng.NormFloat64(), tc.b+tc.deviation*rng.NormFloat64()
					}
					e := stats.Difference(stats.Aggregate(xs), stats.Aggregate(ys))
					if e.Low > tc.low && e.High < tc.high || e.High < tc.low || e.Low > tc.high {
						decided++
					}
				}
				return float64(decided) / experiments
			}
			enough, fewer := share(n), share(max(2, 2*n/3))
			t.Logf("%d trials decide in %.1f%%, %d in %.1f%%", n, 100*enough, max(2, 2*n/3), 100*fewer)
			if enough < 0.77 || fewer > 0.8 {
				t.Errorf("%d trials decide in %.1f%%, and two thirds of them in %.1f%%; want 80%% of the first", n, 100*enough, 100*fewer)
			}
		})
	}
}

// exactly is a sample of n trials with this mean and deviation.
func exactly(n int, mean, deviation float64) results.Aggregate {
	xs := make([]float64, n)
	half := deviation * math.Sqrt(float64(n-1)/float64(n-n%2))
	for i := range n - n%2 {
		xs[i] = mean + half*float64(1-2*(i%2))
	}
	if n%2 == 1 {
		xs[n-1] = mean
	}
	return stats.Aggregate(xs)
}

// Nothing is said where there is no interval, where one has no end, or where the truth lies on the
// bound.
func TestMoreSaysNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		e    stats.Estimate
		n    int
		says bool
	}{
		"no interval":  {e: stats.Estimate{Value: 3, Low: 3, High: 3}, n: 5},
		"no width":     {e: stats.Estimate{Value: 3, Low: 3, High: 3, Known: true}, n: 5},
		"no upper end": {e: stats.Estimate{Value: 3, Low: 1, High: math.Inf(1), Known: true, Freedom: 4}, n: 5},
		"one trial":    {e: stats.Estimate{Value: 3, Low: 1, High: 5, Known: true, Freedom: 4}, n: 1},
		"on the bound": {e: stats.Estimate{Value: 2, Low: 1, High: 3, Known: true, Freedom: 4}, n: 5, says: true},
	} {
		if n, ok := stats.More(tc.e, tc.n, 2, math.Inf(1)); n != 0 || ok != tc.says {
			t.Errorf("%s: More = %d, %t", name, n, ok)
		}
	}
	clear := stats.Estimate{Value: 10, Low: 9, High: 11, Known: true, Freedom: 4}
	if n, ok := stats.More(clear, 5, 2, math.Inf(1)); n != 6 || !ok {
		t.Errorf("5 trials have decided already, and More = %d, %t; want 6", n, ok)
	}
}
