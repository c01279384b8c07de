package main

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// failures measures how often the interval of a rate holds the rate, and how often a false bound
// just below it is Reproduced. Requests fail in bursts: the rate of a trial has a gamma
// distribution.
func failures(scale float64) (rates []rate) {
	const requests = 2000
	e := grid([]int{5}, "a")
	for _, world := range []struct {
		rate, deviation float64
		review          []string // n = 3, 5, 10
		least           float64
	}{
		{0.001, 0, []string{"1.7", "1.2", "2.8"}, 93},
		{0.001, 0.5, []string{"3.8", "3.2", "5.3"}, 93},
		{0.001, 2, []string{"33.7", "26.7", "19.0"}, 93},
		{0.01, 0, []string{"2.3", "2.8", "3.0"}, 93},
		{0.01, 0.5, []string{"4.3", "5.5", "5.2"}, 93},
		{0.01, 2, []string{"30.2", "24.7", "20.3"}, 93},
		{0.1, 0, []string{"1.5", "3.2", "2.2"}, 93},
		{0.1, 0.5, []string{"4.5", "6.8", "7.8"}, 93},
		{0.1, 2, []string{"30.8", "23.7", "18.5"}, 93},
	} {
		for i, n := range []int{3, 5, 10} {
			rng := rand.New(rand.NewPCG(16, uint64(n)))
			what := fmt.Sprintf("%g%% of requests fail, trials deviate by %.0f%%, n=%d: ", 100*world.rate, 100*world.deviation, n)
			held := rate{what: what + "the interval holds it", least: world.least}
			wrong := rate{what: what + "`rate < truth` is Reproduced", review: world.review[i], most: 5}
			for range experiments(scale, 600) {
				var lines []results.TrialLine
				for k := range n {
					p := world.rate
					if d := world.deviation; d > 0 {
						p = distuv.Gamma{Alpha: 1 / (d * d), Beta: 1 / (d * d * p), Src: rng}.Rand()
					}
					count := min(int64(distuv.Poisson{Lambda: p*requests + 1e-9, Src: rng}.Rand()), requests)
					lines = append(lines, results.TrialLine{Number: int32(k), Coordinates: e.points[0].Coordinates, Repetition: int32(k), Outcome: stats.Succeeded,
						Committed: requests - count, Errors: count, Throughput: 100, MeanMillis: 1})
				}
				r := e.judge(quantity("error_rate(clients=5)", world.rate, "1%"), lines)
				held.see(covers(r, world.rate))
				wrong.see(reproduced(e.judge(comparison(fmt.Sprintf("error_rate(clients=5) < %g", 0.999*world.rate)), lines)))
			}
			rates = append(rates, held, wrong)
		}
	}
	return rates
}
