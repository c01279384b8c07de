package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"assay.dev/assay/operator/internal/experiment/capacity"
)

// trialWorld says whether trial i of a search at a load meets the objective, if the capacity is c.
// state is a number that the search keeps.
type trialWorld func(rng *rand.Rand, state *float64, load, c float64, i int) bool

func deviating(s float64) trialWorld {
	return func(rng *rand.Rand, _ *float64, load, c float64, _ int) bool {
		return math.Log(c/load)+s*rng.NormFloat64() > 0
	}
}

func lapsing(share float64) trialWorld {
	return func(rng *rand.Rand, state *float64, load, c float64, i int) bool {
		return rng.Float64() >= share && deviating(0.02)(rng, state, load, c, i)
	}
}

// correlated trials deviate by d together: a good hour is followed by one that is nearly as good.
func correlated(keep, d float64) trialWorld {
	return func(rng *rand.Rand, state *float64, load, c float64, i int) bool {
		if i == 0 {
			*state = d * rng.NormFloat64()
		} else {
			*state = keep**state + d*math.Sqrt(1-keep*keep)*rng.NormFloat64()
		}
		return math.Log(c/load)+*state+0.01*rng.NormFloat64() > 0
	}
}

// days: eight trials in a row share a deviation of 5%.
func days(rng *rand.Rand, state *float64, load, c float64, i int) bool {
	if i%8 == 0 {
		*state = 0.05 * rng.NormFloat64()
	}
	return math.Log(c/load)+*state+0.01*rng.NormFloat64() > 0
}

// slowMode: three trials in ten reach a third less.
func slowMode(rng *rand.Rand, _ *float64, load, c float64, _ int) bool {
	if rng.Float64() < 0.3 {
		c /= 1.5
	}
	return math.Log(c/load)+0.02*rng.NormFloat64() > 0
}

// growing is a world whose machines reach more from trial to trial, by this share. The capacity to
// find is that of the first trial.
func growing(by float64) trialWorld {
	return func(rng *rand.Rand, _ *float64, load, c float64, i int) bool {
		return math.Log(c/load)+by*float64(i)+0.02*rng.NormFloat64() > 0
	}
}

func skewed(rng *rand.Rand, _ *float64, load, c float64, _ int) bool {
	return math.Log(c/load)-0.08*(-math.Log(-math.Log(rng.Float64()))-0.36651) > 0
}

// searchWorlds are the worlds of the review, and others in which trials depend on each other. A
// search may also report that the machines have a trend, and give no interval. In worlds with a
// trend that is right.
var searchWorlds = []struct {
	name            string
	world           trialWorld
	least           float64
	trend           bool
	review5, review string // with a precision of 5%, and of 10%
}{
	{"deviation 2%", deviating(0.02), 93, false, "99.8", "99.6"},
	{"4%", deviating(0.04), 93, false, "95.2", "95.4"},
	{"6%", deviating(0.06), 93, false, "88.0", "87.4"},
	{"8%", deviating(0.08), 93, false, "75.8", "77.4"},
	{"10%", deviating(0.1), 90, false, "66.0", "68.6"},
	{"15%", deviating(0.15), 90, false, "52.6", "50.0"},
	{"30%", deviating(0.3), 90, false, "22.8", "32.0"},
	{"1 trial in 20 fails at any load", lapsing(0.05), 90, false, "93.2", "90.8"},
	{"1 in 10", lapsing(0.1), 90, false, "88.4", "78.4"},
	{"1 in 5", lapsing(0.2), 90, false, "74.0", "58.8"},
	{"trials depend on each other, AR(1) 0.9, 5%", correlated(0.9, 0.05), 90, false, "66.0", "87.6"},
	{"AR(1) 0.8, 5%", correlated(0.8, 0.05), 90, false, "", ""},
	{"AR(1) 0.95, 5%", correlated(0.95, 0.05), 0, false, "", ""}, // hours that last as long as the search
	{"AR(1) 0.9, 15%", correlated(0.9, 0.15), 90, false, "", ""},
	{"8 trials in a row share 5%", days, 90, false, "", ""},
	{"3 trials in 10 carry a third less", slowMode, 90, false, "54.4", "64.8"},
	{"skewed, 8%", skewed, 90, false, "73.6", "71.2"},
	{"machines slow by 2% from trial to trial", growing(-0.02), 90, true, "0.0", "56.0"},
	{"by 1%", growing(-0.01), 90, true, "", ""},
	{"by 0.5%", growing(-0.005), 90, true, "", ""},
	{"they grow faster by 2%", growing(0.02), 90, true, "", ""},
}

// capacities measures how often the interval of a search holds the capacity.
func capacities(scale float64) (rates []rate) {
	for _, set := range []struct {
		precision float64
		most      int
	}{{0.05, 60}, {0.1, 30}} {
		for _, w := range searchWorlds {
			rng := rand.New(rand.NewPCG(40, 1))
			held := rate{review: w.review5, least: w.least}
			if set.precision > 0.05 {
				held.review = w.review
			}
			trials, found, trending, width := 0, 0, 0, 0.0
			for range experiments(scale, 500) {
				c := math.Exp(math.Log(150) + rng.Float64()*math.Log(2000.0/150))
				s := capacity.Search{Low: 100, High: 3000, Precision: set.precision, MaxTrials: set.most}
				state, n := search(s, rng, w.world, c)
				held.see(state.From <= c && c <= state.To || w.trend && state.Trend != 0)
				trials += n
				from, to := max(state.From, s.Low), min(state.To, s.High)
				width += (to - from) / (to + from)
				if state.Outcome == capacity.Found {
					found++
				}
				if state.Trend != 0 {
					trending++
				}
			}
			of := float64(held.of)
			held.what = fmt.Sprintf("%s, precision %.0f%%: the interval holds the capacity (%.1f trials, ± %.1f%%, Found in %.0f%%, a trend is said in %.0f%%)", w.name, 100*set.precision,
				float64(trials)/of, 100*width/of, 100*float64(found)/of, 100*float64(trending)/of)
			rates = append(rates, held)
		}
	}
	return rates
}

// search runs one search to its end.
func search(s capacity.Search, rng *rand.Rand, world trialWorld, c float64) (capacity.State, int) {
	p, err := s.Begin()
	if err != nil {
		panic(err) // the searches above are valid
	}
	var own float64
	loads := s.Loads()
	state, n := p.State(), 0
	for ; state.Outcome == capacity.Searching; n++ {
		load := float64(loads[state.Next])
		state = p.Add(capacity.Trial{Load: load, Met: world(rng, &own, load, c, n)})
	}
	return state, n
}
