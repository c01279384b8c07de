package main

import (
	"fmt"
	"math/rand/v2"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// disturbance draws how much slower a trial is, as a share.
type disturbance func(rng *rand.Rand) float64

// often disturbs every trial, by 4% on average; seldom one in twenty, by 30%.
func often(rng *rand.Rand) float64 { return 0.04 * rng.ExpFloat64() }

func seldom(rng *rand.Rand) float64 {
	if rng.Float64() < 0.05 {
		return 0.3
	}
	return 0
}

// excluding is a world in which trials beyond a limit of disturbance do not count. An attempt that
// does not count is repeated.
type excluding struct {
	disturbs disturbance
	// limits by variant, and how much faster the variant a is, as shares.
	limits map[string]float64
	faster float64
}

// lines are all attempts of an experiment.
func (w excluding) lines(rng *rand.Rand, e experiment, n int) (lines []results.TrialLine) {
	for _, s := range interleaved(rng, len(e.points), n) {
		at := e.points[s.point].Coordinates
		mean := 1000.0
		if at["variant"] == "a" {
			mean *= 1 + w.faster
		}
		for attempt := int32(0); ; attempt++ {
			d := w.disturbs(rng)
			line := results.TrialLine{Number: int32(len(lines)), PointIndex: int32(s.point), Coordinates: at, Repetition: int32(s.round), Attempt: attempt,
				Outcome: stats.Succeeded, Committed: many, Throughput: mean * (1 - d) * (1 + 0.01*rng.NormFloat64()), MeanMillis: 1}
			excluded := d > w.limits[at["variant"]] && attempt < 20
			if excluded {
				line.Outcome, line.Reason = stats.Invalid, v1alpha1.ReasonProcessorContended
			}
			lines = append(lines, line)
			if !excluded {
				break
			}
		}
	}
	return lines
}

// exclusions compares two variants whose trials a disturbance slows down. Trials beyond a tolerance
// do not count. The tolerance may exclude more trials of one variant than of the other.
func exclusions(scale float64) (rates []rate) {
	e := grid([]int{5, 20, 50}, "a", "b")
	both, twice, one := map[string]float64{"a": 0.05, "b": 0.05}, map[string]float64{"a": 0.025, "b": 0.05}, map[string]float64{"a": 0.025, "b": 9}
	for _, world := range []struct {
		name string
		excluding
		review []string // n = 5 and 10
	}{
		{"no tolerance", excluding{often, map[string]float64{"a": 9, "b": 9}, 0}, []string{"2.2", "1.5"}},
		{"one tolerance for both", excluding{often, both, 0}, []string{"2.3", "2.3"}},
		{"a shows disturbances twice as much", excluding{often, twice, 0}, []string{"13.0", "24.5"}},
		{"only a is left out", excluding{often, one, 0}, []string{"22.7", "56.2"}},
		{"only a is left out, in 8%", excluding{often, map[string]float64{"a": 0.1, "b": 9}, 0}, nil},
		{"one tolerance for both, a is 2% faster", excluding{often, both, 0.02}, nil},
		{"a shows disturbances twice as much, a is 4% faster", excluding{often, twice, 0.04}, nil},
		{"wild disturbances in 5%, left out, a is 2% faster", excluding{seldom, both, 0.02}, nil},
	} {
		for i, n := range []int{5, 10, 20} {
			rng := rand.New(rand.NewPCG(14, uint64(n)))
			found := rate{what: fmt.Sprintf("%s, n=%d: `a > b` is Reproduced", world.name, n)}
			if world.faster == 0 {
				found.most = 5
			}
			if i < len(world.review) {
				found.review = world.review[i]
			}
			for range experiments(scale, 800) {
				found.see(reproduced(e.judge(comparison("throughput(variant='a', clients=20) > throughput(variant='b', clients=20)"), world.lines(rng, e, n))))
			}
			rates = append(rates, found)
		}
	}
	return rates
}
