package claims

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// analysed judges one claim about two points with these mean latencies, and medians of half of
// them, by round: once, or at the look after these rounds.
func analysed(expr string, a, b []float64, change func(*results.TrialLine), at *stats.Looks) results.ClaimResult {
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
	if at != nil {
		judged := EvaluateLook([]v1alpha1.Claim{claim}, points, lines, *at, len(a))
		AddAnalysesAtLook([]v1alpha1.Claim{claim}, points, lines, judged, *at, len(a))
		return judged[0]
	}
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
			if l.Number == 2 { // and was far slower: with it, the order is open
				l.Outcome, l.Reason, l.Throughput = stats.Invalid, v1alpha1.ReasonProcessorContended, 1
			}
		}, 3, 1},
		"no verdict": {"throughput(variant='a') > p99_latency(variant='b')", nil, 0, 0},
	} {
		r := analysed(tc.expr, fast, slow, tc.change, nil)
		var got results.Analyses
		if r.Analyses != nil {
			got = *r.Analyses
		}
		if got.Of != tc.of || got.Agree != tc.agree || len(got.Others) != tc.of-tc.agree {
			t.Errorf("%s: %s, and of the others %+v; want %d of %d to agree", name, r.Verdict, got, tc.agree, tc.of)
		}
	}
}

// Verdicts at looks once had no other analyses, and the report did not say why. Now they have them,
// at the level of the look. A difference that is decided at 5%, but not at the level of the look,
// is open in all of them.
func TestOtherAnalysesAtALook(t *testing.T) {
	looks := &stats.Looks{First: 3, Last: 20}
	for name, tc := range map[string]struct {
		a, b       []float64
		once, look string
	}{
		"clear": {[]float64{10, 10.1, 9.9, 10, 10.2}, []float64{12, 12.2, 11.8, 12.1, 12}, "Holds", "Holds"},
		"close": {[]float64{10, 10.3, 9.9, 10, 10.2}, []float64{11, 10.3, 10.6, 10.5, 10.9}, "Holds", "Inconclusive"},
	} {
		const expr = "mean_latency(variant='a') < mean_latency(variant='b')"
		once, look := analysed(expr, tc.a, tc.b, nil, nil), analysed(expr, tc.a, tc.b, nil, looks)
		if once.Verdict != tc.once || look.Verdict != tc.look {
			t.Fatalf("%s: %s and %s, want %s and %s", name, once.Verdict, look.Verdict, tc.once, tc.look)
		}
		if look.Analyses == nil || look.Analyses.Of != once.Analyses.Of {
			t.Fatalf("%s: at a look %+v, once %+v", name, look.Analyses, once.Analyses)
		}
		for _, other := range look.Analyses.Others {
			if tc.look == "Inconclusive" && other.Verdict == "Holds" {
				t.Errorf("%s: %s is %s at the look", name, other.How, other.Verdict)
			}
		}
	}
}
