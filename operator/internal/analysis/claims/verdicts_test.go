package claims_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// series makes trials of one variant along the axis clients: throughput and mean latency of each
// trial at each number of clients. They run in turn: all points once, then all once more.
func series(first int32, variant string, clients []int, throughput, latency [][]float64) []results.TrialLine {
	var ls []results.TrialLine
	for i, n := range clients {
		for k := range throughput[i] {
			ls = append(ls, results.TrialLine{Number: int32(100*k+i) + first, PointIndex: first + int32(i), Coordinates: map[string]string{"clients": fmt.Sprint(n), "variant": variant},
				Repetition: int32(k), Outcome: stats.Succeeded, Committed: 1000, Throughput: throughput[i][k], MeanMillis: latency[i][k], P99Millis: latency[i][k] * 3})
		}
	}
	return ls
}

// times gives n samples around each mean, by share: 2%, at most.
func times(n int, means ...float64) [][]float64 {
	spread := []float64{1, 0.98, 1.02, 0.99, 1.01, 1.015, 0.985}
	all := make([][]float64, len(means))
	for i, m := range means {
		for k := range n {
			all[i] = append(all[i], m*spread[(k+i)%len(spread)])
		}
	}
	return all
}

func judge(t *testing.T, ls []results.TrialLine, expr, reported, within string) results.ClaimResult {
	t.Helper()
	return claims.Evaluate([]v1alpha1.Claim{claim(expr, reported, within)}, stats.Points(ls), ls)[0]
}

// expect checks a verdict and that its message says the words.
func expect(t *testing.T, got results.ClaimResult, verdict v1alpha1.Verdict, words ...string) {
	t.Helper()
	if got.Verdict != string(verdict) {
		t.Errorf("%s is %s, want %s: %s", got.Expr, got.Verdict, verdict, got.Message)
	}
	for _, w := range words {
		if !strings.Contains(got.Message, w) {
			t.Errorf("%s: message %q, want it to say %q", got.Expr, got.Message, w)
		}
	}
}

// A false claim is Fails. A claim with an interval across its bound is Inconclusive, and a claim
// with invalid trials NotEvaluated. They are judged over the same trials, as they come from a
// trial's status.
func TestFalseUndecidedAndInvalidClaims(t *testing.T) {
	ls := series(0, "a", []int{1, 10}, times(3, 100, 800), times(3, 10, 12))
	for i := range ls {
		if ls[i].Coordinates["clients"] == "10" {
			ls[i].Outcome, ls[i].Reason = stats.Invalid, v1alpha1.ReasonClientLost
		}
	}
	expect(t, judge(t, ls, "throughput(clients=1) > 200", "", ""), v1alpha1.VerdictFails, "does not hold")
	expect(t, judge(t, ls, "throughput(clients=1)", "150", "10%"), v1alpha1.VerdictFails, "measured 100.0 tx/s")
	expect(t, judge(t, ls, "throughput(clients=1) > 99", "", ""), v1alpha1.VerdictInconclusive, "cannot be told apart")
	expect(t, judge(t, ls, "throughput(clients=1)", "104", "5%"), v1alpha1.VerdictInconclusive, "the interval straddles the bound")
	for _, expr := range []string{"throughput(clients=10) > 200", "max_throughput() > 200", "throughput(clients=1) > 200 && throughput(clients=10) > 1",
		"significantly_different(of='throughput', clients=[1, 10])", "ratio(of='throughput', clients=[1, 10]) < 1", "peak_latency() < 5ms", "min_latency() < 5ms"} {
		expect(t, judge(t, ls, expr, "", ""), v1alpha1.VerdictNotEvaluated, "clients=10, variant=a has no valid trial (3 Invalid ClientLost)")
	}
}

