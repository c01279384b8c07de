package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// deviates draws a trial's deviation, as a factor of its point's mean. The factor has a mean of 1.
type deviates func(rng *rand.Rand) float64

func normally(deviation float64) deviates {
	return func(rng *rand.Rand) float64 { return 1 + deviation*rng.NormFloat64() }
}

// slowIn makes a share of the trials slower by a third.
func slowIn(share float64) deviates {
	return func(rng *rand.Rand) float64 {
		x := 1 + 0.02*rng.NormFloat64()
		if rng.Float64() < share {
			x /= 1.5
		}
		return x / (1 - share + share/1.5)
	}
}

// falling by 30% from the first trial to the last.
func falling(_ *rand.Rand, slots []slot) []float64 {
	xs := make([]float64, len(slots))
	for i := range xs {
		xs[i] = 0.15 - 0.3*float64(i)/float64(len(slots)-1)
	}
	return xs
}

// comparisons counts equal variants that are judged different, and intervals of their quotient that
// hold 1. Its worlds violate the assumptions of the formulas.
func comparisons(scale float64) (rates []rate) {
	for _, world := range []struct {
		name    string
		own     deviates
		session session
		// review: Reproduced and NotReproduced at two points, and coverage of the quotient at six,
		// for n = 3, 5, 10.
		yes, no, quotient []string
	}{
		{"normal 5%", normally(0.05), steadySession, []string{"1.6", "1.9", "2.3"}, []string{"2.2", "2.4", "2.5"}, []string{"93", "93", "97"}},
		{"log-normal 0.5", func(rng *rand.Rand) float64 { return math.Exp(0.5*rng.NormFloat64() - 0.125) }, steadySession,
			[]string{"1.1", "1.7", "2.1"}, []string{"2.0", "1.8", "2.4"}, []string{"92", "91", "95"}},
		{"5% x t(2)", func(rng *rand.Rand) float64 {
			return math.Max(0.05, 1+0.05*distuv.StudentsT{Sigma: 1, Nu: 2, Src: rng}.Rand())
		}, steadySession,
			[]string{"0.9", "1.7", "1.5"}, []string{"1.2", "1.3", "1.5"}, []string{"98", "99", "97"}},
		{"slow mode 1 in 10", slowIn(0.1), steadySession, []string{"0.9", "0.9", "0.7"}, []string{"1.1", "0.9", "0.9"}, []string{"98", "100", "98"}},
		{"slow mode 3 in 10", slowIn(0.3), steadySession, []string{"0.9", "1.2", "2.1"}, []string{"1.2", "0.8", "2.0"}, []string{"98", "97", "96"}},
		{"rounds AR(1) 0.9, 5%", normally(0.02), dependent(0.9, true), []string{"0.6", "2.2", "3.0"}, []string{"0.9", "2.5", "2.2"}, []string{"94", "94", "95"}},
		{"trials AR(1) 0.95, 5%", normally(0.01), dependent(0.95, false), []string{"0.9", "2.2", "2.7"}, []string{"1.0", "2.0", "2.5"}, []string{"96", "94", "95"}},
		{"drift of 30%", normally(0.02), falling, []string{"0.0", "2.8", "3.1"}, []string{"0.0", "2.5", "2.6"}, []string{"97", "96", "97"}},
		{"slow spells of 8 trials", normally(0.02), spells, []string{"1.2", "2.0", "2.3"}, []string{"1.4", "2.4", "1.7"}, []string{"96", "98", "99"}},
	} {
		for i, n := range []int{3, 5, 10} {
			rng := rand.New(rand.NewPCG(31, uint64(n)))
			what := fmt.Sprintf("%s, n=%d: ", world.name, n)
			yes := rate{what: what + "`a < b` of equals is Reproduced", review: world.yes[i], most: 4}
			no := rate{what: what + "it is NotReproduced", review: world.no[i], most: 4}
			held := rate{what: what + "the interval of the quotient holds 1, 6 points", review: world.quotient[i], least: 90}
			draw := func(e experiment) func(slot) float64 {
				common := world.session(rng, interleaved(rng, len(e.points), n))
				return func(s slot) float64 { return world.own(rng) + common[s.before] }
			}
			two, six := grid([]int{20}, "a", "b"), grid([]int{5, 20, 50}, "a", "b")
			for range experiments(scale, 1400) {
				r := two.judge(comparison("throughput(variant='a') < throughput(variant='b')"), two.lines(interleaved(rng, 2, n), draw(two)))
				yes.see(reproduced(r))
				no.see(refuted(r))
			}
			for range experiments(scale, 400) {
				held.see(covers(six.judge(quantity("throughput(variant='a', clients=20) / throughput(variant='b', clients=20)", 1, "10%"), six.lines(interleaved(rng, 6, n), draw(six))), 1))
			}
			rates = append(rates, yes, no, held)
		}
	}
	return rates
}
