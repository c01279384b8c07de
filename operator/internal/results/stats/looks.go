package stats

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// Looks are the numbers of rounds after which an experiment is looked at while it goes on: after
// First, after each further one, and last after Last. First must be 1 or more, and Last First or
// more.
type Looks struct{ First, Last int }

// Count is how many looks there are at most.
func (l Looks) Count() int { return l.Last - l.First + 1 }

// Level is the share of experiments in which the interval of the look after so many rounds may be
// wrong. So the intervals of all looks together are wrong in 5% at most. Each interval holds, no
// matter why the experiment stopped there (repeated confidence intervals: Jennison and Turnbull, J.
// R. Stat. Soc. B 51, 1989). Before First and after Last it is that of the nearest look.
//
// The 5% are spent over the looks (Lan and DeMets, Biometrika 70, 1983): up to round n, the share
// n/Last of them. So the first looks get much, as in Pocock's design, and large differences are
// decided at once. Designs that keep nearly all for the last look (O'Brien and Fleming) save fewer
// trials on the shipped evidence. The levels follow from sums of independent normal values, by
// numerical integration (Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132, 1969). Student's
// tests use the same levels (Jennison and Turnbull, Group Sequential Methods, 2000, section 11.4).
func (l Looks) Level(rounds int) float64 {
	return l.levels()[min(max(rounds, l.First), l.Last)-l.First]
}

// keptLevels are those that were computed once: a hundred looks take a tenth of a second.
var keptLevels sync.Map

func (l Looks) levels() []float64 {
	if kept, ok := keptLevels.Load(l); ok {
		return kept.([]float64)
	}
	levels := spend(l, func(rounds int) float64 {
		return (1 - confidence) * float64(rounds) / float64(l.Last)
	})
	keptLevels.Store(l, levels)
	return levels
}

// spend gives each look its two-sided level. At each look, the share of experiments that have
// crossed a bound so far is then the share to spend so far.
func spend(l Looks, spent func(rounds int) float64) []float64 {
	levels := make([]float64, l.Count())
	var on walk
	before := 0.0
	for i := range levels {
		rounds := l.First + i
		share := spent(rounds) - before
		before = spent(rounds)
		step := 1.0
		if i == 0 {
			step = float64(l.First)
		}
		quantile := on.bound(share, step, float64(rounds))
		levels[i] = 2 * distuv.UnitNormal.Survival(quantile)
		on = on.next(quantile*math.Sqrt(float64(rounds)), step)
	}
	return levels
}

// walk is the density of a sum of normal values that has crossed no bound so far, at points with
// their weights. The zero walk starts at 0.
type walk struct{ at, mass []float64 }

// nodesPerDeviation is how many points of Gauss and Legendre a walk has for each deviation of a
// step; some more do for its ends.
const nodesPerDeviation = 5

// next is the walk after a step of that variance, where it ended between -bound and bound.
func (w walk) next(bound, step float64) walk {
	deviation := math.Sqrt(step)
	n := 30 + int(nodesPerDeviation*2*bound/deviation)
	next := walk{at: make([]float64, n), mass: make([]float64, n)}
	quad.Legendre{}.FixedLocations(next.at, next.mass, -bound, bound)
	for i, y := range next.at {
		next.mass[i] *= w.density(y, deviation)
	}
	return next
}

func (w walk) density(y, deviation float64) float64 {
	if w.at == nil {
		return distuv.Normal{Sigma: deviation}.Prob(y)
	}
	var sum float64
	for i, x := range w.at {
		z := (y - x) / deviation
		sum += w.mass[i] * math.Exp(-z*z/2)
	}
	return sum / (deviation * math.Sqrt(2*math.Pi))
}

// crosses is the share of experiments in which a step of that variance ends beyond -bound or bound.
func (w walk) crosses(bound, step float64) float64 {
	deviation := math.Sqrt(step)
	if w.at == nil {
		return math.Erfc(bound / deviation / math.Sqrt2)
	}
	var sum float64
	for i, x := range w.at {
		sum += w.mass[i] * math.Erfc((bound-x)/deviation/math.Sqrt2)
	}
	return sum // both sides, which are alike
}

// bound finds the bound that this share crosses, in deviations of the sum.
func (w walk) bound(share, step, variance float64) float64 {
	low, high := 0.0, 12.0
	for range 60 {
		middle := (low + high) / 2
		if w.crosses(middle*math.Sqrt(variance), step) > share {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
