package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// The numbers are those of statsmodels and SciPy: testdata/pool.py.
func TestPool(t *testing.T) {
	sites := func(ys, ses []float64) (all []stats.Measured) {
		for i := range ys {
			all = append(all, stats.Measured{Value: ys[i], SE: ses[i]})
		}
		return all
	}
	for name, tc := range map[string]struct {
		sites []stats.Measured
		want  []float64 // mean, low, high, tau², Q, its P, I², the prediction's ends
	}{
		"sites that differ": {sites([]float64{0.10, 0.42, 0.25, 0.61, 0.08}, []float64{0.05, 0.08, 0.04, 0.11, 0.06}),
			[]float64{0.278950014, 0.008335339, 0.549564690, 0.042541211, 30.573121843, 0.000003741, 0.869166125, -0.447047048, 1.004947077}},
		"sites that agree": {sites([]float64{1.02, 0.99, 1.00, 1.01}, []float64{0.03, 0.02, 0.04, 0.05}),
			[]float64{1.000263631, 0.953524120, 1.047003142, 0, 0.734122229, 0.865150201, 0, 0.937072027, 1.063455235}},
		"two sites": {sites([]float64{0.5, 0.9}, []float64{0.1, 0.1}), []float64{0.7, -1.841240947, 3.241240947, 0.07, 8, 0.004677735, 0.875, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := stats.Pool(tc.sites)
			if err != nil {
				t.Fatal(err)
			}
			got := []float64{p.Value, p.Low, p.High, p.Tau2, p.Q, p.QP, p.I2, p.PredictionLow, p.PredictionHigh}
			for i, want := range tc.want {
				if math.Abs(got[i]-want) > 1e-6 {
					t.Errorf("number %d is %.9f, want %.9f", i, got[i], want)
				}
			}
			if p.Predicted != (len(tc.sites) > 2) {
				t.Errorf("predicted is %v", p.Predicted)
			}
		})
	}
	for name, bad := range map[string][]stats.Measured{
		"one site": sites([]float64{1}, []float64{1}), "no error": sites([]float64{1, 2}, []float64{1, 0}), "no number": sites([]float64{1, math.NaN()}, []float64{1, 1}),
	} {
		if _, err := stats.Pool(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A ratio that depends on the machines by 3%: the interval of one allocation misses the ratio over
// allocations, that of several holds it.
func TestPoolHoldsTheMeanOverAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const experiments = 4000
	for _, k := range []int{3, 5, 10} {
		held, next := 0, 0
		for range experiments {
			var sites []stats.Measured
			for range k {
				sites = append(sites, stats.Measured{Value: 0.03*rng.NormFloat64() + 0.01*rng.NormFloat64(), SE: 0.01})
			}
			p, err := stats.Pool(sites)
			if err != nil {
				t.Fatal(err)
			}
			if p.Low <= 0 && 0 <= p.High {
				held++
			}
			if another := 0.03 * rng.NormFloat64(); p.PredictionLow <= another && another <= p.PredictionHigh {
				next++
			}
		}
		t.Logf("%d sites: the interval holds the mean in %.1f%%, that of the prediction another site in %.1f%%", k, 100*float64(held)/experiments, 100*float64(next)/experiments)
		if held < experiments*94/100 || next < experiments*93/100 {
			t.Errorf("%d sites: %d and %d of %d", k, held, next, experiments)
		}
	}
}
