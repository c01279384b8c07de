package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/results"
)

// Welch tests whether two independent means differ, without assuming equal deviations (Welch,
// Biometrika 34, 1947), with Satterthwaite's degrees of freedom:
//
//	t = (a - b) / sqrt(U_a + U_b),   U = s²/n,   v = (U_a + U_b)² / (U_a²/(n_a-1) + U_b²/(n_b-1))
//
// P is below 5% exactly when the interval of Difference does not hold 0. It is false when a sample
// has fewer than two values: nothing is known then. Where no value varies, P is 1 for equal means
// and 0 for others.
func Welch(a, b results.Aggregate) (Test, bool) {
	if a.N < 2 || b.N < 2 {
		return Test{}, false
	}
	sa, sb := a.StdDev/math.Sqrt(float64(a.N)), b.StdDev/math.Sqrt(float64(b.N))
	whole := math.Hypot(sa, sb)
	switch {
	case whole == 0 && a.Mean == b.Mean:
		return Test{P: 1}, true
	case whole == 0:
		return Test{Statistic: math.Copysign(math.MaxFloat64, a.Mean-b.Mean)}, true
	}
	freedom := 1 / (square(square(sa/whole))/float64(a.N-1) + square(square(sb/whole))/float64(b.N-1))
	t := (a.Mean - b.Mean) / whole
	return Test{Statistic: t, P: 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(math.Abs(t))}, true
}

// Holm adjusts the p-values of several tests. If each is then compared with 5%, at most 5% of all
// sets of tests have a false alarm. That holds for any number of tests, and however they depend on
// each other (Holm, Scand. J. Stat. 6, 1979). With the values in rising order, the i-th of k is
// multiplied by k+1-i. No result is below the one before it, or above 1. The order of the answer is
// that of ps.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ps[i], ps[j]) })
	adjusted := make([]float64, len(ps))
	least := 0.0
	for rank, i := range order {
		least = math.Max(least, math.Min(1, ps[i]*float64(len(ps)-rank)))
		adjusted[i] = least
	}
	return adjusted
}