// One trial has no interval, so that it decides no claim.
func TestOneTrialDecidesNothing(t *testing.T) {
	clients := []int{1, 10, 20}
	ls := append(series(0, "a", clients, times(1, 100, 800, 900), times(1, 10, 12, 30)), series(3, "b", clients, times(1, 50, 900, 1000), times(1, 20, 11, 25))...)
	for i := range ls {
		ls[i].P90Millis, ls[i].P999Millis, ls[i].CorrectClients = 20, 90, 1
		ls[i].Recovery = []results.Recovery{{Fault: "crash", Time: 1, Dipped: true, Recovered: true, DetectMillis: 100, Depth: 1, RecoverMillis: 500, LostTransactions: 10}}
	}
	for _, expr := range []string{
		"throughput(variant='a', clients=1) < 1000", "knee_throughput(along='clients', variant='a') > 1", "max_throughput() < 5000", "!(min_latency() > 5s)",
		"ratio(of='throughput', variant=['a', 'b'], clients=1) > 1", "significantly_different(of='throughput', variant=['a', 'b'], clients=1)",
		"crossover(of='mean_latency', along='clients', variant=['a', 'b']) < 15", "increasing(of='throughput', along='clients', variant='a')",
		"time_to_90(fault='crash', variant='a', clients=1) < 5s",
	} {
		got := judge(t, ls, expr, "", "")
		expect(t, got, v1alpha1.VerdictInconclusive)
		if !strings.Contains(got.Message, "one trial") && !strings.Contains(got.Message, "no order of so few trials decides a trend") {
			t.Errorf("%s: %q does not say that it is for too few trials", expr, got.Message)
		}
	}
}

