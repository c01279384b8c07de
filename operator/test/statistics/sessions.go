package main

import (
	"math"
	"math/rand/v2"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/claims"
)

// session draws how much faster or slower the machines are at each trial of an experiment, in the
// order of the trials.
type session func(rng *rand.Rand, slots []slot) []float64

func steadySession(_ *rand.Rand, slots []slot) []float64 { return make([]float64, len(slots)) }

// dependent trials or rounds follow a first-order process with a deviation of 5%.
func dependent(phi float64, byRound bool) session {
	return func(rng *rand.Rand, slots []slot) []float64 {
		xs := make([]float64, len(slots))
		e := 0.05 * rng.NormFloat64()
		for i, s := range slots {
			if i > 0 && (!byRound || s.round != slots[i-1].round) {
				e = phi*e + 0.05*math.Sqrt(1-phi*phi)*rng.NormFloat64()
			}
			xs[i] = e
		}
		return xs
	}
}

// spells of 8 trials are a third slower, one spell in five.
func spells(rng *rand.Rand, slots []slot) []float64 {
	xs := make([]float64, len(slots))
	slow := rng.Float64() < 0.2
	for i := range xs {
		if slow {
			xs[i] = 1/1.5 - 1
		}
		if slow {
			slow = rng.Float64() >= 1.0/8
		} else {
			slow = rng.Float64() < 1.0/32
		}
	}
	return xs
}

// sessions measures whether the interval of a single mean holds two values: the machines' overall
// mean, and their mean during the session. It also measures whether the verdict says that it is
// about the session. Quotients are in the table, too.
func sessions(scale float64) (rates []rate) {
	for _, world := range []struct {
		name   string
		of     session
		mean   float64
		review []string
		least  float64
	}{
		{"steady machines", steadySession, 1, []string{"92", "90", "95"}, 90},
		{"rounds AR(1) 0.9, 5%", dependent(0.9, true), 1, []string{"49", "45", "42"}, 90},
		{"trials AR(1) 0.95, 5%", dependent(0.95, false), 1, []string{"64", "59", "51"}, 0},
		{"slow spells of 8 trials", spells, 0.8 + 0.2/1.5, []string{"45", "57", "74"}, 0},
	} {
		for i, n := range []int{3, 5, 10} {
			e := grid([]int{5, 20, 50}, "a", "b")
			rng := rand.New(rand.NewPCG(71, uint64(n)))
			what := world.name + ", n=" + strconv.Itoa(n) + ": "
			always := rate{what: what + "the interval of a mean holds the mean of all hours", review: world.review[i]}
			now := rate{what: what + "it holds that of the session", least: world.least}
			said := rate{what: what + "the verdict says that it is of the session", least: 100}
			quotient := rate{what: what + "the interval of a quotient holds it", least: 90}
			for range experiments(scale, 600) {
				slots := interleaved(rng, len(e.points), n)
				common := world.of(rng, slots)
				mean := 0.0
				for _, x := range common {
					mean += (1 + x) / float64(len(common))
				}
				lines := e.lines(slots, func(s slot) float64 { return 1 + common[s.before] + 0.02*rng.NormFloat64() })
				r := e.judge(quantity("throughput(variant='a', clients=20)", 1000, "10%"), lines)
				always.see(covers(r, 1000*world.mean))
				now.see(covers(r, 1000*mean))
				told := false
				for _, c := range r.Caveats {
					told = told || c.Kind == claims.CaveatOneSession
				}
				said.see(told)
				quotient.see(covers(e.judge(quantity("throughput(variant='a', clients=20) / throughput(variant='b', clients=20)", 1, "10%"), lines), 1))
			}
			rates = append(rates, always, now, said, quotient)
		}
	}
	return rates
}
