package stats

import (
	"cmp"
	"maps"
	"math"
	"slices"

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
	// Tested: the variation between runs is known, so that P has a meaning.
	Tested bool
	P      float64
	// Widened: the interval and P allow for machines that change from run to run.
	Widened bool
}

// A Run is the trials of one run at a point, and its place in the order in which runs were taken.
type Run struct {
	Trials results.Aggregate
	Place  int
}

// CompareRunsInOrder is CompareRuns of runs whose order is known. Machines change while runs are
// taken, and a change between the runs of A and those of B looks like a difference. So the standard
// error is at least that of a random walk, in which each run differs from the previous one by a
// step with the deviation w:
//
//	w² = sum of (x_i - x_j)²/(gap) over runs i, j of one group that follow each other, by their number
//	U  = w² sum over the steps of (weight of all runs after the step)²,   weight -1/n_a or 1/n_b
//
// gap is how many places lie between the two. The degrees of freedom are then those of w². In runs
// that alternate, the steps cancel, and U is small; in AAABBB, U is 2.1 w² where chance alone gives
// 0.67 s². The interval does not cover a steady trend beneath noise. If the order is AAABBB, no
// interval does.
func CompareRunsInOrder(a, b []Run, between float64) RunComparison {
	trials := func(runs []Run) (xs []results.Aggregate) {
		for _, r := range runs {
			xs = append(xs, r.Trials)
		}
		return xs
	}
	c := CompareRuns(trials(a), trials(b), between)
	step, freedom := wander(a, b)
	if !c.Tested || freedom == 0 || len(a)+len(b) < 3 {
		return c
	}
	whole := math.Sqrt(step * stepsBetween(a, b))
	if whole <= (c.Difference.High-c.Difference.Low)/2/tQuantile(float64(len(a)+len(b)-2)) {
		return c
	}
	// The ratio's interval needs the error of each side; each has the share that its number of runs
	// gives it.
	na, nb := float64(len(a)), float64(len(b))
	c.test(whole*math.Sqrt(nb/(na+nb)), whole*math.Sqrt(na/(na+nb)), freedom)
	c.Widened = true
	return c
}

// wander is the variance of a step from run to run, and its degrees of freedom.
func wander(groups ...[]Run) (variance, freedom float64) {
	for _, runs := range groups {
		inOrder := slices.SortedFunc(slices.Values(runs), func(x, y Run) int { return cmp.Compare(x.Place, y.Place) })
		for i := 1; i < len(inOrder); i++ {
			variance += square(inOrder[i].Trials.Mean-inOrder[i-1].Trials.Mean) / float64(inOrder[i].Place-inOrder[i-1].Place)
			freedom++
		}
	}
	return variance / math.Max(1, freedom), freedom
}

// stepsBetween is the variance of the difference of means of runs that wander by steps of variance
// 1.
func stepsBetween(a, b []Run) (variance float64) {
	weights := map[int]float64{}
	for _, r := range a {
		weights[r.Place] -= 1 / float64(len(a))
	}
	for _, r := range b {
		weights[r.Place] += 1 / float64(len(b))
	}
	places := slices.Sorted(maps.Keys(weights))
	after := 0.0
	for i := len(places) - 1; i > 0; i-- {
		after += weights[places[i]]
		variance += square(after) * float64(places[i]-places[i-1])
	}
	return variance
}

// CompareRuns compares groups of runs at one point by run, not by trial. The difference between
// runs (machines, placement, day, neighbours) is the same for all trials of a run. So more trials
// only make the difference look certain (Kalibera and Jones, "Rigorous benchmarking in reasonable
// time", ISMM'13). The arguments a and b are the trials of the runs, one aggregate for each run.
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
