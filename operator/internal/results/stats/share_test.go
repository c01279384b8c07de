package stats_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/results/stats"
)

// At each end of the interval, the observed count, or a more extreme one, has a probability of
// 2.5%: here by the sum of the binomial distribution.
func TestExactShare(t *testing.T) {
	for _, tc := range []struct{ some, all int64 }{{0, 1}, {0, 10}, {10, 10}, {1, 10}, {5, 10}, {3, 1000}, {999, 1000}, {0, 6000}} {
		low, high := stats.ExactShare(tc.some, tc.all, 0.05)
		share := float64(tc.some) / float64(tc.all)
		if !(low <= share && share <= high) {
			t.Errorf("%d of %d: [%g, %g]", tc.some, tc.all, low, high)
		}
		if atMost := (distuv.Binomial{N: float64(tc.all), P: high}).CDF(float64(tc.some)); tc.some < tc.all && math.Abs(atMost-0.025) > 1e-9 || tc.some == tc.all && high != 1 {
			t.Errorf("%d of %d: the upper end is %g, at which so many or fewer have %g", tc.some, tc.all, high, atMost)
		}
		if tc.some == 0 {
			if low != 0 {
				t.Errorf("none of %d: from %g", tc.all, low)
			}
			continue
		}
		if atLeast := 1 - (distuv.Binomial{N: float64(tc.all), P: low}).CDF(float64(tc.some-1)); math.Abs(atLeast-0.025) > 1e-9 {
			t.Errorf("%d of %d: the lower end is %g, at which so many or more have %g", tc.some, tc.all, low, atLeast)
		}
	}
	if _, high := stats.ExactShare(0, 6000, 0.05); math.Abs(high*6000-3.69) > 0.01 {
		t.Errorf("none of 6000: up to %g", high)
	}
}
