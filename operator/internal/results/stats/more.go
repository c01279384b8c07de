package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// MostRepetitions that More looks at: no experiment may have more.
const MostRepetitions = 100

// decidingShare is the probability of a decision that More asks for.
const decidingShare = 0.8

// More is about how many trials of each point would tell, with a probability of 80%, whether a
// quantity lies between low and high, which may be infinite. It treats the estimate from n trials
// of each point as the truth, and their deviation, too. With n' trials, the standard error is that
// of n trials times sqrt(n/n'), and Student's degrees of freedom grow with n'-1. Beyond
// MostRepetitions it is 0. It is false for an estimate without a bounded interval.
func More(e Estimate, n int, low, high float64) (int, bool) {
	half := (e.High - e.Low) / 2
	if !e.Known || n < 2 || math.IsInf(half, 0) || !(half > 0) {
		return 0, false
	}
	freedom := e.Freedom
	if freedom == 0 { // the interval is not Student's
		freedom = float64(n - 1)
	}
	e.Freedom = freedom
	error1 := half / e.Quantile() * math.Sqrt(float64(n)) // of one trial
	for more := n + 1; more <= MostRepetitions; more++ {
		f := freedom * float64(more-1) / float64(n-1)
		if decided(e.Value, error1/math.Sqrt(float64(more)), f, low, high) >= decidingShare {
			return more, true
		}
	}
	return 0, true
}

// decided is the probability that the interval of an estimate with this truth and standard error
// lies inside of low and high, or outside.
func decided(truth, standardError, freedom, low, high float64) float64 {
	t := tQuantile(freedom)
	student := distuv.StudentsT{Sigma: 1, Nu: freedom}
	below := func(x, quantiles float64) float64 { // of the estimate being below x, so many half-widths off
		if math.IsInf(x, 0) {
			return math.Max(0, math.Copysign(1, x))
		}
		return student.CDF((x-truth)/standardError + quantiles*t)
	}
	inside := math.Max(0, below(high, -1)-below(low, 1))
	return inside + below(low, -1) + 1 - below(high, 1)
}

// Chance is the predicted probability that the last look decides, from the estimate after n rounds.
// It must decide whether a quantity lies between low and high, which may be infinite. It treats the
// deviation as known. The truth may be anything that the estimate allows, as if nothing had been
// known before (Spiegelhalter, Freedman and Blackburn, Control. Clin. Trials 7, 1986): then the
// last estimate lies around this one with the variance se² (1 - n/last), and has the standard error
// se √(n/last). After the last look it is 0. False: the estimate has no bounded interval, as in
// More.
func (l Looks) Chance(e Estimate, n int, low, high float64) (float64, bool) {
	half := (e.High - e.Low) / 2
	if !e.Known || n < 2 || math.IsInf(half, 0) || !(half > 0) {
		return 0, false
	}
	if n >= l.Last {
		return 0, true
	}
	se, done := half/e.Quantile(), float64(n)/float64(l.Last)
	around := distuv.Normal{Mu: e.Value, Sigma: se * math.Sqrt(1-done)}
	last := Estimate{Freedom: e.Freedom / done, Level: l.Level(l.Last)}
	width := last.Quantile() * se * math.Sqrt(done)
	below := func(x float64) float64 {
		if math.IsInf(x, 0) {
			return math.Max(0, math.Copysign(1, x))
		}
		return around.CDF(x)
	}
	inside := math.Max(0, below(high-width)-below(low+width))
	return inside + below(low-width) + 1 - below(high+width), true
}