func TestCurves(t *testing.T) {
	clients := []int{1, 10, 20, 40}
	ls := append(series(0, "a", clients, times(5, 100, 900, 1500, 1600), times(5, 10, 11, 13, 25)), series(4, "b", clients, times(5, 80, 700, 1300, 1900), times(5, 12, 13, 15, 21))...)
	for expr, want := range map[string]string{
		"knee_throughput(along='clients', variant='a') > 1400":                    "Holds: the knee is at clients=20, variant=a",
		"knee_throughput(along='clients', variant='a') > 1550":                    "Fails: 1506 tx/s",
		"knee_latency(along='clients', variant='a') < 14ms":                       "Holds: 13",
		"knee_throughput(along='clients', variant='b') > 1800":                    "Holds: the curve ends before its knee",
		"knee_throughput(along='clients', variant='b') < 2500":                    "Inconclusive: , ...]",
		"max_throughput(variant='a') < 1700":                                      "Holds: ",
		"peak_latency(variant='a') > 20ms":                                        "Holds: 25",
		"min_latency() < 11ms":                                                    "Holds: 10",
		"increasing(of='throughput', along='clients', variant='a')":               "Holds: increasing along clients holds: Kendall's tau 1.00, P 2.5e-07 within rounds, 20 trials in 5",
		"decreasing(of='throughput', along='clients', variant='a')":               "Fails: does not hold",
		"!decreasing(of='throughput', along='clients', variant='a')":              "Holds: ",
		"crossover(of='throughput', along='clients', variant=['a', 'b']) < 35":    "Holds: difference",
		"crossover(of='throughput', along='clients', variant=['a', 'b']) > 35":    "Fails: ",
		"crossover(of='throughput', along='clients', variant=['b', 'a']) > 28":    "Inconclusive: cannot be told apart",
		"crossover(of='error_rate', along='clients', variant=['a', 'b']) > 29":    "Inconclusive: the curves do not cross",
		"knee_latency(along='clients') < 14ms":                                    "NotEvaluated: several points match any coordinates at clients=1",
		"knee_latency(along='batch', variant='a') < 14ms":                         "NotEvaluated: points along batch",
		"crossover(of='throughput', along='variant', clients=[1, 10]) > 29":       "NotEvaluated: axis variant has the value a, which is no number",
		"significantly_different(of='throughput', variant=['a', 'b'], clients=1)": "Holds: variant=a and b differ: difference 20.0 tx/s",
	} {
		verdict, words, _ := strings.Cut(want, ": ")
		expect(t, judge(t, ls, expr, "", ""), v1alpha1.Verdict(verdict), words)
	}
	// One curve above the other everywhere contradicts a crossing; the verdict of a comparison with
	// a place that does not exist stays open.
	apart := append(series(0, "a", clients, times(5, 100, 200, 300, 400), times(5, 10, 11, 13, 25)), series(4, "b", clients, times(5, 50, 100, 150, 200), times(5, 12, 13, 15, 21))...)
	const crossing = "crossover(of='throughput', along='clients', variant=['a', 'b'])"
	expect(t, judge(t, apart, crossing, "20", "50%"), v1alpha1.VerdictFails, "the curves do not cross")
	expect(t, judge(t, apart, crossing+" < 20", "", ""), v1alpha1.VerdictInconclusive, "the curves do not cross")
	// The curves do not cross, but the comparison before them has no interval. So the whole claim
	// has none, and the message still says so.
	const early = "throughput(clients=60) < 1000 && "
	mixed := slices.Concat(apart, series(8, "c", []int{60}, times(1, 500), times(1, 10)))
	expect(t, judge(t, mixed, early+crossing+" < 20", "", ""), v1alpha1.VerdictInconclusive, "cannot be told apart", "the curves do not cross",
		"n=1 to 5, some points have one trial: there is no interval, so that nothing is decided")
	// The trend of few trials cannot be shown, and the message says so.
	few := series(0, "a", clients, times(1, 100, 200, 300, 400), times(1, 10, 11, 13, 25))
	expect(t, judge(t, few, "increasing(of='throughput', along='clients')", "", ""), v1alpha1.VerdictInconclusive, "no order of so few trials decides a trend")
	// If very many trials did not run in turn, the means of points are taken.
	var many []results.TrialLine
	for i := range 12 {
		for k := range 60 {
			many = append(many, results.TrialLine{Number: int32(len(many)), PointIndex: int32(i), Coordinates: map[string]string{"clients": fmt.Sprint(i)}, Repetition: int32(k), Outcome: stats.Succeeded,
				Throughput: float64(100*i + k%7)})
		}
	}
	expect(t, judge(t, many, "increasing(of='throughput', along='clients')", "", ""), v1alpha1.VerdictHolds, "over 12 trials")
}

// The interval of a knee that the curve does not reach has no upper end, and no infinity gets into
// the results.
func TestLowerBounds(t *testing.T) {
	ls := series(0, "a", []int{1, 10, 20}, times(5, 100, 900, 1500), times(5, 10, 11, 13))
	got := judge(t, ls, "knee_throughput(along='clients')", "1500", "10%")
	expect(t, got, v1alpha1.VerdictInconclusive, "measured 1506 tx/s [1477, ...]", "the curve ends before its knee")
	if got.Measured != nil || got.Low != nil || got.High != nil {
		t.Errorf("a lower bound is given as a measurement: %+v", got)
	}
	expect(t, judge(t, ls, "knee_throughput(along='clients')", "1000", "10%"), v1alpha1.VerdictFails)
	// If the sides are exchanged, the bound is on the other side.
	expect(t, judge(t, ls, "2000 > knee_throughput(along='clients')", "", ""), v1alpha1.VerdictInconclusive)
	expect(t, judge(t, ls, "-knee_throughput(along='clients') < -1000", "", ""), v1alpha1.VerdictHolds, "-1506 tx/s [..., -1477]")
	expect(t, judge(t, ls, "max_throughput() - knee_throughput(along='clients') < 100", "", ""), v1alpha1.VerdictHolds)
	expect(t, judge(t, ls, "max_throughput() / knee_throughput(along='clients') > 0.5", "", ""), v1alpha1.VerdictInconclusive)
}

