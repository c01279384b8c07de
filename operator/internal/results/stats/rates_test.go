package stats_test

import (
	"math"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// The intervals are those of testdata/shares.py, by SciPy's beta-binomial distribution on the same
// grid.
func TestBurstyShareAgreesWithSciPy(t *testing.T) {
	for name, tc := range map[string]struct {
		some, all []int64
		low, high float64
	}{
		"alike":          {[]int64{20, 22, 18}, []int64{2000, 2000, 2000}, 0.00627844950511, 0.0172504862548},
		"one burst":      {[]int64{1, 2, 90, 0, 3}, []int64{2000, 2000, 2000, 2100, 1900}, 0.00242775722517, 0.148303288298},
		"few cases":      {[]int64{0, 1, 0}, []int64{5000, 5000, 5000}, 2.55559948193e-06, 0.0161767785872},
		"no case":        {[]int64{0, 0, 0}, []int64{2000, 2000, 2000}, 0, 0.00836576464905},
		"one trial":      {[]int64{3}, []int64{1000}, 0.000376459338082, 0.294102209729},
		"most are cases": {[]int64{1500, 1400, 1700}, []int64{2000, 2000, 2000}, 0.596652722532, 0.886730024377},
	} {
		low, high, ok := stats.BurstyShare(tc.some, tc.all)
		if !ok || math.Abs(low-tc.low) > 1e-6*tc.low || math.Abs(high/tc.high-1) > 1e-6 {
			t.Errorf("%s: [%.9g, %.9g] %t, want [%.9g, %.9g]", name, low, high, ok, tc.low, tc.high)
		}
	}
	if low, high, ok := stats.BurstyShare([]int64{0}, []int64{1}); !ok || low != 0 {
		t.Errorf("one attempt, no case: [%g, %g] %t, want an interval from 0", low, high, ok)
	}
	for name, tc := range map[string][2][]int64{"all cases": {{10, 10}, {10, 10}}, "no trial": {nil, nil}, "more than all": {{11}, {10}}} {
		if low, high, ok := stats.BurstyShare(tc[0], tc[1]); ok {
			t.Errorf("%s: [%g, %g]", name, low, high)
		}
	}
}
