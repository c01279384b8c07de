package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"assay.dev/assay/operator/internal/capacity"
)

// trialWorld says whether trial i of a search at a load meets the objective, if the capacity is c.
// state is one number of the search's own.
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

// correlated trials deviate by 5% together.
func correlated(rng *rand.Rand, state *float64, load, c float64, i int) bool {
	if i == 0 {
		*state = 0.05 * rng.NormFloat64()
	} else {
		*state = 0.9**state + 0.05*math.Sqrt(1-0.81)*rng.NormFloat64()
	}
	return math.Log(c/load)+*state+0.01*rng.NormFloat64() > 0
}

// slowMode: three trials in ten carry a third less.
func slowMode(rng *rand.Rand, _ *float64, load, c float64, _ int) bool {
	if rng.Float64() < 0.3 {
		c /= 1.5
	}
	return math.Log(c/load)+0.02*rng.NormFloat64() > 0
}

// slowing machines carry 2% less from trial to trial. The capacity is that of the first.
func slowing(rng *rand.Rand, _ *float64, load, c float64, i int) bool {
	return math.Log(c/load)-0.02*float64(i)+0.02*rng.NormFloat64() > 0
}

func skewed(rng *rand.Rand, _ *float64, load, c float64, _ int) bool {
	return math.Log(c/load)-0.08*(-math.Log(-math.Log(rng.Float64()))-0.36651) > 0
}

// capacities: how often the interval of a search holds the capacity.
func capacities(scale float64) (rates []rate) {
	for _, set := range []struct {
		precision float64
		most      int
		review    []string
	}{
		{0.05, 60, []string{"99.8", "95.2", "88.0", "75.8", "66.0", "52.6", "22.8", "93.2", "88.4", "74.0", "66.0", "54.4", "73.6", "0.0"}},
		{0.1, 30, []string{"99.6", "95.4", "87.4", "77.4", "68.6", "50.0", "32.0", "90.8", "78.4", "58.8", "87.6", "64.8", "71.2", "56.0"}},
	} {
		for i, w := range []struct {
			name  string
			world trialWorld
			least float64
		}{
			{"deviation 2%", deviating(0.02), 93}, {"4%", deviating(0.04), 93}, {"6%", deviating(0.06), 93}, {"8%", deviating(0.08), 93}, {"10%", deviating(0.1), 90},
			{"15%", deviating(0.15), 90}, {"30%", deviating(0.3), 90},
			{"1 trial in 20 fails at any load", lapsing(0.05), 90}, {"1 in 10", lapsing(0.1), 90}, {"1 in 5", lapsing(0.2), 90},
			{"trials depend on each other, AR(1) 0.9, 5%", correlated, 0}, {"3 trials in 10 carry a third less", slowMode, 90}, {"skewed, 8%", skewed, 90},
			{"machines slow by 2% from trial to trial", slowing, 0},
		} {
			rng := rand.New(rand.NewPCG(40, 1))
			held := rate{review: set.review[i], least: w.least}
			trials, found := 0, 0
			for range experiments(scale, 500) {
				c := math.Exp(math.Log(150) + rng.Float64()*math.Log(2000.0/150))
				state, n := search(capacity.Search{Low: 100, High: 3000, Precision: set.precision, MaxTrials: set.most}, rng, w.world, c)
				held.see(state.From <= c && c <= state.To)
				trials += n
				if state.Outcome == capacity.Found {
					found++
				}
			}
			held.what = fmt.Sprintf("%s, precision %.0f%%: the interval holds the capacity (%.1f trials, Found in %.0f%%)", w.name, 100*set.precision,
				float64(trials)/float64(held.of), 100*float64(found)/float64(held.of))
			rates = append(rates, held)
		}
	}
	return rates
}

// search runs one to its end.
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