// Once, a quotient with a difference had the interval of its logarithm, which never holds 0. So a
// claim that it is above 0 was Holds whenever the means happened to be.
func TestQuotientsOfWhatMayBeNegative(t *testing.T) {
	a, b := [][]float64{{1000, 1010, 990}}, [][]float64{{1002, 1012, 980}}
	ls := append(series(0, "a", []int{5}, a, a), series(1, "b", []int{5}, b, b)...)
	for i := range ls {
		value := []float64{3, -1, 4, 2, 2.1, 1.9}[i]
		ls[i].Measurements = []results.Measurement{{Name: "drift", Value: &value}}
		ls[i].Recovery = []results.Recovery{{Fault: "crash", Time: 1, Dipped: true, Recovered: true, Depth: 0.5, LostTransactions: value}}
	}
	const gain = "(throughput(variant='a') - throughput(variant='b'))"
	for expr, want := range map[string]string{
		"throughput(variant='a') > throughput(variant='b')":                            "Inconclusive: cannot be told apart",
		gain + " / throughput(variant='b') > 0":                                        "Inconclusive: cannot be told apart",
		gain + " / 3 / (throughput(variant='b') + throughput(variant='a')) > 0":        "Inconclusive: cannot be told apart",
		"2 * (" + gain + " / throughput(variant='b')) > 0":                             "Inconclusive: cannot be told apart",
		"(mean_latency(variant='a') + -999ms) / mean_latency(variant='b') > 0":         "Inconclusive: cannot be told apart",
		gain + " / throughput(variant='b') < 0.1":                                      "Holds: difference",
		"measurement(name='drift', variant='a') / dip(fault='crash', variant='b') > 0": "Inconclusive: cannot be told apart",
		// Their denominator may be 0, so that any number may be the quotient.
		"throughput(variant='b') / " + gain + " < 1e9":                                              "Inconclusive: the denominator may be 0",
		"1 + 2 / (3 * (throughput(variant='b') / " + gain + ")) < 1e9":                              "Inconclusive: the denominator may be 0",
		"dip(fault='crash', variant='b') / measurement(name='drift', variant='a') < 1e9":            "Inconclusive: the denominator may be 0",
		"goodput_lost(fault='crash', variant='b') / goodput_lost(fault='crash', variant='a') < 1e9": "Inconclusive: the denominator may be 0",
		"mean_latency(variant='b') / (mean_latency(variant='b') - 500ms) < 3":                       "Holds: difference",
		"measurement(name='drift', variant='b') / dip(fault='crash', variant='b') > 0":              "Holds: difference",
		"goodput_lost(fault='crash', variant='a') / goodput_lost(fault='crash', variant='b') > 0":   "Inconclusive: cannot be told apart",
	} {
		verdict, words, _ := strings.Cut(want, ": ")
		expect(t, judge(t, ls, expr, "", ""), v1alpha1.Verdict(verdict), words)
	}
	// A quantity without a bound is within no tolerance, however wide.
	expect(t, judge(t, ls, "throughput(variant='b') / "+gain, "500", "1000%"), v1alpha1.VerdictInconclusive, "the denominator may be 0", "n=3, and no interval")
	// The interval is that of first-order propagation.
	got := judge(t, ls, gain+" / throughput(variant='b')", "0", "0.1")
	x, y := stats.Aggregate(a[0]), stats.Aggregate(b[0])
	linear := stats.Propagate(x.Mean/y.Mean-1, []stats.Term{{Gradient: 1 / y.Mean, Sample: x}, {Gradient: -x.Mean / (y.Mean * y.Mean), Sample: y}})
	within := cmpopts.EquateApprox(0, 1e-12)
	if diff := cmp.Diff([]float64{linear.Value, linear.Low, linear.High}, []float64{*got.Measured, *got.Low, *got.High}, within); diff != "" {
		t.Errorf("relative gain (-propagated +got):\n%s", diff)
	}
}

