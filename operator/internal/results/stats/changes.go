package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Changes are the levels that a measurement window has.
type Changes struct {
	// At are the observations at which the level changes, in rising order.
	At []int
	// Level is the mean of the longest stretch between two changes. Bias is the effect of the other
	// stretches: the mean of the window divided by Level, less 1.
	Level, Bias float64
	// Ends is how many observations at the end of the window are at less than half of Level: the
	// clients, or some of them, ended early.
	Ends int
	// Cautions: NotStationary, when |Bias| is above the tolerance or the window ends early.
	Cautions []Caution
}

const (
	// changePenalty of each change, in variances of a batch times the logarithm of the number of
	// batches. In steady noise 3 finds a change in few windows.
	changePenalty = 3
	// leastStretch is how many batches lie between two changes.
	leastStretch = 2
)

// FindChanges splits a window into levels by optimal partitioning (Jackson et al., IEEE Signal
// Process. Lett. 12, 2005; it is what PELT of Killick et al., J. Am. Stat. Assoc. 107, 2012,
// computes faster): of the batches of 5 observations, it finds the split with the least
//
//	sum over levels of squared deviations + (number of levels) 3 s² ln(n)
//
// s² comes from the differences of neighbours, which changes hardly affect. It is the greater of
// two estimates. One is from neighbouring batches, by the median of their differences. The other
// allows for observations that depend on their neighbours, as in a first-order process. With D1 and
// D2 the mean squared differences of observations one and two apart, and f = D2/D1 - 1, it is D1/2
// (1+f)/(1-f)² by batch. CheckStationarity looks at the start and a straight line alone. Only
// FindChanges sees a system that falls in the middle of the window, or clients that end before the
// window does. (Barrett et al., OOPSLA'17, say why a start is not enough.)
//
// observations are as for CheckStationarity, with the same refusals.
func FindChanges(observations []float64, tolerance float64) (Changes, error) {
	z, err := batches(observations, tolerance)
	if err != nil {
		return Changes{}, err
	}
	c := Changes{}
	starts := append(split(z, noise(z, observations)), len(z))
	longest := 0
	for i := range len(starts) - 1 {
		if i > 0 {
			c.At = append(c.At, mserBatch*starts[i])
		}
		if starts[i+1]-starts[i] > starts[longest+1]-starts[longest] {
			longest = i
		}
	}
	c.Level = stat.Mean(z[starts[longest]:starts[longest+1]], nil)
	if c.Level == 0 {
		return Changes{}, fmt.Errorf("stationarity: nothing happened in most of the window")
	}
	c.Bias = stat.Mean(observations, nil)/c.Level - 1
	if last := starts[len(starts)-2]; last > 0 && stat.Mean(z[last:], nil) < c.Level/2 {
		c.Ends = len(observations) - mserBatch*last
	}
	if math.Abs(c.Bias) > tolerance || c.Ends > 0 {
		c.Cautions = append(c.Cautions, NotStationary)
	}
	return c, nil
}

// noise is the variance of a batch without changes.
func noise(z, observations []float64) float64 {
	differences := make([]float64, len(z)-1)
	for i := range differences {
		differences[i] = square(z[i+1] - z[i])
	}
	slices.Sort(differences)
	// The median of a squared normal difference is 2 x 0.4549 variances.
	independent := stat.Quantile(0.5, stat.Empirical, differences, nil) / (2 * 0.4549)
	one, two := apartBy(1, observations), apartBy(2, observations)
	f := 0.0
	if two > one {
		f = math.Min(mostCorrelated, two/one-1)
	}
	return math.Max(independent, one/2*(1+f)/square(1-f)/mserBatch)
}

// apartBy is the mean squared difference of observations that lie lag apart.
func apartBy(lag int, xs []float64) (mean float64) {
	for i := lag; i < len(xs); i++ {
		mean += square(xs[i]-xs[i-lag]) / float64(len(xs)-lag)
	}
	return mean
}

// split gives the first batch of each level.
func split(z []float64, variance float64) []int {
	n := len(z)
	penalty := changePenalty * math.Max(variance, 1e-6*square(stat.Mean(z, nil))) * math.Log(float64(n))
	sums, squares := make([]float64, n+1), make([]float64, n+1)
	for i, x := range z {
		sums[i+1], squares[i+1] = sums[i]+x, squares[i]+x*x
	}
	best, from := make([]float64, n+1), make([]int, n+1)
	for to := 1; to <= n; to++ {
		best[to] = math.Inf(1)
		for start := 0; start <= to-leastStretch; start++ {
			total := sums[to] - sums[start]
			cost := best[start] + penalty + squares[to] - squares[start] - total*total/float64(to-start)
			if cost < best[to] {
				best[to], from[to] = cost, start
			}
		}
	}
	var starts []int
	for to := n; to > 0; to = from[to] {
		starts = append(starts, from[to])
	}
	slices.Reverse(starts)
	return starts
}
