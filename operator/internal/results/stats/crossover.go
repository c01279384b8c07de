package stats

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"assay.dev/assay/operator/internal/results"
)

// Series is a metric along an axis, with the repetitions of each point.
type Series struct {
	// X are the values of the axis, rising.
	X []float64
	// Samples[i] are the repetitions at X[i], one or more.
	Samples [][]float64
}

// Crossing is where two curves cross, in units of the axis.
type Crossing struct {
	Estimate
	// Cautions: NoCrossing, ManyCrossings, OneSample, FewSamples.
	Cautions []Caution
}

// Crossover finds where the curve a crosses b: the x at which straight lines between the means of
// neighbouring points first change the sign of a - b. A point where both means are equal is a
// crossing when the sign differs on its two sides.
//
// The interval inverts a test. An x may be the crossing unless Welch's interval of the difference
// that straight lines give there, (1-s) d_i + s d_j, lies above or below 0. This is Fieller's
// interval between two points, with Satterthwaite's degrees of freedom of the four samples. It
// begins at the first such x, and ends where the trials show the other sign of the difference. If
// they show no sign at the first point, or never show the other sign, the crossing may lie outside
// of the measured points. Then there is no interval. An earlier version was a percentile bootstrap.
// With three repetitions, its intervals hold the crossing in 80% of experiments only, since draws
// vary less than the trials do.
//
// Without a crossing, Value means nothing (NoCrossing). Crossover fails when the curves do not have
// the same two or more rising values of the axis. It also fails when a point of them has no
// repetition or one that is not finite.
func Crossover(a, b Series) (Crossing, error) {
	fewest, err := checkSeries(a, b)
	if err != nil {
		return Crossing{}, fmt.Errorf("crossover: %w", err)
	}
	difference := make([]float64, len(a.X))
	for i := range difference {
		difference[i] = stat.Mean(a.Samples[i], nil) - stat.Mean(b.Samples[i], nil)
	}
	at, crossings := crossing(a.X, difference)
	c := Crossing{Estimate: Estimate{Value: at, Low: at, High: at}}
	switch crossings {
	case 0:
		c.Cautions = append(c.Cautions, NoCrossing)
		return c, nil
	case 1:
	default:
		c.Cautions = append(c.Cautions, ManyCrossings)
	}
	if fewest < 2 {
		c.Cautions = append(c.Cautions, OneSample)
		return c, nil
	}
	if fewest < fewSamples {
		c.Cautions = append(c.Cautions, FewSamples)
	}
	if low, high, ok := segments(a, b).crossing(); ok {
		c.Low, c.High, c.Known, c.Freedom = min(low, at), max(high, at), true, float64(fewest-1)
	}
	return c, nil
}

// lines are the straight lines between the differences of two curves at the points of an axis.
type lines struct {
	x    []float64
	a, b []results.Aggregate
}

func segments(a, b Series) lines {
	l := lines{x: a.X}
	for i := range a.X {
		l.a, l.b = append(l.a, Aggregate(a.Samples[i])), append(l.b, Aggregate(b.Samples[i]))
	}
	return l
}

// at is the sign of a - b that the trials show at a place between points i and i+1; 0: none.
func (l lines) at(i int, share float64) float64 {
	terms := []Term{{Gradient: 1 - share, Sample: l.a[i]}, {Gradient: share - 1, Sample: l.b[i]}}
	value := (1 - share) * (l.a[i].Mean - l.b[i].Mean)
	if share > 0 {
		terms = append(terms, Term{Gradient: share, Sample: l.a[i+1]}, Term{Gradient: -share, Sample: l.b[i+1]})
		value += share * (l.a[i+1].Mean - l.b[i+1].Mean)
	}
	e := Propagate(value, terms)
	switch {
	case e.Low > 0:
		return 1
	case e.High < 0:
		return -1
	}
	return 0
}

// The steps between two points in which a change of sign is looked for, and then halved.
const crossingSteps, crossingHalvings = 32, 20

// crossing returns the stretch of possible crossings. It begins where the trials no longer show the
// sign of the first point, and ends where they show the other sign.
func (l lines) crossing() (low, high float64, ok bool) {
	first := l.at(0, 0)
	if first == 0 {
		return 0, 0, false
	}
	begun := false
	for i := range len(l.x) - 1 {
		if l.at(i+1, 0) == first { // so no place between them has the other sign
			continue
		}
		for k := range crossingSteps {
			from, to := float64(k)/crossingSteps, float64(k+1)/crossingSteps
			now := l.at(i, to)
			if !begun && now != first {
				begun, low = true, l.place(i, l.last(i, from, to, func(sign float64) bool { return sign == first }))
			}
			if now == -first {
				return low, l.place(i, l.last(i, from, to, func(sign float64) bool { return sign != -first })), true
			}
		}
	}
	return 0, 0, false
}

// last is the last share between from and to at which still holds for the sign. It holds at from.
func (l lines) last(i int, from, to float64, still func(float64) bool) float64 {
	for range crossingHalvings {
		if middle := (from + to) / 2; still(l.at(i, middle)) {
			from = middle
		} else {
			to = middle
		}
	}
	return from
}

func (l lines) place(i int, share float64) float64 { return l.x[i]*(1-share) + l.x[i+1]*share }

// crossing is the first x at which the differences change sign, and how often they do.
func crossing(x, difference []float64) (at float64, count int) {
	last := -1 // the last point whose difference is not 0
	for i, d := range difference {
		if d == 0 {
			continue
		}
		if last >= 0 && sign(d) != sign(difference[last]) {
			if count == 0 {
				at = between(x, difference, last, i)
			}
			count++
		}
		last = i
	}
	return at, count
}

// between is where the line from point i to j meets 0: the middle of the points between them, if
// there are any, since they lie on it.
func between(x, difference []float64, i, j int) float64 {
	if j > i+1 {
		return (x[i+1] + x[j-1]) / 2
	}
	share := difference[i] / (difference[i] - difference[j])
	return x[i]*(1-share) + x[j]*share
}

// checkSeries says how many repetitions the point with the fewest has.
func checkSeries(a, b Series) (fewest int, err error) {
	if len(a.X) < 2 || !slices.Equal(a.X, b.X) || len(a.Samples) != len(a.X) || len(b.Samples) != len(b.X) {
		return 0, errors.New("both curves must have samples at the same two or more values of the axis")
	}
	if err := check("axis", a.X); err != nil {
		return 0, err
	}
	fewest = len(a.Samples[0])
	for i := range a.X {
		if i > 0 && a.X[i] <= a.X[i-1] {
			return 0, fmt.Errorf("axis: %g follows %g; the values must rise", a.X[i], a.X[i-1])
		}
		for _, samples := range [][]float64{a.Samples[i], b.Samples[i]} {
			if len(samples) == 0 {
				return 0, fmt.Errorf("there is no sample at %g", a.X[i])
			}
			if err := check(fmt.Sprintf("samples at %g", a.X[i]), samples); err != nil {
				return 0, err
			}
			fewest = min(fewest, len(samples))
		}
	}
	return fewest, nil
}
