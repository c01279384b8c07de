package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// lookAt runs an experiment until its claims are decided or hopeless. It returns the number of
// rounds, and the outcome of the claims.
func lookAt(list []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, looks stats.Looks) (rounds int, judged []results.ClaimResult) {
	for rounds = looks.First; ; rounds++ {
		judged = claims.EvaluateLook(list, points, lines, looks, rounds)
		if rounds >= looks.Last || len(claims.Open(judged, nil)) == 0 {
			return rounds, judged
		}
	}
}

// stopping measures how often an experiment that continues until its claim is decided decides
// wrongly. It also measures how often the interval at which it stops misses the truth.
func stopping(scale float64) (rates []rate) {
	for _, looks := range []stats.Looks{{First: 3, Last: 10}, {First: 5, Last: 20}} {
		for _, w := range stoppingWorlds {
			for _, e := range []experiment{grid([]int{5}, "a", "b"), grid([]int{5, 20, 50}, "a", "b")} {
				what := fmt.Sprintf("%s, %d points, %d to %d rounds: ", w.name, len(e.points), looks.First, looks.Last)
				wrong := rate{what: what + "equals are decided", most: w.most}
				missed := rate{what: what + "the interval at which it stops misses the quotient", most: w.most}
				rng := rand.New(rand.NewPCG(15, uint64(looks.Last)))
				compared := comparison("throughput(variant='a', clients=5) > throughput(variant='b', clients=5)")
				quotient := quantity("throughput(variant='a', clients=5) / throughput(variant='b', clients=5)", 1.02, "1.9%")
				for range experiments(scale, 400) {
					lines := e.lines(interleaved(rng, len(e.points), looks.Last), w.factors(rng))
					_, judged := lookAt([]v1alpha1.Claim{compared}, e.points, lines, looks)
					wrong.see(judged[0].Verdict != string(v1alpha1.VerdictInconclusive))
					_, judged = lookAt([]v1alpha1.Claim{quotient}, e.points, lines, looks)
					missed.see(!covers(judged[0], 1))
				}
				rates = append(rates, wrong, missed)
			}
		}
	}
	return rates
}

// stoppingWorlds are the distributions of the trials' deviations.
var stoppingWorlds = []struct {
	name    string
	factors func(*rand.Rand) func(slot) float64
	most    float64
}{
	{"normal, 5%", func(rng *rand.Rand) func(slot) float64 {
		return func(slot) float64 { return 1 + 0.05*rng.NormFloat64() }
	}, 5},
	{"log-normal, σ = 0.5", func(rng *rand.Rand) func(slot) float64 {
		return func(slot) float64 { return math.Exp(0.5 * rng.NormFloat64()) }
	}, 5},
	{"one trial in ten 50% slower", func(rng *rand.Rand) func(slot) float64 {
		return func(slot) float64 {
			if rng.Float64() < 0.1 {
				return 0.5 * (1 + 0.02*rng.NormFloat64())
			}
			return 1 + 0.02*rng.NormFloat64()
		}
	}, 5},
	{"rounds depend on each other, AR(1) 0.9", func(rng *rand.Rand) func(slot) float64 {
		round, effect := -1, 0.05*rng.NormFloat64()
		return func(s slot) float64 {
			if s.round != round {
				round, effect = s.round, 0.9*effect+0.05*math.Sqrt(1-0.81)*rng.NormFloat64()
			}
			return 1 + effect + 0.02*rng.NormFloat64()
		}
	}, 5},
	{"the machines drift by 30%", func(rng *rand.Rand) func(slot) float64 {
		return func(s slot) float64 { return (1 - 0.3*float64(s.before)/120) * (1 + 0.03*rng.NormFloat64()) }
	}, 5},
}
