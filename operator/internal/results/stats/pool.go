package stats

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Measured is what one site found: a value and its standard error, which is above 0.
type Measured struct{ Value, SE float64 }

// Pooled is the combined finding of several sites.
type Pooled struct {
	// Estimate is the mean over all sites that there could be, with its interval.
	Estimate
	// SE is its standard error.
	SE float64
	// Tau2 is the variance between sites, beside what chance gives within each.
	Tau2 float64
	// Q is Cochran's statistic, and QP the probability of such a Q or a greater one if sites do not
	// differ.
	Q, QP float64
	// I2 is the share of the variance of what sites found that is between sites, from 0 to 1.
	I2 float64
	// PredictionLow and PredictionHigh are where another site's true value lies in 95% of cases;
	// Predicted is false for two sites, which are too few.
	PredictionLow, PredictionHigh float64
	Predicted                     bool
}

// Pool combines what sites found by a model of random effects: each site has a true value of its
// own, and these are normal around the mean.
//
//	tau²   such that sum w (y - m)² = k - 1,  w = 1/(se² + tau²), m the mean with these weights; 0
//	       where even that is too much (Paule and Mandel, J. Res. Natl. Bur. Stand. 87, 1982)
//	m      ± t(k-1) sqrt(max(1, q)/sum w),  q = sum w (y - m)²/(k - 1): Hartung and Knapp, Stat.
//	       Med. 20, 2001; never narrower than without it (Röver et al., BMC Med. Res. Methodol. 15, 2015)
//	next   m ± t(k-2) sqrt(tau² + se²)  (Higgins, Thompson and Spiegelhalter, J. R. Stat. Soc. A 172, 2009)
//	Q      sum w (y - m)² with tau² = 0, I² = max(0, 1 - (k-1)/Q)  (Higgins and Thompson, Stat. Med. 21, 2002)
//
// It needs two sites, and fails where a value is not finite or a standard error not above 0.
func Pool(sites []Measured) (Pooled, error) {
	if len(sites) < 2 {
		return Pooled{}, errors.New("pool: there are fewer than two sites")
	}
	for _, s := range sites {
		if !(s.SE > 0) || math.IsInf(s.SE, 0) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			return Pooled{}, errors.New("pool: a site has no value or no standard error above 0")
		}
	}
	k := float64(len(sites))
	_, _, q := weighted(sites, 0)
	p := Pooled{Tau2: varianceBetween(sites, q), Q: q, QP: distuv.ChiSquared{K: k - 1}.Survival(q)}
	if q > 0 {
		p.I2 = math.Max(0, 1-(k-1)/q)
	}
	mean, weight, spread := weighted(sites, p.Tau2)
	p.SE = math.Sqrt(math.Max(1, spread/(k-1)) / weight)
	half := tQuantile(k-1) * p.SE
	p.Estimate = Estimate{Value: mean, Low: mean - half, High: mean + half, Known: true, Freedom: k - 1}
	if len(sites) > 2 {
		next := tQuantile(k-2) * math.Sqrt(p.Tau2+square(p.SE))
		p.Predicted, p.PredictionLow, p.PredictionHigh = true, mean-next, mean+next
	}
	return p, nil
}

// weighted is the mean of sites with a variance between them, the sum of their weights, and the
// weighted sum of squares around the mean.
func weighted(sites []Measured, tau2 float64) (mean, weight, spread float64) {
	for _, s := range sites {
		w := 1 / (s.SE*s.SE + tau2)
		weight += w
		mean += w * s.Value
	}
	mean /= weight
	for _, s := range sites {
		spread += square(s.Value-mean) / (s.SE*s.SE + tau2)
	}
	return mean, weight, spread
}

// varianceBetween is Paule and Mandel's tau²: the sum of squares falls as tau² grows. q is the sum
// of squares at tau² = 0.
func varianceBetween(sites []Measured, q float64) float64 {
	wanted := float64(len(sites) - 1)
	if q <= wanted {
		return 0
	}
	low, high := 0.0, 1.0
	for {
		if _, _, spread := weighted(sites, high); spread <= wanted {
			break
		}
		high *= 2
	}
	// It ends when no number lies between the two.
	for middle := high / 2; low < middle && middle < high; middle = (low + high) / 2 {
		if _, _, spread := weighted(sites, middle); spread > wanted {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