func TestVariants(t *testing.T) {
	// Machines that drift by more than the variants differ: by rounds the difference shows, however
	// the claim is written.
	drift := []float64{100, 130, 90, 150, 110, 80}
	var a, b [][]float64
	a, b = [][]float64{nil}, [][]float64{nil}
	for i, d := range drift {
		a[0], b[0] = append(a[0], d), append(b[0], d*(1.05+0.001*float64(i%2)))
	}
	ls := append(series(0, "a", []int{5}, a, a), series(1, "b", []int{5}, b, b)...)
	const differ, ratio = "significantly_different(of='throughput', variant=['a', 'b'])", "ratio(of='throughput', variant=['b', 'a'])"
	const quotient, less = "throughput(variant='b') / throughput(variant='a')", "throughput(variant='a') < throughput(variant='b')"
	for name, ls := range map[string][]results.TrialLine{"all rounds": ls, "a round without one of them": ls[:len(ls)-1]} {
		t.Run(name, func(t *testing.T) {
			expect(t, judge(t, ls, differ, "", ""), v1alpha1.VerdictHolds, "by rounds")
			expect(t, judge(t, ls, less, "", ""), v1alpha1.VerdictHolds, "by rounds")
			expect(t, judge(t, ls, ratio, "1.05", "1%"), v1alpha1.VerdictHolds, "by rounds")
			expect(t, judge(t, ls, quotient, "1.05", "1%"), v1alpha1.VerdictHolds, "by rounds")
			expect(t, judge(t, ls, "!"+differ, "", ""), v1alpha1.VerdictFails)
		})
	}
	// Few rounds of two points: Welch's and Fieller's intervals, which the drift widens.
	ls = slices.DeleteFunc(ls, func(l results.TrialLine) bool { return l.Repetition > 3 })
	expect(t, judge(t, ls, differ, "", ""), v1alpha1.VerdictInconclusive, "not by rounds: that takes 5 rounds of both", "n=4")
	fieller, err := stats.Ratio(stats.Aggregate(b[0][:4]), stats.Aggregate(a[0][:4]))
	if err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{ratio, quotient} {
		got := judge(t, ls, expr, "1.05", "1%")
		expect(t, got, v1alpha1.VerdictInconclusive)
		within := cmpopts.EquateApprox(0, 1e-12)
		if diff := cmp.Diff([]float64{fieller.Low, fieller.High}, []float64{*got.Low, *got.High}, within); diff != "" {
			t.Errorf("%s (-Fieller's +got):\n%s", expr, diff)
		}
	}
	expect(t, judge(t, ls, "ratio(of='abort_rate', variant=['b', 'a']) < 1", "", ""), v1alpha1.VerdictNotEvaluated, "the mean of the denominator is 0")
	// For a rate that is often 0 there is no ratio of rounds, and maybe no bound.
	for i := range ls {
		ls[i].Aborted = int64(i % 2)
	}
	expect(t, judge(t, append(ls, ls[len(ls)-1]), "ratio(of='abort_rate', variant=['b', 'a']) < 9", "", ""), v1alpha1.VerdictInconclusive, "the denominator may be 0")
}

