package main

import (
	"math"
	"math/rand/v2"
	"time"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// windows measures how often a trial's window of 20 s is judged not steady, in bins of 100 ms whose
// throughput deviates by 10%. It also measures whether the verdict about that window says so.
func windows(scale float64) (rates []rate) {
	steady := func(float64) float64 { return 1 }
	warmUp := func(seconds float64) func(float64) float64 {
		return func(t float64) float64 { return 1 - 0.5*math.Exp(-t/seconds) }
	}
	falls := func(share float64) func(float64) float64 {
		return func(t float64) float64 { return 1 - share*t/20 }
	}
	for _, world := range []struct {
		name        string
		bins        bins
		level       func(seconds float64) float64
		review      string
		least, most float64
	}{
		{"independent bins", autoregressive(0, 0.1), steady, "0.0", 0, 5},
		{"independent bins, deviation 30%", autoregressive(0, 0.3), steady, "", 0, 5},
		{"AR(1) 0.8", autoregressive(0.8, 0.1), steady, "7.9", 0, 5},
		{"AR(1) 0.95", autoregressive(0.95, 0.1), steady, "38.2", 0, 0},
		{"AR(1) 0.95, deviation 20%", autoregressive(0.95, 0.2), steady, "69.4", 0, 0},
		{"warming up from half with 1 s: -2.6%", autoregressive(0, 0.1), warmUp(1), "0.1", 0, 0},
		{"warming up from half with 2 s: -5.1%", autoregressive(0, 0.1), warmUp(2), "28.4", 80, 0},
		{"warming up from half with 5 s: -12.4%", autoregressive(0, 0.1), warmUp(5), "100.0", 80, 0},
		{"falling by 10%: -5%", autoregressive(0, 0.1), falls(0.1), "0.2", 80, 0},
		{"falling by 20%: -10%", autoregressive(0, 0.1), falls(0.2), "56.0", 80, 0},
		{"falling by 1%", autoregressive(0, 0.1), falls(0.01), "", 0, 5},
		{"pausing for 300 ms every 10 s", pausing, steady, "", 0, 0},
	} {
		rng := rand.New(rand.NewPCG(19, 1))
		e := grid([]int{5}, "a")
		seen := rate{what: world.name + ": the window is not steady", review: world.review, least: world.least, most: world.most}
		said := rate{what: world.name + ": a verdict of 3 trials says it if one window is not, and else not", least: 100}
		for range experiments(scale, 1000) {
			lines := e.lines(interleaved(rng, 1, 3), func(slot) float64 { return 1 })
			some := false
			for k := range lines {
				w := stats.CheckWindow(windowOf(world.bins(rng, 200), world.level))
				lines[k].Window = &w
				steady, known := w.Steady()
				seen.see(known && !steady)
				some = some || known && !steady
			}
			told := false
			for _, c := range e.judge(comparison("throughput(clients=5) > 900"), lines).Caveats {
				told = told || c.Kind == "NotSteady"
			}
			said.see(told == some)
		}
		rates = append(rates, seen)
		if world.name == "falling by 10%: -5%" {
			rates = append(rates, said)
		}
	}
	return rates
}

// windowOf is a trial with these bins of throughput, of 1000 tx/s on average, at a level that may
// change.
func windowOf(shares []float64, level func(seconds float64) float64) results.Trial {
	t := results.Timeline{IntervalMillis: 100}
	for i, x := range shares {
		t.Committed = append(t.Committed, int64(math.Round(100*x*level(float64(i)/10))))
		t.LatencySumMicros = append(t.LatencySumMicros, 5000*t.Committed[i])
	}
	return results.Trial{Outcome: stats.Succeeded, Timeline: &t, MeasureNanos: (time.Duration(len(shares)) * 100 * time.Millisecond).Nanoseconds()}
}
