package claims_test

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// lookedAt are two points, a and b, with the throughput of so many rounds each.
func lookedAt(a, b []float64) (points []results.PointResult, lines []results.TrialLine) {
	for i, xs := range [][]float64{a, b} {
		at := map[string]string{"variant": []string{"a", "b"}[i]}
		points = append(points, results.PointResult{Index: int32(i), Coordinates: at})
		for k, x := range xs {
			lines = append(lines, results.TrialLine{Number: int32(2*k + i), PointIndex: int32(i), Coordinates: at, Repetition: int32(k), Outcome: stats.Succeeded, Committed: 1e6, Throughput: x})
		}
	}
	return points, lines
}

func TestEvaluateLook(t *testing.T) {
	a, b := []float64{100, 101, 99, 100.5, 99.5, 100.2}, []float64{97.5, 98.7, 98, 97.6, 98.9, 98.4}
	points, lines := lookedAt(a, b)
	looks := stats.Looks{First: 3, Last: 6}
	greater := v1alpha1.Claim{Name: "c", Statement: "s", Expr: "throughput(variant='a') > throughput(variant='b')"}
	for name, tc := range map[string]struct {
		rounds  int
		verdict v1alpha1.Verdict
		open    bool
		says    string
	}{
		"the first look": {3, v1alpha1.VerdictInconclusive, true, "intervals that hold together at 95%, at look 1 of 4, n=3"},
		"the last look":  {6, v1alpha1.VerdictHolds, false, "intervals that hold together at 95%, at look 4 of 4, n=6"},
	} {
		t.Run(name, func(t *testing.T) {
			r := claims.EvaluateLook([]v1alpha1.Claim{greater}, points, lines, looks, tc.rounds)
			if r[0].Verdict != string(tc.verdict) || !strings.Contains(r[0].Message, tc.says) {
				t.Errorf("%s: %s", r[0].Verdict, r[0].Message)
			}
			if open := len(claims.Open(r, nil)) > 0; open != tc.open {
				t.Errorf("open is %v: %v", open, r[0].Chance)
			}
		})
	}
}

// The intervals of every kind of quantity are wider at a look than where there is only one.
func TestIntervalsAtALookAreWider(t *testing.T) {
	points, lines := lookedAt([]float64{100, 103, 99, 100.5, 98, 100.2}, []float64{97.5, 98.7, 99.9, 97.6, 98.9, 96.4})
	for _, expr := range []string{
		"throughput(variant='a')", "throughput(variant='a') - throughput(variant='b')", "throughput(variant='a') / throughput(variant='b')",
		"ratio(of='throughput', variant=['a', 'b'])", "max_throughput()",
	} {
		reported := v1alpha1.NewValue("1")
		claim := []v1alpha1.Claim{{Name: "c", Statement: "s", Expr: expr, Reported: &reported, Within: "1%"}}
		for _, n := range []int{3, 6} { // quotients of few rounds are Fieller's, of more by rounds
			seen := lines[:0:0]
			for _, l := range lines {
				if int(l.Repetition) < n {
					seen = append(seen, l)
				}
			}
			plain, look := claims.Evaluate(claim, points, seen)[0], claims.EvaluateLook(claim, points, lines, stats.Looks{First: 3, Last: 12}, n)[0]
			if plain.Low == nil || look.Low == nil || !(*look.Low < *plain.Low && *plain.High < *look.High) {
				t.Errorf("%s, n=%d: %s; %s", expr, n, plain.Message, look.Message)
			}
			once := claims.EvaluateLook(claim, points, lines, stats.Looks{First: n, Last: n}, n)[0]
			if fmt.Sprintf("%.9g %.9g", *once.Low, *once.High) != fmt.Sprintf("%.9g %.9g", *plain.Low, *plain.High) {
				t.Errorf("%s, n=%d: the only look has another interval: %s; %s", expr, n, plain.Message, once.Message)
			}
		}
	}
}

func TestOpen(t *testing.T) {
	chance := func(x float64) *float64 { return &x }
	judged := []results.ClaimResult{
		{Name: "holds", Verdict: "Holds"}, {Name: "fails", Verdict: "Fails"}, {Name: "no data", Verdict: "NotEvaluated"},
		{Name: "hopeless", Verdict: "Inconclusive", Chance: chance(0.09)}, {Name: "hopeful", Verdict: "Inconclusive", Chance: chance(0.1)},
		{Name: "unknown", Verdict: "Inconclusive"}, {Name: "skipped", Verdict: "Inconclusive"},
	}
	if open := claims.Open(judged, map[string]string{"skipped": "why"}); fmt.Sprint(open) != "[hopeful unknown]" {
		t.Errorf("open: %q", open)
	}
}

// A value at the edge of its bound cannot be decided, and is given up before the last look.
func TestHopelessClaims(t *testing.T) {
	points, lines := lookedAt([]float64{100, 103, 97, 102, 98, 101, 99, 100, 103, 97}, []float64{100, 97, 103, 98, 102, 99, 101, 100, 97, 103})
	greater := []v1alpha1.Claim{{Name: "c", Statement: "s", Expr: "throughput(variant='a') > throughput(variant='b')"}}
	r := claims.EvaluateLook(greater, points, lines, stats.Looks{First: 3, Last: 12}, 10)
	if r[0].Chance == nil || *r[0].Chance >= 0.1 || len(claims.Open(r, nil)) > 0 {
		t.Errorf("%s, chance %v", r[0].Message, r[0].Chance)
	}
}
