package main

import (
	"math"
	"math/rand/v2"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// bins draws a trial's throughput in bins of 100 ms, as a share of its mean.
type bins func(rng *rand.Rand, n int) []float64

func autoregressive(phi, deviation float64) bins {
	return func(rng *rand.Rand, n int) []float64 {
		xs := make([]float64, n)
		e := deviation * rng.NormFloat64()
		for i := range xs {
			xs[i] = math.Max(0, 1+e)
			e = phi*e + deviation*math.Sqrt(1-phi*phi)*rng.NormFloat64()
		}
		return xs
	}
}

// pausing stops for 300 ms every 10 s.
func pausing(rng *rand.Rand, n int) []float64 {
	xs := autoregressive(0, 0.05)(rng, n)
	offset := rng.IntN(100)
	for i := range xs {
		if (i+offset)%100 < 3 {
			xs[i] = 0
		}
	}
	return xs
}

// recoveries measures the verdicts of claims about dips without a fault, and about a dip by a
// fault. That dip takes half of the throughput for 3 s, 8 s after the start of a window of 20 s.
func recoveries(scale float64) (rates []rate) {
	for _, world := range []struct {
		name         string
		bins         bins
		deep, late   string
		leastOutages float64
	}{
		{"bins are independent, 10%", autoregressive(0, 0.1), "0.0", "0.0", 90},
		{"AR(1) 0.8, 10%", autoregressive(0.8, 0.1), "0.4", "0.0", 0},
		{"AR(1) 0.95, 10%", autoregressive(0.95, 0.1), "1.6", "0.4", 0},
		{"a pause of 300 ms every 10 s", pausing, "99.5", "24.6", 0},
	} {
		rng := rand.New(rand.NewPCG(17, 1))
		deep := rate{what: world.name + ", a fault that does nothing: `dip > 0.1` is Reproduced", review: world.deep, most: 5}
		late := rate{what: world.name + ", a fault that does nothing: `time_to_90 > 1s` is Reproduced", review: world.late, most: 5}
		seen := rate{what: world.name + ", an outage of half the throughput for 3 s: `dip > 0.1` is Reproduced", least: world.leastOutages}
		e := grid([]int{5}, "a")
		for range experiments(scale, 600) {
			var nothing, outage []results.TrialLine
			for k := range 3 {
				xs := world.bins(rng, 200)
				nothing = append(nothing, recovered(e, k, xs))
				for i := 80; i < 110; i++ {
					xs[i] /= 2
				}
				outage = append(outage, recovered(e, k, xs))
			}
			deep.see(reproduced(e.judge(comparison("dip(fault='f') > 0.1"), nothing)))
			late.see(reproduced(e.judge(comparison("time_to_90(fault='f') > 1s"), nothing)))
			seen.see(reproduced(e.judge(comparison("dip(fault='f') > 0.1"), outage)))
		}
		rates = append(rates, deep, late, seen)
	}
	return rates
}

// recovered is a trial with these bins, of 1000 tx/s on average, and a fault after 8 s.
func recovered(e experiment, round int, xs []float64) results.TrialLine {
	t := results.Timeline{IntervalMillis: 100}
	for _, x := range xs {
		t.Committed = append(t.Committed, int64(math.Round(100*x)))
	}
	r, err := stats.Recover(t, 8000, stats.RecoveryRule{ToMillis: 20_000})
	if err != nil {
		panic(err) // the timelines above have data before the fault and after it
	}
	return results.TrialLine{
		Number: int32(round), Coordinates: e.points[0].Coordinates, Repetition: int32(round), Outcome: stats.Succeeded, Committed: many, Throughput: 1000, MeanMillis: 1,
		Recovery: []results.Recovery{{
			Fault: "f", Time: 1, Dipped: r.Dipped, LeastDip: r.LeastDip, ResolvedMillis: r.ResolvedMillis, DetectMillis: r.DetectMillis,
			Depth: r.Depth, Recovered: r.Recovered, RecoverMillis: r.RecoverMillis, LostTransactions: r.Lost,
		}},
	}
}
