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

// Trend says how a metric rises or falls along an axis.
type Trend struct {
	// Test: Statistic is Kendall's tau-b, from -1 (every step falls) to 1 (every step rises). 0
	// when the axis or the metric does not vary.
	Test
	// Slope is the median of the slopes of all pairs of points that differ on the axis, in units of
	// the metric for one unit of the axis.
	Slope float64
}

// FindTrend tests whether y rises or falls with x, in whatever shape. Here x[i] is the value of the
// axis and y[i] that of the metric of one trial, and repetitions share their x. It is the test of
// Mann (Econometrica 13, 1945) and Kendall (Rank Correlation Methods, 1975). With C pairs in the
// same order, D in the opposite one, and T_x, T_y pairs tied on one side,
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

// TrendRound is one round of trials: at most one of each point.
type TrendRound struct {
	// X are the values of the axis, each different, and Y those of the metric.
	X, Y []float64
	// Deviations of the trials of each point, in any unit that all have; nil: they deviate alike.
	Deviations []float64
}

// FindTrendWithin is FindTrend with rounds as blocks: only trials of one round are compared, so
// that a drift from round to round is in no comparison. S adds up C - D over the rounds (the
// seasonal test of Hirsch, Slack and Smith, Water Resour. Res. 18, 1982, with rounds as seasons),
// and tau is S by the greatest S there can be. Without ties P is exact, if all orders of each round
// are equally likely.
//
// Orders are not equally likely if points deviate by different amounts: a first point that deviates
// more makes the pairs with it agree. With normal deviations s_i the signs of x_i - x_j and x_i -
// x_k have the covariance (Sheppard, Phil. Trans. R. Soc. A 192, 1899)
//
//	2/pi asin(s_i^2 / sqrt((s_i^2 + s_j^2) (s_i^2 + s_k^2)))
//
// which is 1/3 if all deviate alike. If this makes the variance of S greater, S is divided by the
// square root of the increase.
//
// It fails for no round with two trials, values that are not finite, and a value of the axis that a
// round has twice.
func FindTrendWithin(rounds []TrendRound) (Trend, error) {
	var net, pairs, tied, alike, unlike float64
	var slopes []float64
	sizes, exact := []int{}, true
	for _, round := range rounds {
		if err := checkPairs("the axis", round.X, "the metric", round.Y); err != nil {
			return Trend{}, err
		}
		n := len(round.X)
		if tiesOf(round.X).pairs > 0 || round.Deviations != nil && len(round.Deviations) != n {
			return Trend{}, fmt.Errorf("trend: a round of %d trials has a value of the axis twice, or %d deviations", n, len(round.Deviations))
		}
		for i := range n {
			for j := range i {
				net += sign(round.X[i]-round.X[j]) * sign(round.Y[i]-round.Y[j])
				if slope := (round.Y[i] - round.Y[j]) / (round.X[i] - round.X[j]); !math.IsInf(slope, 0) {
					slopes = append(slopes, slope)
				}
			}
		}
		ys := tiesOf(round.Y)
		m := float64(n) * float64(n-1)
		pairs, tied, exact = pairs+m/2, tied+ys.pairs, exact && ys.pairs == 0
		null := (m*(2*float64(n)+5) - ys.cubic) / 18
		alike, unlike = alike+null, unlike+math.Max(null, varianceOfSigns(round))
		sizes = append(sizes, n)
	}
	switch {
	case pairs == 0:
		return Trend{}, fmt.Errorf("trend: no round has two trials")
	case tied == pairs:
		return Trend{Test: Test{P: 1}}, nil
	}
	t := Trend{Test: Test{Statistic: net / math.Sqrt(pairs*(pairs-tied)), Exact: exact}}
	if len(slopes) > 0 {
		t.Slope = medianOf(slopes).Value
	}
	net = math.Abs(net) * math.Sqrt(alike/unlike)
	if exact {
		t.P = inversionsTail(sizes, int(math.Floor((pairs-net)/2+1e-9)))
		return t, nil
	}
	t.P = math.Min(1, 2*normalTail(net/math.Sqrt(alike)))
	return t, nil
}

// varianceOfSigns is the variance of C - D in a round whose points have these deviations.
func varianceOfSigns(round TrendRound) float64 {
	n := len(round.Deviations)
	if n < 2 {
		return 0
	}
	variance := float64(n) * float64(n-1) / 2
	for i := range n {
		for j := range n {
			for k := range j {
				if j == i || k == i {
					continue
				}
				si, sj, sk := square(round.Deviations[i]), square(round.Deviations[j]), square(round.Deviations[k])
				if si == 0 {
					continue
				}
				side := sign(round.X[i]-round.X[j]) * sign(round.X[i]-round.X[k])
				variance += 2 * side * 2 / math.Pi * math.Asin(si/math.Sqrt((si+sj)*(si+sk)))
			}
		}
	}
	return variance
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
func kendallTail(n, d int) float64 { return inversionsTail([]int{n}, d) }

// inversionsTail is the same for several sets of values, each with an order of its own. The
// argument sizes has the number of values of each set.
func inversionsTail(sizes []int, d int) float64 {
	// share[k]: of the permutations of the values so far, the share with k inversions.
	share := make([]float64, d+1)
	share[0] = 1
	for _, n := range sizes {
		for i := 2; i <= n; i++ {
			next := make([]float64, d+1)
			var last float64 // sum of the last i of share
			for k := range next {
				last += share[k]
				if k >= i {
					last -= share[k-i]
				}
				next[k] = math.Max(0, last) / float64(i)
			}
			share = next
		}
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
