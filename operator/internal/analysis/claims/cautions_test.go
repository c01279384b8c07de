package claims_test

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Once, a verdict could rest on full clients, on hung transactions, or on the latencies of
// successful requests only. Its message did not mention that: only the report's tables did.
func TestCautionsAtTheVerdict(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	trials := func(change func(*results.TrialLine)) []results.TrialLine {
		ls := series(0, "a", []int{1, 10}, times(3, 100, 800), times(3, 10, 12))
		for i := range ls {
			ls[i].CorrectClients, ls[i].ClientTimeShare, ls[i].ClientBusyShare = 10, share(1), share(0.5)
			if ls[i].Coordinates["clients"] == "10" && ls[i].Repetition > 0 {
				change(&ls[i])
			}
		}
		return ls
	}
	const latency, throughput = "mean_latency(clients=10) < 20ms", "throughput(clients=10) > 100"
	for name, tc := range map[string]struct {
		change func(*results.TrialLine)
		expr   string
		says   string // empty: nothing
	}{
		"nothing is wrong": {func(*results.TrialLine) {}, latency, ""},
		"the clients are full": {func(l *results.TrialLine) { l.ClientBusyShare = share(0.93) }, throughput,
			"at clients=10, variant=a in 2 of 3 trials client pods or their nodes were 90% busy or more, and may be what limits throughput"},
		"a client hangs": {func(l *results.TrialLine) { l.ClientTimeShare = share(0.9) }, throughput,
			"at clients=10, variant=a in 2 of 3 trials the numbers account for 90% of the clients' time, and by Little's law for all of it: the rest went into transactions whose latency does not count"},
		"more time than there is": {func(l *results.TrialLine) { l.ClientTimeShare = share(1.2) }, throughput,
			"account for 120% of the clients' time, and by Little's law for all of it: latencies hang over the start of the window"},
		"requests fail":                 {func(l *results.TrialLine) { l.Errors = 50 }, latency, "up to 4.8% of requests failed; latencies leave them out"},
		"requests fail, for throughput": {func(l *results.TrialLine) { l.Errors = 50 }, throughput, ""},
		"few requests fail":             {func(l *results.TrialLine) { l.Errors = 1 }, latency, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plain := judge(t, trials(func(*results.TrialLine) {}), tc.expr, "", "")
			got := judge(t, trials(tc.change), tc.expr, "", "")
			if tc.says == "" {
				if got.Message != plain.Message {
					t.Errorf("message %q, want %q", got.Message, plain.Message)
				}
				return
			}
			expect(t, got, v1alpha1.VerdictHolds, tc.says)
			// A claim that reads another point has no need to know.
			expect(t, judge(t, trials(tc.change), "throughput(clients=1) > 10", "", ""), v1alpha1.VerdictHolds)
			if other := judge(t, trials(tc.change), "throughput(clients=1) > 10", "", ""); other.Message != judge(t, trials(func(*results.TrialLine) {}), "throughput(clients=1) > 10", "", "").Message {
				t.Errorf("a claim about another point says %q", other.Message)
			}
		})
	}
}
