package claims_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Once, counters that a client does not report were read as a certain 0: an artifact with 17%
// aborts had an abort rate of 0.
func TestUnreportedCountersAreNotZero(t *testing.T) {
	ls := series(0, "a", []int{1, 10}, times(3, 100, 800), times(3, 10, 12))
	for i := range ls {
		ls[i].Unreported = []string{"aborted", "errors", "givenUp", "timeouts"}
	}
	for expr, want := range map[string]string{
		"abort_rate(clients=1) < 0.1":                               "trial 0 does not know its aborts",
		"abort_rate(clients=1) > 0.05":                              "trial 0 does not know its aborts",
		"error_rate(clients=1) < 0.01":                              "trial 0 does not know its errors and timeouts",
		"significantly_different(of='abort_rate', clients=[1, 10])": "trial 0 does not know its aborts",
		"throughput(clients=1) > 50 && abort_rate(clients=1) < 0.1": "trial 0 does not know its aborts",
	} {
		expect(t, judge(t, ls, expr, "", ""), v1alpha1.VerdictNotEvaluated, want)
	}
	expect(t, judge(t, ls, "throughput(clients=1) > 50", "", ""), v1alpha1.VerdictHolds)
	if _, ok := stats.Points(ls)[0].Metrics[stats.AbortRate]; ok {
		t.Error("a point has an abort rate that no trial reports")
	}
	// A trial that committed nothing has no latency. A trial in which no attempt ended has no rate.
	ls[0].Unreported, ls[0].Committed, ls[0].MeanMillis = nil, 0, 0
	expect(t, judge(t, ls, "mean_latency(clients=1) < 1s", "", ""), v1alpha1.VerdictNotEvaluated, "trial 0 committed nothing")
	expect(t, judge(t, ls, "abort_rate(clients=1) < 1", "", ""), v1alpha1.VerdictNotEvaluated, "trial 0 has no attempt that ended")
	if n := stats.Points(ls)[0].Metrics[stats.MeanLatency].N; n != 2 {
		t.Errorf("the mean latency is of %d trials, want the 2 that committed something", n)
	}
}

// Requests of an open loop that were never sent count as failed, and so do those without an answer.
// Once, only a counter that no claim read had them.
func TestFailuresCount(t *testing.T) {
	ls := series(0, "a", []int{1}, times(3, 100), times(3, 10))
	for i := range ls {
		ls[i].Committed, ls[i].P50Millis = 2000, 10
	}
	expect(t, judge(t, ls, "error_rate() < 0.01", "", ""), v1alpha1.VerdictHolds)
	expect(t, judge(t, ls, "p99_latency() < 100ms", "", ""), v1alpha1.VerdictHolds)
	for i := range ls {
		ls[i].Unsent = 1000 + int64(i)
	}
	expect(t, judge(t, ls, "error_rate()", "0.333", "20%"), v1alpha1.VerdictHolds)
	for i := range ls {
		ls[i].Unsent, ls[i].Timeouts = 0, 40
	}
	const words = "2% of 2040 requests failed, so that the 99th percentile of all requests is this or more"
	expect(t, judge(t, ls, "p99_latency() < 100ms", "", ""), v1alpha1.VerdictInconclusive, words)
	expect(t, judge(t, ls, "p99_latency() > 20ms", "", ""), v1alpha1.VerdictHolds, words)
	// These results do not have the percentile of all requests, and only bound it by percentiles of
	// committed ones. The median of all is the 51st percentile of the committed ones, which may lie
	// up to the 90th.
	for i := range ls {
		ls[i].P90Millis = 30
	}
	const bounded = "these results do not have the 50th percentile of all requests: it is this or more"
	expect(t, judge(t, ls, "p50_latency() < 20ms", "", ""), v1alpha1.VerdictInconclusive, bounded)
	expect(t, judge(t, ls, "p50_latency() < 40ms", "", ""), v1alpha1.VerdictHolds, bounded)
	for i := range ls {
		ls[i].OfAll = &results.Percentiles{P50Millis: 12}
	}
	expect(t, judge(t, ls, "p50_latency() < 20ms", "", ""), v1alpha1.VerdictHolds, "12")
}

// If 0.9% of requests time out, the p99 is the 99.9th percentile of the others, and that of the
// committed shows nothing.
func TestTimeoutsAreNotFast(t *testing.T) {
	ls := series(0, "a", []int{1}, times(3, 1000), times(3, 5))
	for i := range ls {
		ls[i].Committed, ls[i].Timeouts, ls[i].P99Millis, ls[i].P999Millis = 99_100, 900, 51+0.1*float64(i), 110
	}
	expect(t, judge(t, ls, "p99_latency() < 60ms", "", ""), v1alpha1.VerdictInconclusive, "0.9% of 100000 requests failed")
	for i := range ls {
		ls[i].OfAll = &results.Percentiles{P99Millis: 109 + float64(i)}
	}
	expect(t, judge(t, ls, "p99_latency() < 60ms", "", ""), v1alpha1.VerdictFails, "110")
}

