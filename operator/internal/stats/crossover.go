package stats

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// resampleCount of a bootstrap interval: enough for 95% (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3, want 1000 or more).
const resampleCount = 2000

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

// Crossover finds where the curve a crosses b: the x at which straight lines between the means of neighbouring points first change the sign of a - b.
// A point where both means are equal is a crossing when the sign differs on its two sides.
//
// The interval is a percentile bootstrap's (Efron and Tibshirani, section 13.3): the repetitions of every point of both curves are drawn again, with
// replacement, 2000 times; it is from the 2.5th to the 97.5th percentile of the crossings. When more than 2.5% of the draws do not cross, the crossing may not
// be there, and there is no interval. With few repetitions it is too narrow, since they vary less than what they are drawn from (FewSamples).
//
// rng draws; the same generator gives the same interval. Without a crossing, Value means nothing (NoCrossing).
// Crossover fails when the curves do not have the same two or more rising values of the axis, or a point of them has no repetition or one that is not finite.
func Crossover(a, b Series, rng *rand.Rand) (Crossing, error) {
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
	var found []float64
	for range resampleCount {
		for i := range difference {
			difference[i] = redraw(a.Samples[i], rng) - redraw(b.Samples[i], rng)
		}
		if x, n := crossing(a.X, difference); n > 0 {
			found = append(found, x)
		}
	}
	tail := (1 - confidence) / 2
	if float64(len(found)) < (1-tail)*resampleCount {
		return c, nil
	}
	slices.Sort(found)
	c.Low, c.High = stat.Quantile(tail, stat.Empirical, found, nil), stat.Quantile(1-tail, stat.Empirical, found, nil)
	c.Low, c.High = min(c.Low, at), max(c.High, at)
	c.Known = true
	return c, nil
}

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

// between is where the line from point i to j meets 0: the middle of the points between them, if there are any, since they lie on it.
func between(x, difference []float64, i, j int) float64 {
	if j > i+1 {
		return (x[i+1] + x[j-1]) / 2
	}
	share := difference[i] / (difference[i] - difference[j])
	return x[i]*(1-share) + x[j]*share
}

// redraw is the mean of as many of the samples, drawn with replacement.
func redraw(samples []float64, rng *rand.Rand) float64 {
	var sum float64
	for range samples {
		sum += samples[rng.IntN(len(samples))]
	}
	return sum / float64(len(samples))
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
