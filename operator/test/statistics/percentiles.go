package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/experiment/capacity"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// percentiles measures how often a p99 below a bound is claimed although that of all requests is
// above it, because the slowest requests timed out. Latencies are log-normal with a median of 5 ms
// and s = 1.
func percentiles(scale float64) (rates []rate) {
	const requests, n = 5_000, 5
	latencies := distuv.LogNormal{Mu: math.Log(5), Sigma: 1}
	for _, world := range []struct{ failed, worse float64 }{{0, 0}, {0.001, 4}, {0.005, 28}, {0.009, 114}, {0.0099, 302}} {
		rng := rand.New(rand.NewPCG(44, uint64(1e6*world.failed)))
		ofCommitted, ofAll := latencies.Quantile(0.99), latencies.Quantile(0.99/(1-world.failed))
		bound := (ofCommitted + 2*ofAll) / 3
		if world.failed == 0 {
			bound = 0.99 * ofAll
		}
		review := ""
		if world.failed == 0.009 {
			review = "100"
		}
		what := fmt.Sprintf("%.2g%% of requests time out, so that the p99 of all is %.0f%% more: ", 100*world.failed, 100*(ofAll/ofCommitted-1))
		wrong := rate{what: what + fmt.Sprintf("`p99 < %.0f ms`, which is false, is Reproduced", bound), review: review, most: 5}
		met := rate{what: what + "an objective at 1.2 times the p99 of the committed is met", review: review, most: 5}
		e := grid([]int{5}, "a")
		for range experiments(scale, 200) {
			var lines []results.TrialLine
			for k := range n {
				s := trial(rng, latencies, requests, world.failed)
				lines = append(lines, results.TrialLine{Number: int32(k), Coordinates: e.points[0].Coordinates, Repetition: int32(k), Outcome: stats.Succeeded,
					Committed: s.Committed, Timeouts: s.Timeouts, Throughput: 100, MeanMillis: s.MeanMillis, P99Millis: s.P99Millis, P999Millis: s.P999Millis, OfAll: s.OfAll})
				m := capacity.Measured{Committed: s.Committed, Failed: s.Timeouts, Mean: 1, P50: 1, P90: 1, P99: duration(s.P99Millis), P999: duration(s.P999Millis)}
				if s.OfAll != nil {
					m.OfAll = &capacity.Percentiles{P99: duration(s.OfAll.P99Millis), P999: duration(s.OfAll.P999Millis)}
				}
				ok, err := capacity.Objective{P99: duration(1.2 * ofCommitted)}.Met(m)
				met.see(ok && err == nil)
			}
			wrong.see(reproduced(e.judge(comparison(fmt.Sprintf("p99_latency() < %.6fms", bound)), lines)))
		}
		rates = append(rates, wrong)
		if ofAll > 2*ofCommitted {
			rates = append(rates, met)
		}
	}
	return rates
}

func duration(millis float64) time.Duration { return time.Duration(millis * float64(time.Millisecond)) }

// trial records the latencies of a trial's requests, of which a share times out.
func trial(rng *rand.Rand, latencies distuv.LogNormal, requests int, failed float64) results.Summary {
	h := results.NewHistogram()
	c := results.Counters{}
	for range requests {
		if rng.Float64() < failed {
			c.Timeouts++
			continue
		}
		h.Record(duration(latencies.Quantile(rng.Float64())))
		c.Committed++
	}
	return results.Summarize(c, h, time.Minute)
}
