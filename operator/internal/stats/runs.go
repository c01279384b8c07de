package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/results"
)

// RunComparison compares a metric at one point of two groups of runs.
type RunComparison struct {
	// A and B are over the means of runs, where a group has several; else over the trials of its
	// run.
	A, B results.Aggregate
	// Ratio is B/A, with Fieller's interval where it is Known. HasRatio is false where A is 0.
	Ratio    RatioEstimate
	HasRatio bool
	// Difference is B - A.
	Difference Estimate
	// Tested: the variation between runs is known, so that P says something.
	Tested bool
	P      float64
}

// CompareRuns compares groups of runs at one point by run, not by trial: what differs between runs
// (machines, placement, day, neighbours) is the same for all trials of one, so that more trials
// only make it look certain (Kalibera and Jones, "Rigorous benchmarking in reasonable time",
// ISMM'13). a and b are the trials of the runs, one aggregate for each run.
//
//	three runs and more   t = (b - a)/(s √(1/n_a + 1/n_b)), s² pooled over the means of runs of both
//	                      groups, with n_a + n_b - 2 degrees of freedom (Student); one of the groups
//	                      may be a single run
//	one run on each side  t = (b - a)/√(U_a + U_b + c²(a² + b²)), U of the trials within the runs,
//	                      c = between, the standard deviation of runs by their mean, as the caller
//	                      states it; Satterthwaite's degrees of freedom, where c is exact
//
// With one run on each side and between 0 nothing is tested: Tested is false, and the intervals are
// those of the trials within these two runs. Pooling assumes that runs of both groups vary alike.
func CompareRuns(a, b []results.Aggregate, between float64) RunComparison {
	if len(a) == 0 || len(b) == 0 {
		return RunComparison{}
	}
	if len(a)+len(b) > 2 {
		return compareMeans(a, b)
	}
	c := RunComparison{A: a[0], B: b[0], Difference: Difference(b[0], a[0])}
	ratio, err := Ratio(b[0], a[0])
	c.Ratio, c.HasRatio = ratio, err == nil
	if !(between > 0) || min(c.A.N, c.B.N) < 2 {
		return c
	}
	within := func(x results.Aggregate) float64 { return x.StdDev / math.Sqrt(float64(x.N)) }
	wa, wb := within(c.A), within(c.B)
	sa, sb := math.Hypot(wa, between*c.A.Mean), math.Hypot(wb, between*c.B.Mean)
	whole := math.Hypot(sa, sb)
	if whole == 0 {
		return c
	}
	inverse := square(square(wa/whole))/float64(c.A.N-1) + square(square(wb/whole))/float64(c.B.N-1)
	c.test(sa, sb, 1/inverse)
	return c
}

// compareMeans compares groups by the means of their runs.
func compareMeans(a, b []results.Aggregate) RunComparison {
	means := func(runs []results.Aggregate) (xs []float64) {
		for _, r := range runs {
			xs = append(xs, r.Mean)
		}
		return xs
	}
	c := RunComparison{A: Aggregate(means(a)), B: Aggregate(means(b))}
	if len(a) == 1 {
		c.A = a[0]
	}
	if len(b) == 1 {
		c.B = b[0]
	}
	sumOfSquares := func(runs []float64) float64 {
		s := Aggregate(runs)
		return square(s.StdDev) * float64(max(0, s.N-1))
	}
	freedom := float64(len(a) + len(b) - 2)
	deviation := math.Sqrt((sumOfSquares(means(a)) + sumOfSquares(means(b))) / freedom)
	c.test(deviation/math.Sqrt(float64(len(a))), deviation/math.Sqrt(float64(len(b))), freedom)
	return c
}

// test fills in what follows from the standard errors of both means and the degrees of freedom,
// which may be infinite.
func (c *RunComparison) test(sa, sb, freedom float64) {
	freedom = math.Min(freedom, 1e6)
	whole := math.Hypot(sa, sb)
	d := c.B.Mean - c.A.Mean
	c.Tested = true
	half := tQuantile(freedom) * whole
	c.Difference = Estimate{Value: d, Low: d - half, High: d + half, Known: true}
	switch {
	case whole > 0:
		c.P = 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(math.Abs(d)/whole)
	case d == 0:
		c.P = 1
	}
	ratio := c.B.Mean / c.A.Mean
	if c.A.Mean == 0 || math.Abs(ratio) > Limit || math.IsNaN(ratio) {
		c.HasRatio = false
		return
	}
	scale := math.Abs(c.A.Mean)
	c.HasRatio, c.Ratio = true, fieller(ratio, sb/scale, sa/scale, tQuantile(freedom))
}