// With few transactions, a percentile is really another one.
func TestPercentileNeedsTransactions(t *testing.T) {
	ls := series(0, "a", []int{1}, times(3, 100), times(3, 10))
	for i := range ls {
		ls[i].Committed, ls[i].P999Millis = 999, 50
	}
	expect(t, judge(t, ls, "p99_latency() < 100ms", "", ""), v1alpha1.VerdictNotEvaluated,
		"trial 0 committed 999 transactions; the 99th percentile needs 1000, so that 10 are slower")
	expect(t, judge(t, ls, "p999_latency() < 100ms", "", ""), v1alpha1.VerdictNotEvaluated, "the 99.9th percentile needs 10000")
	for i := range ls {
		ls[i].Committed, ls[i].P10Millis = 99, 5
	}
	expect(t, judge(t, ls, "p10_latency() < 100ms", "", ""), v1alpha1.VerdictNotEvaluated, "the 10th percentile needs 100, so that 10 are faster")
	for i := range ls {
		ls[i].Committed = 1000
	}
	expect(t, judge(t, ls, "p10_latency() < 6ms", "", ""), v1alpha1.VerdictHolds)
	expect(t, judge(t, ls, "p99_latency() < 100ms", "", ""), v1alpha1.VerdictHolds)
}

// Once, trials that ran one after the other were compared "by rounds", though there were no rounds.
func TestNoPairingWithoutInterleaving(t *testing.T) {
	ls := append(series(0, "a", []int{1}, times(5, 100), times(5, 10)), series(1, "b", []int{1}, times(5, 110), times(5, 9))...)
	const different, less = "significantly_different(of='throughput', variant=['a', 'b'])", "throughput(variant='a') < throughput(variant='b')"
	const drift = "did not run in turn, so that a drift of the machines counts as a difference"
	expect(t, judge(t, ls, different, "", ""), v1alpha1.VerdictHolds, "n=5, by rounds")
	for i := range ls { // a's trials, then b's
		ls[i].Number = int32(i)
	}
	for _, expr := range []string{different, less, "ratio(of='throughput', variant=['a', 'b']) < 1"} {
		expect(t, judge(t, ls, expr, "", ""), v1alpha1.VerdictHolds, drift)
	}
	expect(t, judge(t, ls, different, "", ""), v1alpha1.VerdictHolds, "not by rounds, since the variants did not run in turn")
	expect(t, judge(t, ls, "throughput(variant='a') > 50", "", ""), v1alpha1.VerdictHolds)
}

// Rounds of two sets of nodes run at once, so that their trials alternate. Each set has its rounds
// in turn, and the slower one changes no comparison. Trials on both sets are no round.
func TestRoundsOfSetsOfNodes(t *testing.T) {
	a, b := []float64{100, 71, 101, 70, 99, 69}, []float64{106, 75, 107, 74, 105, 73}
	ls := append(series(0, "a", []int{1}, [][]float64{a}, times(6, 10)), series(1, "b", []int{1}, [][]float64{b}, times(6, 9))...)
	const different = "significantly_different(of='throughput', variant=['a', 'b'])"
	for i := range ls {
		l := &ls[i]
		l.NodeSet = []string{"fast", "slow"}[l.Repetition%2]
		// Rounds 0 and 1 are trials 0 to 3, one of each set in turn, and so on.
		l.Number = l.Repetition/2*4 + l.PointIndex*2 + l.Repetition%2
	}
	expect(t, judge(t, ls, different, "", ""), v1alpha1.VerdictHolds, "n=6, by rounds")
	for i := range ls {
		ls[i].NodeSet = ""
	}
	expect(t, judge(t, ls, different, "", ""), v1alpha1.VerdictInconclusive, "did not run in turn")
	for i := range ls {
		ls[i].NodeSet = []string{"fast", "slow"}[ls[i].PointIndex]
	}
	expect(t, judge(t, ls, different, "", ""), v1alpha1.VerdictInconclusive, "did not run in turn")
}

// poisson is a timeline of 40 s with random transactions, perSecond on average. From 10 s on, the
// share depth of them is lost for some seconds.
func poisson(rng *rand.Rand, perSecond, depth, seconds float64) results.Timeline {
	t := results.NewTimeline(0, 400)
	for i := range t.Committed {
		mean := perSecond / 10
		if at := float64(i)/10 - 10; at >= 0 && at < seconds {
			mean *= 1 - depth
		}
		t.Committed[i] = int64(distuv.Poisson{Lambda: mean, Src: rng}.Rand())
	}
	return t
}

