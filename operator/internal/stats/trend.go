package stats

import (
	"fmt"
	"math"
	"slices"
)

// maxTrend bounds the work of FindTrend, which looks at every pair of points.
const maxTrend = 5000

// exactTrend is the n up to which the exact distribution of Kendall's tau is used, as SciPy does
// (method "auto").
const exactTrend = 33

// Trend is how a metric goes along an axis.
type Trend struct {
	// Test: Statistic is Kendall's tau-b, from -1 (every step falls) to 1 (every step rises). 0
	// when the axis or the metric does not vary.
	Test
	// Slope is the median of the slopes of all pairs of points that differ on the axis, in units of
	// the metric for one unit of the axis.
	Slope float64
}

// FindTrend tests whether y rises or falls with x, in whatever shape: x[i] is the value of the axis
// and y[i] that of the metric of one trial, and repetitions share their x. It is the test of Mann
// (Econometrica 13, 1945) and Kendall (Rank Correlation Methods, 1975): with C pairs in the same
// order, D in the opposite one, and T_x, T_y pairs tied on one side,
//
//	tau = (C - D) / sqrt((n(n-1)/2 - T_x) (n(n-1)/2 - T_y))
//
// P is exact without ties for n up to 33, else from the normal distribution with Kendall's variance
// for ties and no continuity correction, as SciPy's kendalltau does. The slope is Theil's and Sen's
// (Sen, J. Am. Stat. Assoc. 63, 1968).
//
// Four points in perfect order have P = 0.083: a trend needs five. The work grows with the square
// of n. It fails for fewer than two points, lists of different length, and values that are not
// finite.
func FindTrend(x, y []float64) (Trend, error) {
	if err := checkPairs("the axis", x, "the metric", y); err != nil {
		return Trend{}, err
	}
	n := len(x)
	if n < 2 || n > maxTrend {
		return Trend{}, fmt.Errorf("trend: there are %d points; it needs 2 to %d", n, maxTrend)
	}
	var net float64 // C - D
	var slopes []float64
	for i := range n {
		for j := range i {
			net += sign(x[i]-x[j]) * sign(y[i]-y[j])
			if slope := (y[i] - y[j]) / (x[i] - x[j]); x[i] != x[j] && !math.IsInf(slope, 0) {
				slopes = append(slopes, slope)
			}
		}
	}
	xs, ys := tiesOf(x), tiesOf(y)
	pairs := float64(n) * float64(n-1) / 2
	if xs.pairs == pairs || ys.pairs == pairs {
		return Trend{Test: Test{P: 1}}, nil
	}
	t := Trend{}
	if len(slopes) > 0 {
		t.Slope = medianOf(slopes).Value
	}
	t.Statistic = math.Max(-1, math.Min(1, net/math.Sqrt(pairs-xs.pairs)/math.Sqrt(pairs-ys.pairs)))
	if xs.pairs == 0 && ys.pairs == 0 && n <= exactTrend {
		t.P, t.Exact = kendallTail(n, int((pairs-math.Abs(net))/2)), true
		return t, nil
	}
	m := float64(n) * float64(n-1)
	variance := (m*(2*float64(n)+5)-xs.cubic-ys.cubic)/18 + 2*xs.pairs*ys.pairs/m
	if n > 2 {
		variance += xs.triples * ys.triples / (9 * m * float64(n-2))
	}
	t.P = math.Min(1, 2*normalTail(math.Abs(net)/math.Sqrt(variance)))
	return t, nil
}

// tieSums are sums over groups of t equal values.
type tieSums struct {
	pairs   float64 // t(t-1)/2
	triples float64 // t(t-1)(t-2)
	cubic   float64 // t(t-1)(2t+5)
}

func tiesOf(values []float64) tieSums {
	var s tieSums
	sorted := slices.Sorted(slices.Values(values))
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		s.pairs += t * (t - 1) / 2
		s.triples += t * (t - 1) * (t - 2)
		s.cubic += t * (t - 1) * (2*t + 5)
		i = j
	}
	return s
}

// kendallTail is the two-sided p-value of d pairs in the rarer order, of all orders of n different
// values: twice the share of permutations with d inversions or fewer.
func kendallTail(n, d int) float64 {
	// share[k]: of the permutations of i values, the share with k inversions.
	share := make([]float64, d+1)
	share[0] = 1
	for i := 2; i <= n; i++ {
		next := make([]float64, d+1)
		for k := range next {
			for j := max(0, k-i+1); j <= k; j++ {
				next[k] += share[j] / float64(i)
			}
		}
		share = next
	}
	var sum float64
	for _, p := range share {
		sum += p
	}
	return math.Min(1, 2*sum)
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
