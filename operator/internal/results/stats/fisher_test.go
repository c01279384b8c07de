package stats_test

import (
	"math"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// The values are those of SciPy's fisher_exact, to the digits that are given.
func TestFisher(t *testing.T) {
	for _, tc := range []struct {
		a, n, b, m int
		want       float64
	}{
		{3, 4, 1, 4, 0.485714}, // the lady who tastes tea
		{8, 10, 1, 6, 0.034965},
		{1, 10, 8, 10, 0.005477},
		{0, 5, 0, 5, 1},
		{5, 5, 5, 5, 1},
		{5, 5, 0, 5, 0.007937},
		{2, 3, 1, 6, 0.226190},
	} {
		if got := stats.Fisher(tc.a, tc.n, tc.b, tc.m); math.Abs(got-tc.want) > 5e-6 {
			t.Errorf("%d of %d and %d of %d: P %g, want %g", tc.a, tc.n, tc.b, tc.m, got, tc.want)
		}
		if got, back := stats.Fisher(tc.a, tc.n, tc.b, tc.m), stats.Fisher(tc.b, tc.m, tc.a, tc.n); math.Abs(got-back) > 1e-9 {
			t.Errorf("%+v: P %g, and %g the other way round", tc, got, back)
		}
	}
}
