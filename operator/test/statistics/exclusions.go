package main

import (
	"fmt"
	"math/rand/v2"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// exclusions: two equal variants whose trials are slower by a disturbance, and do not count beyond
// a tolerance that hits them unlike. An attempt that does not count is repeated.
func exclusions(scale float64) (rates []rate) {
	e := grid([]int{5, 20, 50}, "a", "b")
	for _, world := range []struct {
		name   string
		limits map[string]float64
		review []string
	}{
		{"no tolerance", map[string]float64{"a": 9, "b": 9}, []string{"", ""}},
		{"one tolerance for both", map[string]float64{"a": 0.05, "b": 0.05}, []string{"", ""}},
		{"a shows disturbances twice as much", map[string]float64{"a": 0.025, "b": 0.05}, []string{"13", "25"}},
		{"only a is left out", map[string]float64{"a": 0.025, "b": 9}, []string{"23", "56"}},
	} {
		for i, n := range []int{5, 10} {
			rng := rand.New(rand.NewPCG(14, uint64(n)))
			wrong := rate{what: fmt.Sprintf("%s, n=%d: `a > b` of equals is Reproduced", world.name, n), review: world.review[i], most: 5}
			for range experiments(scale, 800) {
				var lines []results.TrialLine
				for _, s := range interleaved(rng, len(e.points), n) {
					at := e.points[s.point].Coordinates
					for attempt := int32(0); ; attempt++ {
						disturbance := 0.04 * rng.ExpFloat64()
						line := results.TrialLine{Number: int32(len(lines)), PointIndex: int32(s.point), Coordinates: at, Repetition: int32(s.round), Attempt: attempt,
							Outcome: stats.Succeeded, Committed: many, Throughput: 1000 * (1 - disturbance) * (1 + 0.01*rng.NormFloat64()), MeanMillis: 1}
						if disturbance > world.limits[at["variant"]] && attempt < 20 {
							line.Outcome, line.Reason = stats.Invalid, v1alpha1.ReasonProcessorContended
							lines = append(lines, line)
							continue
						}
						lines = append(lines, line)
						break
					}
				}
				wrong.see(reproduced(e.judge(comparison("throughput(variant='a', clients=20) > throughput(variant='b', clients=20)"), lines)))
			}
			rates = append(rates, wrong)
		}
	}
	return rates
}