func TestRecovery(t *testing.T) {
	recovery := func(r results.Recovery) []results.Recovery {
		r.Fault, r.Time = "crash", 1
		return []results.Recovery{r}
	}
	trials := func(rs ...results.Recovery) []results.TrialLine {
		ls := series(0, "a", []int{5}, times(len(rs), 100), times(len(rs), 10))
		for i, r := range rs {
			ls[i].Recovery = recovery(r)
		}
		return ls
	}
	good := func(ms float64) results.Recovery {
		return results.Recovery{Dipped: true, Recovered: true, DetectMillis: ms / 10, Depth: 0.5, RecoverMillis: ms, LostTransactions: ms / 2}
	}
	ls := trials(good(2000), good(2100), good(1900))
	expect(t, judge(t, ls, "time_to_90(fault='crash')", "2s", "20%"), v1alpha1.VerdictHolds, "measured 2000 ms")
	expect(t, judge(t, ls, "time_to_90(fault='crash') < 1s", "", ""), v1alpha1.VerdictFails)
	expect(t, judge(t, ls, "time_to_detect(fault='crash') < 350ms && dip(fault='crash') > 0.4 && goodput_lost(fault='crash') < 1200", "", ""), v1alpha1.VerdictHolds)
	expect(t, judge(t, ls, "time_to_90(fault='crash', time=2) < 1s", "", ""), v1alpha1.VerdictNotEvaluated, "trial 0 has no recovery from fault crash, time 2")

	ls[1].Recovery[0].Recovered = false // it was still down at 2.1 s
	expect(t, judge(t, ls, "time_to_90(fault='crash')", "2s", "20%"), v1alpha1.VerdictInconclusive, "trial 100: throughput was not back when the data ended")
	expect(t, judge(t, ls, "time_to_90(fault='crash') < 1s", "", ""), v1alpha1.VerdictFails)
	expect(t, judge(t, ls, "dip(fault='crash') > 0.4", "", ""), v1alpha1.VerdictHolds)

	// No trial dipped, and noise would have hidden only a small dip.
	quiet := results.Recovery{LeastDip: 0.12, ResolvedMillis: 400}
	ls = trials(quiet, quiet, quiet)
	expect(t, judge(t, ls, "time_to_90(fault='crash') < 1s && goodput_lost(fault='crash') < 10 && dip(fault='crash') < 0.2", "", ""), v1alpha1.VerdictHolds, "throughput did not fall")
	expect(t, judge(t, ls, "dip(fault='crash') < 0.1", "", ""), v1alpha1.VerdictInconclusive, "the least that could have been seen is 12%")
	expect(t, judge(t, ls, "time_to_90(fault='crash') < 200ms", "", ""), v1alpha1.VerdictInconclusive, "a fall to 90% is seen that lasts 0.4 s")
	// No trial dipped, but noise would have hidden a deep dip, or it is unknown how deep.
	for words, r := range map[string]results.Recovery{
		"the least dip that could have been seen is 60%": {LeastDip: 0.6},
		"did not keep which dip could have been seen":    {},
	} {
		ls = trials(r, r, r)
		expect(t, judge(t, ls, "time_to_90(fault='crash') < 1s", "", ""), v1alpha1.VerdictInconclusive, words)
		expect(t, judge(t, ls, "goodput_lost(fault='crash') < 5", "", ""), v1alpha1.VerdictInconclusive, words)
		expect(t, judge(t, ls, "dip(fault='crash') < 0.1", "", ""), v1alpha1.VerdictInconclusive)
	}
	// A dip that noise may have made says little of how deep a dip was, and nothing of how long.
	shallow := results.Recovery{Dipped: true, Recovered: true, DetectMillis: 100, Depth: 0.4, RecoverMillis: 600, LostTransactions: 9, LeastDip: 0.6}
	ls = trials(shallow, shallow, shallow)
	expect(t, judge(t, ls, "dip(fault='crash') > 0.3", "", ""), v1alpha1.VerdictInconclusive, stats.ShallowDip.Text())
	expect(t, judge(t, ls, "dip(fault='crash') < 0.7", "", ""), v1alpha1.VerdictHolds)
	expect(t, judge(t, ls, "time_to_90(fault='crash') < 1s", "", ""), v1alpha1.VerdictInconclusive, stats.ShallowDip.Text())
	ls = trials(results.Recovery{}, results.Recovery{}, results.Recovery{})
	expect(t, judge(t, ls, "time_to_detect(fault='crash') < 1s", "", ""), v1alpha1.VerdictNotEvaluated, "trial 0: throughput did not fall")
	ls[2].Recovery[0].Error = "there are no bins before the fault"
	expect(t, judge(t, ls, "dip(fault='crash') < 0.1", "", ""), v1alpha1.VerdictNotEvaluated, "there are no bins before the fault")
}

