package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/combin"
)

// Fisher is the P of Fisher's exact test, two-sided, of whether two shares are the same. They are a
// of n and b of m (Fisher, Statistical Methods for Research Workers, 1934, section 21.02). It adds
// up the probabilities of all tables with the same sums that are at most as probable as the
// observed one. The counts must be from 0 to n, and to m.
func Fisher(a, n, b, m int) float64 {
	with := a + b
	log := func(k int) float64 { // of the probability of k among the n
		return combin.LogGeneralizedBinomial(float64(n), float64(k)) + combin.LogGeneralizedBinomial(float64(m), float64(with-k)) -
			combin.LogGeneralizedBinomial(float64(n+m), float64(with))
	}
	seen, p := log(a), 0.0
	for k := max(0, with-m); k <= min(n, with); k++ {
		if l := log(k); l <= seen+1e-9 {
			p += math.Exp(l)
		}
	}
	return math.Min(1, p)
}
