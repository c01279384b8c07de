package claims_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// fuzzed are trials of two axes with all numbers that functions read. One point has no trial, one
// only invalid trials, and one a throughput without recovery.
func fuzzed() ([]results.Axis, []results.TrialLine) {
	clients := []int{1, 10, 20, 40}
	ls := append(series(0, "a", clients, times(3, 100, 900, 1500, 1600), times(3, 10, 11, 13, 25)), series(4, "b", clients, times(3, 80, 700, 1300, 1900), times(3, 12, 13, 15, 21))...)
	for i := range ls {
		l := &ls[i]
		l.P90Millis, l.P999Millis, l.CorrectClients, l.Aborted, l.Errors = 2*l.MeanMillis, 9*l.MeanMillis, 3, int64(i%3), int64(i%2)
		l.Recovery = []results.Recovery{{Fault: "crash", Time: 1, Dipped: i%5 > 0, Recovered: i%7 > 0, DetectMillis: 100, Depth: 0.3, RecoverMillis: 1000, LostTransactions: -3}}
		if l.PointIndex == 7 {
			l.Outcome = stats.Invalid
		}
	}
	return []results.Axis{{Name: "clients", Values: []string{"1", "10", "20", "40"}}, {Name: "variant", Values: []string{"a", "b", "c"}}}, ls
}

// FuzzExpr gives the language any expression. The language refuses it with a place inside of it, or
// judges it in bounded time with numbers that JSON can hold. The test also evaluates refused
// expressions, since results of strangers may have them.
func FuzzExpr(f *testing.F) {
	for _, expr := range []string{
		"mean_latency(clients=1, variant='a') < 5ms", "f(a=1,)", "r'\\' = '''", "((([[{{", "a=b", "f(=", "throughput({1:2})", "f(a=,b=)", "5ms5", "1 - -1", "9e999 < max_throughput()",
		"knee_throughput(along='clients', variant='a') > 100 && !(knee_latency(along='clients', variant='b') >= 1.5s)",
		"crossover(of='p99_latency', along='clients', variant=['a', 'b']) < 30 || increasing(of='error_rate', along='clients', variant=\"a\")",
		"ratio(of='abort_rate', variant=['b', 'a'], clients=10) > 0.5", "significantly_different(of='throughput', clients=[1, 40], variant='a')",
		"time_to_90(fault='crash', time=1, variant='a', clients=20) * 2 - 1m <= time_to_detect(fault='crash', variant='a', clients=1)",
		"goodput_lost(fault='crash', variant='a', clients=1) / dip(fault='crash', variant='a', clients=10) < 1e3 // comment",
		"max_throughput() / max_throughput(variant='c') > throughput_per_correct_client(clients=1, variant='a') / min_latency()", "true && false || !true",
		strings.Repeat("-", 500) + "1 < max_throughput()", strings.Repeat("max_throughput()+", 100) + "max_throughput()", strings.Repeat("[", 300), "\xff\xfe='", "'\n\n\t'=1ms\n<",
	} {
		f.Add(expr, "1", "5%")
	}
	f.Add("max_throughput()", "7000", "5%")
	f.Add("min_latency()", "1h", "3ns")
	f.Add("knee_latency(along='clients', variant='b')", "1e400", "1e400%")
	f.Add("dip(fault='crash', clients=1, variant='a')", "NaN", "Inf%")
	axes, ls := fuzzed()
	points := stats.Points(ls)
	f.Fuzz(func(t *testing.T, expr, reported, within string) {
		start := time.Now()
		for _, c := range []v1alpha1.Claim{claim(expr, "", ""), claim(expr, reported, within)} {
			err := claims.Check(c, axes, []string{"crash"})
			checkPlace(t, expr, err)
			got := claims.Evaluate([]v1alpha1.Claim{c}, points, ls)[0]
			if got.Verdict == "" || got.Verdict != "NotEvaluated" && got.Message == "" && got.Expr == "" {
				t.Errorf("%q has no verdict: %+v", expr, got)
			}
			if err == nil && strings.HasPrefix(got.Message, "expr:") {
				t.Errorf("%q is accepted, and then: %s", expr, got.Message)
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("%q: %v", expr, err)
			}
			if got.Measured != nil && !(*got.Low <= *got.Measured+1e-9*math.Abs(*got.Measured) && *got.Measured <= *got.High+1e-9*math.Abs(*got.Measured)) {
				t.Errorf("%q: %g is not in [%g, %g]", expr, *got.Measured, *got.Low, *got.High)
			}
		}
		if took := time.Since(start); took > 20*time.Second { // a wide band: milliseconds on an idle machine
			t.Errorf("%q took %v", expr, took)
		}
	})
}

// checkPlace checks that an error about the expression names a place in it.
func checkPlace(t *testing.T, expr string, err error) {
	t.Helper()
	e, ok := err.(*claims.Error) //nolint:errorlint // it is never wrapped, which is part of what is checked
	if !ok {
		return
	}
	lines := strings.Split(expr, "\n")
	if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 || e.Message == "" {
		t.Errorf("%q: the error is at a place that does not exist: %v", expr, err)
	}
}