// Results that are older than a number lack it, which is not the same as 0.
func TestOlderResults(t *testing.T) {
	ls := series(0, "a", []int{5}, times(3, 100), times(3, 10))
	for expr, want := range map[string]string{
		"p90_latency() < 5ms":                 "trial 0 does not say its 90th percentile",
		"p999_latency() < 5ms":                "trial 0 does not say its 99.9th percentile",
		"throughput_per_correct_client() < 5": "trial 0 does not say how many of its clients were correct",
		"dip(fault='crash') < 5":              "trial 0 has no recovery from fault crash",
	} {
		expect(t, judge(t, ls, expr, "", ""), v1alpha1.VerdictNotEvaluated, want)
	}
}

// Numbers that are far too large give no verdict, and nothing that JSON cannot hold.
func TestNumbersTooLarge(t *testing.T) {
	ls := series(0, "a", []int{5}, times(3, 1e90), times(3, 10))
	for _, expr := range []string{"throughput() * 1e300", "throughput() * 1e300 - throughput() * 1e300", "1e308 * 10 * throughput()", "throughput() / 0", "throughput() / 0.0"} {
		got := judge(t, ls, expr, "1", "1")
		expect(t, got, v1alpha1.VerdictNotEvaluated, "a division by zero, or a number too large")
		if got.Measured != nil && math.IsInf(*got.Measured, 0) {
			t.Errorf("%s: infinity", expr)
		}
	}
}

// Once, an expression that is a text, a list or a map was evaluated as a call, and the evaluator
// ran out of arguments.
func TestWhatIsNoQuantityIsNotEvaluated(t *testing.T) {
	axes, ls := fuzzed()
	for expr, want := range map[string]string{
		`r'\'`:                      "gives a text; a claim is a quantity or a comparison",
		`'a'`:                       "gives a text; a claim is a quantity or a comparison",
		`[max_throughput()]`:        "gives a list; a claim is a quantity or a comparison",
		`{'a': max_throughput()}`:   "gives a map; a claim is a quantity or a comparison",
		`null`:                      "a claim is a quantity or a comparison",
		`1 + 2`:                     "reads no results; use one of",
		`true`:                      "reads no results; use one of",
		`duration('4ms') < 5ms`:     "reads no results; use one of",
		`max_throughput() + 0 < 1.`: "",
	} {
		for _, c := range []v1alpha1.Claim{claim(expr, "", ""), claim(expr, "1", "5%")} {
			err := claims.Check(c, axes, nil)
			got := claims.Evaluate([]v1alpha1.Claim{c}, stats.Points(ls), ls)[0]
			if want == "" {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s is checked with %v, want %q", expr, err, want)
			}
			if got.Verdict != "NotEvaluated" || !strings.Contains(got.Message, want) {
				t.Errorf("%s is %s: %s; want NotEvaluated: %q", expr, got.Verdict, got.Message, want)
			}
		}
	}
}

