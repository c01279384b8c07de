package stats

import (
	"math"
	"testing"
)

// If all deviations are equal, the variance of concordant less discordant pairs is Kendall's:
// n(n-1)(2n+5)/18 (Biometrika 30, 1938). A round of one point has none.
func TestVarianceOfSignsIsKendalls(t *testing.T) {
	for n := 1; n <= 9; n++ {
		var round TrendRound
		for i := range n {
			round.X, round.Deviations = append(round.X, float64(i)), append(round.Deviations, 0.3)
		}
		want := float64(n) * float64(n-1) * float64(2*n+5) / 18
		if got := varianceOfSigns(round); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d points: %g, want %g", n, got, want)
		}
	}
}
