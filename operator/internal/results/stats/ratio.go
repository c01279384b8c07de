package stats

import (
	"errors"
	"math"

	"assay.dev/assay/operator/internal/results"
)

// RatioEstimate is the ratio of two means.
type RatioEstimate struct {
	Estimate
	// Cautions: OneSample, FewSamples, DenominatorNearZero. With OneSample or DenominatorNearZero
	// there is no interval.
	Cautions []Caution
}

// Ratio estimates mean(a)/mean(b) of two independent samples, with Fieller's interval: all ratios r
// that the data do not reject,
//
//	(a - r b)² <= t(v)² (U_a + r² U_b),   U = s²/n
//
// which is the stretch between the roots of a quadratic in r (Fieller, "Some problems in interval
// estimation", J. R. Stat. Soc. B 16, 1954). The deviations may differ, so v is Satterthwaite's at
// the estimated ratio R (as Tamhane and Logan, J. Biopharm. Stat. 14, 2004, do):
//
//	v = (U_a + R² U_b)² / (U_a²/(n_a-1) + R⁴ U_b²/(n_b-1))
//
// The interval of b/a is the reciprocal of that of a/b. When b's own interval, b ± t(v) sqrt(U_b),
// holds 0, the ratios that the data do not reject have no bound. Then there is no interval
// (DenominatorNearZero), and a plain first-order one would be wrong without showing it. Where both
// means are far from 0 compared with their deviations it is close to PropagateRatio's.
//
// Ratio fails when the mean of b is 0, or when a number of a or b is not finite or so small or
// large that the ratio is not.
func Ratio(a, b results.Aggregate) (RatioEstimate, error) { return RatioAt(a, b, 1-confidence) }

// RatioAt is Ratio with an interval that misses the truth in a share of experiments, level, from 0
// to 1.
func RatioAt(a, b results.Aggregate, level float64) (RatioEstimate, error) {
	if err := check("ratio", []float64{a.Mean, a.StdDev, b.Mean, b.StdDev}); err != nil {
		return RatioEstimate{}, err
	}
	r := a.Mean / b.Mean
	if b.Mean == 0 || math.Abs(r) > Limit {
		return RatioEstimate{}, errors.New("ratio: the mean of the denominator is 0, or too small for a ratio")
	}
	smaller := min(a.N, b.N)
	if smaller < 2 {
		return RatioEstimate{Estimate: Estimate{Value: r, Low: r, High: r}, Cautions: []Caution{OneSample}}, nil
	}
	// In units of the denominator's mean, and by deviations rather than variances, so that nothing
	// overflows or vanishes.
	sa, sb := a.StdDev/math.Abs(b.Mean)/math.Sqrt(float64(a.N)), b.StdDev/math.Abs(b.Mean)/math.Sqrt(float64(b.N))
	t, freedom := 0.0, 0.0
	if whole := math.Hypot(sa, r*sb); whole > 0 {
		wa, wb := square(sa/whole), square(r*sb/whole)
		freedom = 1 / (wa*wa/float64(a.N-1) + wb*wb/float64(b.N-1))
		t = quantileAt(level, freedom)
	}
	e := fieller(r, sa, sb, t)
	e.Freedom = freedom
	if level != 1-confidence {
		e.Level = level
	}
	if smaller < fewSamples {
		e.Cautions = append([]Caution{FewSamples}, e.Cautions...)
	}
	return e, nil
}

// fieller returns the ratio r of two means with its interval: sa and sb are their standard errors
// in units of the denominator's mean, t the quantile. The quadratic is (1-g) r² - 2 R r + R² - h <=
// 0.
func fieller(r, sa, sb, t float64) RatioEstimate {
	e := RatioEstimate{Estimate: Estimate{Value: r, Low: r, High: r}}
	if sa == 0 && sb == 0 {
		e.Known = true
		return e
	}
	g := square(t * sb)
	if !(g < 1) {
		e.Cautions = append(e.Cautions, DenominatorNearZero)
		return e
	}
	half := t * math.Hypot(sa*math.Sqrt(1-g), r*sb)
	low, high := (r-half)/(1-g), (r+half)/(1-g)
	if math.IsNaN(low) || math.Abs(low) > Limit || math.Abs(high) > Limit { // g is 1 but for rounding, or the deviations are beyond all measure
		e.Cautions = append(e.Cautions, DenominatorNearZero)
		return e
	}
	e.Low, e.High, e.Known = low, high, true
	return e
}
