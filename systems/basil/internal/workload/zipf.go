package workload

import (
	"math"
	"math/rand/v2"
)

// zipf draws from 0..n-1 with P(k) proportional to 1/(k+1)^theta by rejection-inversion (Hörmann
// and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
// 1996). It needs no table over n. Unlike the generator of math/rand, it allows theta <= 1, which
// evaluations of databases use.
type zipf struct {
	n         float64
	theta     float64
	hX1, hN   float64 // H at 1.5, less the first probability, and at n+0.5
	threshold float64
}

func newZipf(n uint64, theta float64) *zipf {
	z := &zipf{n: float64(n), theta: theta}
	z.hX1 = z.integral(1.5) - 1
	z.hN = z.integral(z.n + 0.5)
	z.threshold = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

// density is h(x) = x^-theta.
func (z *zipf) density(x float64) float64 { return math.Exp(-z.theta * math.Log(x)) }

// integral is H(x) = (x^(1-theta) - 1) / (1-theta), log x for theta = 1.
func (z *zipf) integral(x float64) float64 {
	l := math.Log(x)
	return expm1OverX((1-z.theta)*l) * l
}

// inverse is the inverse of integral.
func (z *zipf) inverse(x float64) float64 {
	t := max(x*(1-z.theta), -1)
	return math.Exp(log1pOverX(t) * x)
}

func expm1OverX(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3)
}

func log1pOverX(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x/2*(1-2*x/3)
}

func (z *zipf) draw(rng *rand.Rand) uint64 {
	for {
		u := z.hN + rng.Float64()*(z.hX1-z.hN)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.threshold || u >= z.integral(k+0.5)-z.density(k) {
			return uint64(k) - 1
		}
	}
}
