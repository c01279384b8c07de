// Package stats turns the trials of an experiment into numbers with intervals. It is pure: no
// clock, no randomness, no files.
//
// It does not judge (claims does) and does not merge latencies within a trial (results does:
// histograms are merged, percentiles never averaged). It takes one number for each trial and
// metric. It assumes that the trials of a point are independent draws from a distribution near
// enough to normal. Three trials cannot show whether that holds, so every answer carries its n.
//
// Intervals are at 95%.
//
//	mean of one point      x ± t(n-1) s/sqrt(n)                                   Student
//	f(mean_1 ... mean_k)   f ± t(v) sqrt(U_1 + ... + U_k),  U_i = g_i² s_i²/n_i   first-order propagation
//	                       v = (U_1 + ... + U_k)² / (U_1²/(n_1-1) + ... + U_k²/(n_k-1))
//
// where g_i is the derivative of f by the i-th mean. For f = a - b this is Welch's interval. For a
// ratio of what is never negative, within an expression, the same is done for its logarithm. So the
// interval is positive and that of b/a is the reciprocal of that of a/b. For two means alone, Ratio
// gives Fieller's interval.
//
// A number that can be distrusted comes with a Caution, a value. Input that is no number at all
// (NaN, infinities, lists that do not go together) is an error; results made of finite numbers are
// finite. The formulas, their sources and their limits are in docs/reference/statistics.md.
package stats

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/results"
)

// confidence of every interval.
const confidence = 0.95

// NormalQuantile is the factor of a two-sided interval where the deviation is known.
const NormalQuantile = 1.959963984540054

// Estimate is a number with its interval.
type Estimate struct {
	Value     float64
	Low, High float64
	// Known is false when some input has fewer than two samples: there is no interval then, and Low
	// and High are equal to Value.
	Known bool
	// Freedom is the degrees of freedom of the interval, where it is Student's; else 0.
	Freedom float64
	// Log: the interval is that of the logarithm.
	Log bool
	// Level is the share of experiments in which the interval may miss the truth; 0 stands for 5%.
	Level float64
}

// At is the estimate with the interval of another level, wider or narrower by the quotient of both
// quantiles. It treats the interval as Student's, or as a normal one if there are no degrees of
// freedom. An end that is infinite stays so.
func (e Estimate) At(level float64) Estimate {
	before := e.Quantile()
	e.Level = level
	by := e.Quantile() / before
	switch {
	case !e.Known || by == 1:
	case e.Log && e.Value > 0:
		e.Low, e.High = e.Value*math.Pow(e.Low/e.Value, by), e.Value*math.Pow(e.High/e.Value, by)
	default:
		e.Low, e.High = e.Value-by*(e.Value-e.Low), e.Value+by*(e.High-e.Value)
	}
	return e
}

// Quantile is how many standard errors the interval is wide on each side.
func (e Estimate) Quantile() float64 {
	level := e.Level
	if level == 0 {
		level = 1 - confidence
	}
	return quantileAt(level, e.Freedom)
}

// quantileAt is the factor of a two-sided interval that misses the truth in a share of experiments.
// Degrees of freedom of 0 stand for a known deviation.
func quantileAt(level, freedom float64) float64 {
	switch {
	case !(freedom > 0):
		return distuv.UnitNormal.Quantile(1 - level/2)
	case level == 1-confidence:
		return tQuantile(freedom)
	}
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(1 - level/2)
}

// Term is one independent sample in a function of several means.
type Term struct {
	// Gradient is the derivative of the function by the sample's mean.
	Gradient float64
	// Sample that was measured.
	Sample results.Aggregate
}

// Aggregate summarises the samples of one metric. One sample has no interval: Low and High are
// equal to Mean.
func Aggregate(samples []float64) results.Aggregate {
	if len(samples) == 0 {
		return results.Aggregate{}
	}
	a := results.Aggregate{N: len(samples), Min: samples[0], Max: samples[0]}
	for _, x := range samples {
		a.Min = math.Min(a.Min, x)
		a.Max = math.Max(a.Max, x)
	}
	if a.N == 1 {
		a.Mean, a.Low, a.High = a.Min, a.Min, a.Min
		return a
	}
	a.Mean, a.StdDev = stat.MeanStdDev(samples, nil)
	half := tQuantile(float64(a.N-1)) * a.StdDev / math.Sqrt(float64(a.N))
	a.Low, a.High = a.Mean-half, a.Mean+half
	return a
}

// Difference estimates the difference of two independent means, with Welch's interval.
func Difference(a, b results.Aggregate) Estimate {
	return Propagate(a.Mean-b.Mean, []Term{{Gradient: 1, Sample: a}, {Gradient: -1, Sample: b}})
}

