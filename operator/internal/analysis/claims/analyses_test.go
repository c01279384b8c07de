package claims

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// analysed judges one claim about two points with these mean latencies, and medians of half of
// them, by round.
func analysed(expr string, a, b []float64, change func(*results.TrialLine)) results.ClaimResult {
	points := []results.PointResult{{Index: 0, Coordinates: map[string]string{"variant": "a"}}, {Index: 1, Coordinates: map[string]string{"variant": "b"}}}
	var lines []results.TrialLine
	for k := range a {
		for p, millis := range []float64{a[k], b[k]} {
			l := results.TrialLine{Number: int32(2*k + p), PointIndex: int32(p), Coordinates: points[p].Coordinates, Repetition: int32(k), Outcome: stats.Succeeded,
				Committed: 1_000_000, Throughput: 1000, MeanMillis: millis, P50Millis: 5, P10Millis: millis / 2}
			if change != nil {
				change(&l)
			}
			lines = append(lines, l)
		}
	}
	claim := v1alpha1.Claim{Name: "c", Statement: "s", Expr: expr}
	judged := Evaluate([]v1alpha1.Claim{claim}, points, lines)
	AddAnalyses([]v1alpha1.Claim{claim}, points, lines, judged)
	return judged[0]
}

func TestOtherAnalyses(t *testing.T) {
	fast, slow := []float64{10, 10.1, 9.9, 10, 10.2}, []float64{12, 12.2, 11.8, 12.1, 12}
	for name, tc := range map[string]struct {
		expr      string
		change    func(*results.TrialLine)
		of, agree int
	}{
		// mean; median, where both are 5 ms and nothing is decided; p10; each by rounds and not
		"statistics and rounds": {"mean_latency(variant='a') < mean_latency(variant='b')", nil, 5, 3},
		"one latency":           {"mean_latency(variant='a') < 11ms", nil, 0, 0},
		"throughput": {"throughput(variant='a') > throughput(variant='b')", func(l *results.TrialLine) {
			l.Throughput = 1e4 / l.MeanMillis
		}, 1, 1},
		"an unsteady trial": {"throughput(variant='a') > throughput(variant='b')", func(l *results.TrialLine) {
			l.Throughput = 1e4 / l.MeanMillis
			l.Window = &results.WindowCheck{Throughput: &results.Transient{Steady: l.Number != 3}}
		}, 3, 3},
		"a trial that does not count": {"throughput(variant='a') > throughput(variant='b')", func(l *results.TrialLine) {
			l.Throughput = 1e4 / l.MeanMillis
			if l.Number == 2 { // and was slower by far: with it the order is open
				l.Outcome, l.Reason, l.Throughput = stats.Invalid, v1alpha1.ReasonProcessorContended, 1
			}
		}, 3, 2},
		"no verdict": {"throughput(variant='a') > p99_latency(variant='b')", nil, 0, 0},
	} {
		r := analysed(tc.expr, fast, slow, tc.change)
		var got results.Analyses
		if r.Analyses != nil {
			got = *r.Analyses
		}
		if got.Of != tc.of || got.Agree != tc.agree || len(got.Others) != tc.of-tc.agree {
			t.Errorf("%s: %s, and of the others %+v; want %d of %d to agree", name, r.Verdict, got, tc.agree, tc.of)
		}
	}
}