// Once, three trials of an outage that random arrivals hide counted as three certain recoveries in
// 0 ms. Up to 92% of false claims of a fast recovery were Holds. At most 5% may be, of each kind of
// outage; with 60 experiments of each, 8 are allowed, which 5% exceed in 0.3% of all draws.
func TestFalseClaimsOfRecovery(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 14))
	const experiments, allowed = 60, 8
	for _, perSecond := range []float64{50, 200, 1000} {
		for _, depth := range []float64{0.2, 0.3, 0.5} {
			for _, seconds := range []float64{1, 3, 5} {
				fast, deep := 0, 0
				for range experiments {
					var ls []results.TrialLine
					for k := range 3 {
						ls = append(ls, outage(t, int32(k), poisson(rng, perSecond, depth, seconds)))
					}
					points := stats.Points(ls)
					for i, r := range claims.Evaluate([]v1alpha1.Claim{
						{Expr: "time_to_90(fault='crash') < " + map[float64]string{1: "500ms", 3: "1500ms", 5: "2500ms"}[seconds]},
						{Expr: "dip(fault='crash') > " + map[float64]string{0.2: "0.35", 0.3: "0.5", 0.5: "0.7"}[depth]},
					}, points, ls) {
						if r.Verdict == string(v1alpha1.VerdictHolds) {
							fast, deep = fast+1-i, deep+i
						}
					}
				}
				if math.Max(float64(fast), float64(deep)) > allowed {
					t.Errorf("%g tx/s, %g%% for %g s: of %d experiments %d call a recovery fast that takes twice as long, %d a dip deep that is not",
						perSecond, 100*depth, seconds, experiments, fast, deep)
				}
			}
		}
	}
}

// outage is a trial with a fault at 10 s.
func outage(t *testing.T, number int32, timeline results.Timeline) results.TrialLine {
	t.Helper()
	r, err := stats.Recover(timeline, 10000, stats.RecoveryRule{ToMillis: 40000})
	if err != nil {
		t.Fatal(err)
	}
	return results.TrialLine{Number: number, Repetition: number, Outcome: stats.Succeeded, Throughput: r.Before, Committed: 1,
		Recovery: []results.Recovery{{Fault: "crash", Time: 1, Dipped: r.Dipped, DetectMillis: r.DetectMillis, Depth: r.Depth, Recovered: r.Recovered,
			RecoverMillis: r.RecoverMillis, LostTransactions: r.Lost, LeastDip: r.LeastDip, ResolvedMillis: r.ResolvedMillis}}}
}

// Once, three trials without an error, which do not vary, counted as certainty. With a rate of
// 1e-4, 55% of experiments had no error among 3 x 2,000 requests, and any claim of a lower rate was
// Holds. Now at most 2.5% are, with what the error of 4,000 draws adds to that.
func TestNoErrorIsNotNever(t *testing.T) {
	const experiments, requests, rate = 4000, 2000, 1e-4
	draw := distuv.Binomial{N: requests, P: rate, Src: rand.NewPCG(14, 13)}
	reproduced, none := 0, 0
	for range experiments {
		ls, all := series(0, "a", []int{1}, times(3, 100), times(3, 10)), int64(0)
		for i := range ls {
			ls[i].Errors = int64(draw.Rand())
			ls[i].Committed = requests - ls[i].Errors
			all += ls[i].Errors
		}
		if all == 0 {
			none++
		}
		if judge(t, ls, "error_rate() < 0.00009", "", "").Verdict == string(v1alpha1.VerdictHolds) {
			reproduced++
		}
	}
	t.Logf("%.1f%% have no error, %.1f%% Reproduce a rate below the true one", 100*float64(none)/experiments, 100*float64(reproduced)/experiments)
	if share := float64(reproduced) / experiments; share > 0.03 || none < experiments/2 {
		t.Errorf("a rate below the true one is Holds in %.1f%% of experiments", 100*share)
	}
	ls := series(0, "a", []int{1}, times(3, 100), times(3, 10))
	for i := range ls {
		ls[i].Committed = 2000
	}
	expect(t, judge(t, ls, "error_rate() < 0.01", "", ""), v1alpha1.VerdictHolds)
	expect(t, judge(t, ls, "error_rate() < 0.005", "", ""), v1alpha1.VerdictInconclusive)
	expect(t, judge(t, ls, "1 - abort_rate() > 0.99", "", ""), v1alpha1.VerdictHolds)
	expect(t, judge(t, ls, "1 - abort_rate() > 0.995", "", ""), v1alpha1.VerdictInconclusive)
}
