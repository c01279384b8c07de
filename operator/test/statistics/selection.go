package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
)

// selection measures how often the interval of the best of eight points holds its mean, and how
// often a false claim at its edge is Reproduced.
func selection(scale float64) (rates []rate) {
	clients := []int{1, 2, 4, 8, 16, 24, 32, 48}
	for _, curve := range []struct {
		name  string
		means []float64
		// review: coverage and false claims, at a deviation of 2% and 3, 5, 10 trials.
		covers, wrong []string
	}{
		{"8 equal points", []float64{3000, 3000, 3000, 3000, 3000, 3000, 3000, 3000}, []string{"79.2", "83.3", "82.4"}, []string{"20.8", "16.7", "17.6"}},
		{"plateau of 4 of 8", []float64{600, 1400, 2200, 2800, 3000, 3000, 3000, 3000}, []string{"88.1", "91.2", "90.3"}, []string{"11.9", "8.8", "9.7"}},
		{"clear peak", []float64{600, 1400, 2200, 2700, 3000, 2700, 2300, 2000}, []string{"92.8", "94.5", "95.2"}, []string{"3.5", "2.5", "2.1"}},
	} {
		e := grid(clients, "a")
		e.means = curve.means
		truth := slices.Max(curve.means)
		claim := quantity("max_throughput()", truth/0.95, "5%")
		for i, n := range []int{3, 5, 10} {
			rng := rand.New(rand.NewPCG(9, uint64(n)))
			what := fmt.Sprintf("max_throughput of %s, deviation 2%%, n=%d: ", curve.name, n)
			held := rate{what: what + "the interval holds it", review: curve.covers[i], least: 93}
			wrong := rate{what: what + "a false claim is Reproduced", review: curve.wrong[i], most: 4}
			for range experiments(scale, 600) {
				r := e.judge(claim, e.lines(interleaved(rng, len(e.points), n), func(slot) float64 { return 1 + 0.02*rng.NormFloat64() }))
				held.see(covers(r, truth))
				wrong.see(reproduced(r))
			}
			rates = append(rates, held, wrong)
		}
	}
	return append(rates, otherChoices(scale)...)
}

// otherChoices are choices by latency, of the best of many against one, and of a knee.
func otherChoices(scale float64) (rates []rate) {
	e := grid([]int{1, 2, 4, 8, 16, 24, 32, 48}, "a")
	least := quantity("min_latency()", 10/1.05, "5%")
	value := v1alpha1.NewValue(fmt.Sprintf("%.6fms", 10/1.05))
	least.Reported = &value
	for i, n := range []int{3, 5, 10} {
		rng := rand.New(rand.NewPCG(11, uint64(n)))
		wrong := rate{what: fmt.Sprintf("min_latency of 8 equal points, deviation 5%%, n=%d: a false claim is Reproduced", n), review: []string{"6.9", "13.9", "20.1"}[i], most: 4}
		over := rate{what: fmt.Sprintf("max of 8 equal points > one that is equal, n=%d: Reproduced", n), review: []string{"10.1", "12.3", "11.9"}[i], most: 4}
		for range experiments(scale, 600) {
			lines := e.lines(interleaved(rng, len(e.points), n), func(slot) float64 { return 1 + 0.05*rng.NormFloat64() })
			for i := range lines {
				lines[i].MeanMillis = 10 * (1 + 0.05*rng.NormFloat64())
			}
			wrong.see(reproduced(e.judge(least, lines)))
			over.see(reproduced(e.judge(comparison("max_throughput() > throughput(clients=48)"), lines)))
		}
		rates = append(rates, wrong, over)
	}
	return rates
}
