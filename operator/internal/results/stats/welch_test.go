package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Student's sleep data, as R prints it: t.test(extra ~ group, data = sleep) gives t = -1.8608,
// p-value = 0.07939.
func TestWelchOnStudentsSleepData(t *testing.T) {
	a := stats.Aggregate([]float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0})
	b := stats.Aggregate([]float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4})
	got, ok := stats.Welch(a, b)
	if !ok || math.Abs(got.Statistic+1.8608) > 5e-5 || math.Abs(got.P-0.07939) > 5e-6 {
		t.Errorf("got %+v (%v)", got, ok)
	}
}

func TestWelchAgreesWithTheIntervalOfTheDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	significant := 0
	for range 2000 {
		draw := func(n int, mean, deviation float64) results.Aggregate {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = mean + deviation*rng.NormFloat64()
			}
			return stats.Aggregate(xs)
		}
		a, b := draw(2+rng.IntN(6), 10, 1), draw(2+rng.IntN(6), 10+3*rng.Float64(), 0.5+rng.Float64())
		d := stats.Difference(a, b)
		test, ok := stats.Welch(a, b)
		if outside := d.Low > 0 || d.High < 0; !ok || outside != (test.P < 0.05) {
			t.Fatalf("the interval is [%g, %g] and p is %g", d.Low, d.High, test.P)
		}
		if test.P < 0.05 {
			significant++
		}
	}
	if significant < 200 || significant > 1800 {
		t.Errorf("%d of 2000 are significant: the cases do not try both outcomes", significant)
	}
}

func TestWelchWithoutVariation(t *testing.T) {
	one, same, other := stats.Aggregate([]float64{1}), stats.Aggregate([]float64{1, 1}), stats.Aggregate([]float64{2, 2})
	if _, ok := stats.Welch(one, same); ok {
		t.Error("one trial has no deviation, and is tested")
	}
	if got, ok := stats.Welch(same, same); !ok || got.P != 1 {
		t.Errorf("equal: %+v", got)
	}
	if got, ok := stats.Welch(same, other); !ok || got.P != 0 {
		t.Errorf("different: %+v", got)
	}
}

// As R's p.adjust(ps, "holm").
func TestHolm(t *testing.T) {
	for name, tc := range map[string]struct{ ps, want []float64 }{
		"none":      {nil, []float64{}},
		"one":       {[]float64{0.04}, []float64{0.04}},
		"rising":    {[]float64{0.01, 0.02, 0.03, 0.04}, []float64{0.04, 0.06, 0.06, 0.06}},
		"any order": {[]float64{0.5, 0.001, 0.3}, []float64{0.6, 0.003, 0.6}},
		"at most 1": {[]float64{0.9, 0.8}, []float64{1, 1}},
	} {
		if diff := cmp.Diff(tc.want, stats.Holm(tc.ps), near(1e-12)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
