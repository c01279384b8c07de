package main

import (
	"fmt"
	"math/rand/v2"
)

// effects tests a reported quotient of 0.8 with systems that have a smaller effect. The deviation
// is 2%, and there are 5 repetitions.
func effects(scale float64) (rates []rate) {
	e := grid([]int{20}, "a", "b")
	for _, world := range []struct {
		truth  float64
		within string
		review string
		least  float64
		most   float64
	}{
		{1, "30%", "65", 0, 0},
		{1, "50% of the effect", "", 0, 2.5},
		{0.95, "50% of the effect", "", 0, 2.5},
		{0.8, "50% of the effect", "", 80, 0},
	} {
		const n = 5
		rng := rand.New(rand.NewPCG(45, n))
		passed := rate{what: fmt.Sprintf("reported 0.8, within %s, truth %g: Reproduced", world.within, world.truth), review: world.review, least: world.least, most: world.most}
		e.means = []float64{1000 * world.truth, 1000}
		claim := quantity("throughput(variant='a') / throughput(variant='b')", 0.8, world.within)
		for range experiments(scale, 1500) {
			passed.see(reproduced(e.judge(claim, e.lines(interleaved(rng, 2, n), func(slot) float64 { return 1 + 0.02*rng.NormFloat64() }))))
		}
		rates = append(rates, passed)
	}
	return rates
}
