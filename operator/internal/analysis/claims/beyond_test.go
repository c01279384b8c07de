package claims

import (
	"math"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// The P is 5% where the end of a 95% interval is the bound, from above and from below. Twice as far
// away it is that of twice as many standard errors.
func TestBeyondIsTheLevelOfTheInterval(t *testing.T) {
	for _, tc := range []struct {
		freedom, bound, want float64
	}{
		{0, 9, 0.05},
		{0, 12, 0.05},
		{0, 8, math.Erfc(2 * 1.959963985 / math.Sqrt2)},
		{4, 9, 0.05},
		{4, 12, 0.05},
		{4, 8, 0.005147}, // R: 2*pt(-2*qt(0.975, 4), 4)
		{4, 10, 1},
	} {
		got := beyond(stats.Estimate{Value: 10, Low: 9, High: 12, Known: true, Freedom: tc.freedom}, tc.bound)
		if math.Abs(got.p-tc.want) > 1e-5 {
			t.Errorf("%+v: P is %.6f", tc, got.p)
		}
	}
}
