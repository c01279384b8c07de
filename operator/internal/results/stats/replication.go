package stats

import "math"

// oneInThree is the effect, in standard errors, that a study finds in a third of cases by a
// two-sided test at 5%. It is d with Φ(d-1.96) + Φ(-d-1.96) = 1/3.
const oneInThree = 1.5285687127125556

// SmallTelescopes returns the effect that an original study with this standard error finds in a
// third of cases. It also returns the one-sided P that a replication's effect is at least that
// great. If P is below 5%, the original could hardly have found the effect of the replication
// (Simonsohn, Psychol. Sci. 26, 2015). Effects have the sign of the original's effect: a reversed
// effect is below 0. Standard errors are above 0.
func SmallTelescopes(originalError, effect, effectError float64) (least, p float64) {
	least = oneInThree * originalError
	return least, above((least - effect) / effectError)
}

// ScepticalP is the one-sided sceptical P of a replication (Held, J. R. Stat. Soc. A 183, 2020):
// the greatest level at which the replication refutes a prior that believes the original to be
// chance. The arguments z are the two effects by their standard errors and c is the square of the
// original's standard error by the replication's. With A = (z_o² + z_r²)/2 and H = 2/(1/z_o² +
// 1/z_r²),
//
//	z_S² = H/2 for c = 1, else (√(A (A + (c-1) H)) - A)/(c-1),   P = 1 - Φ(z_S)
//
// and Φ(z_S) where the effects have different signs. It is never below the P of either study.
func ScepticalP(original, replication, c float64) float64 {
	zo, zr := square(original), square(replication)
	if zo == 0 || zr == 0 {
		return 0.5
	}
	a, h := (zo+zr)/2, 2/(1/zo+1/zr)
	z := h / 2
	if math.Abs(c-1) > 1e-9 {
		z = (math.Sqrt(a*(a+(c-1)*h)) - a) / (c - 1)
	}
	if original*replication < 0 {
		return above(-math.Sqrt(z))
	}
	return above(math.Sqrt(z))
}

// above is 1 - Φ(z), which does not vanish where Φ is 1 to all digits.
func above(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