// Propagate returns value, a function of the means of independent terms, with its first-order
// interval. A value without terms is exact.
func Propagate(value float64, terms []Term) Estimate {
	half, freedom, known := halfWidth(terms, 1)
	return Estimate{Value: value, Low: value - half, High: value + half, Known: known, Freedom: freedom}
}

// PropagateRatio is Propagate on the logarithm of value. A value that has no logarithm gets the
// interval of Propagate.
func PropagateRatio(value float64, terms []Term) Estimate {
	if value <= 0 {
		return Propagate(value, terms)
	}
	half, freedom, known := halfWidth(terms, 1/value)
	return Estimate{Value: value, Low: value * math.Exp(-half), High: value * math.Exp(half), Known: known, Freedom: freedom, Log: true}
}

// halfWidth is the half-width of the interval of scale times the function with these terms, and its
// degrees of freedom.
func halfWidth(terms []Term, scale float64) (half, freedom float64, known bool) {
	var whole float64 // sqrt(U_1 + ... + U_k)
	for _, t := range terms {
		if t.Sample.N < 2 {
			return 0, 0, false
		}
		whole = math.Hypot(whole, t.standardError(scale))
	}
	if whole == 0 { // no terms, or none that varies
		return 0, 0, true
	}
	var inverse float64 // of the degrees of freedom; by shares of the sum, whose squares neither overflow nor vanish
	for _, t := range terms {
		inverse += square(square(t.standardError(scale)/whole)) / float64(t.Sample.N-1)
	}
	return tQuantile(1/inverse) * whole, 1 / inverse, true
}

// standardError is this term's part of the standard error of scale times the function: sqrt(U_i).
func (t Term) standardError(scale float64) float64 {
	return math.Abs(scale*t.Gradient) * t.Sample.StdDev / math.Sqrt(float64(t.Sample.N))
}

// tQuantile is the factor of a two-sided interval with so many degrees of freedom.
func tQuantile(degreesOfFreedom float64) float64 {
	if degreesOfFreedom < 1 {
		return studentQuantile(degreesOfFreedom)
	}
	if whole := math.Floor(degreesOfFreedom); whole == degreesOfFreedom && whole <= keptQuantiles {
		return wholeQuantiles()[int(whole)]
	}
	return refinedQuantile(degreesOfFreedom)
}

// refinedQuantile is studentQuantile in a tenth of its time: Newton's method, which starts between
// the quantiles of the two neighbouring whole degrees of freedom. Degrees by Satterthwaite are
// seldom whole, and a simulation of experiments asks for millions.
func refinedQuantile(degreesOfFreedom float64) float64 {
	whole := math.Floor(degreesOfFreedom)
	t := wholeQuantiles()[keptQuantiles]
	if whole < keptQuantiles {
		low, high := wholeQuantiles()[int(whole)], wholeQuantiles()[int(whole)+1]
		share := (1/whole - 1/degreesOfFreedom) / (1/whole - 1/(whole+1))
		t = low + share*(high-low)
	}
	student := distuv.StudentsT{Sigma: 1, Nu: degreesOfFreedom}
	for range 20 {
		step := (student.CDF(t) - (1+confidence)/2) / student.Prob(t)
		t -= step
		if math.Abs(step) < 1e-12*t {
			break
		}
	}
	return t
}

// Quantiles of whole degrees of freedom up to keptQuantiles are computed once and kept. An
// experiment with many points asks for the same few whenever it decides which points need another
// trial, and each takes some 30 us.
const keptQuantiles = 100

var wholeQuantiles = sync.OnceValue(func() []float64 {
	q := make([]float64, keptQuantiles+1)
	for i := 1; i <= keptQuantiles; i++ {
		q[i] = studentQuantile(float64(i))
	}
	return q
})

func studentQuantile(degreesOfFreedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degreesOfFreedom}.Quantile((1 + confidence) / 2)
}

func square(x float64) float64 { return x * x }

// Rounded writes a value with as many decimals as its half-width supports (Decimals): tables, plots
// and sentences of a report write a number in this way. A value that comes to 0 has no sign.
func Rounded(value, half float64) string { return Fixed(value, Decimals(value, half)) }

// Fixed writes a value with so many decimals.
func Fixed(value float64, decimals int) string {
	text := strconv.FormatFloat(value, 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// Decimals is how many decimals of value its half-width supports: those that show two significant
// digits of the half-width. Without a half-width it is those that show three significant digits of
// value. It is between 0 and 4: digits before the point are never rounded.
func Decimals(value, half float64) int {
	magnitude, significant := half, 2.0
	if half <= 0 {
		magnitude, significant = math.Abs(value), 3
	}
	if magnitude == 0 || math.IsInf(magnitude, 0) || math.IsNaN(magnitude) {
		return 0
	}
	return int(math.Min(4, math.Max(0, significant-1-math.Floor(math.Log10(magnitude)))))
}