// An Inconclusive claim says about how many repetitions would decide it, and a decided one does
// not.
func TestInconclusiveSaysHowManyWouldDecide(t *testing.T) {
	ls := append(series(0, "a", []int{1, 10}, times(3, 100, 800), times(3, 10, 12)), series(2, "b", []int{1, 10}, times(3, 97, 600), times(3, 10, 15))...)
	const a, b, far = "throughput(variant='a', clients=1)", "throughput(variant='b', clients=1)", "throughput(variant='a', clients=10)"
	const words = " repetitions would decide with a probability of 80%"
	for _, tc := range []struct{ expr, reported, within string }{
		{a + " > " + b, "", ""},
		{a + " - " + b, "3", "2"},
		{a, "104", "5%"},
		{"!(" + a + " <= " + b + ")", "", ""},
		{far + " > 500 && " + a + " > " + b, "", ""},
		{"significantly_different(of='throughput', variant=['a', 'b'], clients=1)", "", ""},
	} {
		got := judge(t, ls, tc.expr, tc.reported, tc.within)
		expect(t, got, v1alpha1.VerdictInconclusive, words)
		var n int
		if _, text, _ := strings.Cut(got.Message, "about "); text != "" {
			if _, err := fmt.Sscan(text, &n); err != nil || n < 4 || n > 40 {
				t.Errorf("%s: %d repetitions (%v), want some more than three: %s", tc.expr, n, err, got.Message)
			}
		}
	}
	for _, expr := range []string{a + " > 50", a + " > 500", far + " < 500 && " + a + " > " + b} {
		if got := judge(t, ls, expr, "", ""); strings.Contains(got.Message, "would decide") {
			t.Errorf("%s is %s, and says %s", expr, got.Verdict, got.Message)
		}
	}
	expect(t, judge(t, ls, a+" > 100", "", ""), v1alpha1.VerdictInconclusive, "100 repetitions would still not decide")
}

// Once, no message said that some trials are in another mode. If two of ten trials shift a mean,
// its interval holds the truth in far fewer experiments than it says.
func TestTrialsInGroupsAreReported(t *testing.T) {
	clients := []int{1, 10, 20, 40}
	ls := append(series(0, "a", clients, times(5, 100, 200, 300, 400), times(5, 10, 11, 13, 25)), series(4, "b", clients, times(5, 50, 100, 150, 200), times(5, 10, 11, 13, 25))...)
	const slow, other = "mean_latency(variant='a', clients=10) < 40ms", "mean_latency(variant='b', clients=10) < 40ms"
	const words = "at clients=10, variant=a trials lie in groups far apart"
	if got := judge(t, ls, slow, "", ""); strings.Contains(got.Message, "groups") {
		t.Errorf("steady trials: %s", got.Message)
	}
	for i := range ls {
		if ls[i].PointIndex == 1 && ls[i].Repetition == 3 {
			ls[i].MeanMillis *= 1.5
		}
	}
	expect(t, judge(t, ls, slow, "", ""), v1alpha1.VerdictHolds, words)
	expect(t, judge(t, ls, "max_throughput(variant='a') > 300 && "+slow, "", ""), v1alpha1.VerdictHolds, words)
	for _, expr := range []string{other, "throughput(variant='a', clients=10) > 100"} {
		if got := judge(t, ls, expr, "", ""); strings.Contains(got.Message, "groups") {
			t.Errorf("%s reads no such trials: %s", expr, got.Message)
		}
	}
}

// A curve that peaks and falls is increasing by Kendall's test. The message says that it turns.
func TestTrendThatTurns(t *testing.T) {
	clients := []int{1, 10, 20, 40, 60}
	const rises, falls = "increasing(of='throughput', along='clients')", "decreasing(of='mean_latency', along='clients')"
	peak := series(0, "a", clients, times(5, 100, 800, 1500, 2000, 1700), times(5, 20, 15, 10, 6, 8))
	expect(t, judge(t, peak, rises, "", ""), v1alpha1.VerdictHolds, "but not to the end: from clients=40 on it falls again, by 15%")
	expect(t, judge(t, peak, falls, "", ""), v1alpha1.VerdictHolds, "but not to the end: from clients=40 on it rises again, by 33%")
	for _, last := range []float64{2100, 1995} {
		ls := series(0, "a", clients, times(5, 100, 800, 1500, 2000, last), times(5, 20, 15, 10, 6, 8))
		if got := judge(t, ls, rises, "", ""); got.Verdict != string(v1alpha1.VerdictHolds) || strings.Contains(got.Message, "but not") {
			t.Errorf("a curve that ends at %g is %s: %s", last, got.Verdict, got.Message)
		}
	}
}
