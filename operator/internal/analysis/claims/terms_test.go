package claims_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A verdict is data: each comparison with its text, both sides, their difference and their ratio.
func TestTermsOfAComparison(t *testing.T) {
	ls := series(0, "a", []int{1, 2, 4}, times(5, 100, 200, 400), times(5, 10, 11, 12))
	got := judge(t, ls, "throughput(clients=4) / 2 > throughput(clients=1) && // the second\n  !(mean_latency(clients=1) > 11ms || increasing(of='throughput', along='clients'))", "", "")
	type term struct{ Text, Relation, Outcome, Unit string }
	var terms []term
	for _, x := range got.Terms {
		terms = append(terms, term{x.Text, x.Relation, x.Outcome, x.Unit})
		if x.P == nil || *x.P < 0 || *x.P > 1 {
			t.Errorf("%s: P is %v", x.Text, x.P)
		}
	}
	want := []term{
		{"throughput(clients=4) / 2 > throughput(clients=1)", ">", "True", "tx/s"},
		{"mean_latency(clients=1) > 11ms", ">", "False", "ms"},
		{"increasing(of='throughput', along='clients')", "increasing", "True", "Kendall's tau"},
	}
	if diff := cmp.Diff(want, terms); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	first, second := got.Terms[0], got.Terms[1]
	if first.Left.Low == nil || *first.Left.Low >= first.Left.Value || first.Difference == nil || first.Difference.Value >= 0 || first.Ratio == nil ||
		math.Abs(first.Ratio.Value-first.Left.Value/first.Right.Value) > 1e-9 || *first.Ratio.Low >= *first.Ratio.High {
		t.Errorf("the first comparison: %+v", first)
	}
	if second.Right.Value != 11 || second.Right.Low != nil || second.Right.High != nil {
		t.Errorf("11ms has an interval: %+v", second.Right)
	}
	if got.N != 5 || got.NMost != 5 || got.P == nil {
		t.Errorf("n from %d to %d, P %v; want 5 trials of each point, and a P", got.N, got.NMost, got.P)
	}
}

// The first term has its own text, and not the text of the whole claim.
func TestTextOfATestThatStandsFirst(t *testing.T) {
	const test = "significantly_different(of='throughput', clients=[1, 4])"
	ls := series(0, "a", []int{1, 4}, times(5, 100, 200), times(5, 10, 11))
	if got := judge(t, ls, test+" && throughput(clients=1) > 50", "", ""); len(got.Terms) != 2 || got.Terms[0].Text != test {
		t.Errorf("terms %+v, want the first to be %s", got.Terms, test)
	}
}

// A quantity has its bound, and its ratio to the value that is reported.
func TestTermsOfAQuantity(t *testing.T) {
	got := judge(t, lines(3), "mean_latency(variant='failure-fp', clients=5) - mean_latency(variant='ideal', clients=5)", "5ms", "20%")
	if got.BoundLow == nil || *got.BoundLow != 4 || *got.BoundHigh != 6 || len(got.Terms) != 1 {
		t.Fatalf("the bound is from %v to %v, in %d terms", got.BoundLow, got.BoundHigh, len(got.Terms))
	}
	x := got.Terms[0]
	if x.Relation != "within" || x.Left.Value != *got.Measured || x.Right.Value != 5 || *x.Right.Low != 4 || x.Ratio == nil || math.Abs(x.Ratio.Value-*got.Measured/5) > 1e-9 {
		t.Errorf("%+v", x)
	}
}

// A value that was not reported is expected, and is called so.
func TestExpectedIsCalledExpected(t *testing.T) {
	c := claim("mean_latency(variant='ideal', clients=5)", "", "10%")
	value := v1alpha1.NewValue("2.6ms")
	c.Expected = &value
	ls := lines(3)
	got := claims.Evaluate([]v1alpha1.Claim{c}, stats.Points(ls), ls)[0]
	if got.Expected != "2.6ms" || got.Reported != "" || !strings.Contains(got.Message, "expected 2.6ms within 10%") || got.BoundLow == nil {
		t.Errorf("%+v", got)
	}
	c.Within = "0%"
	c.Expected = new(v1alpha1.NewValue("2.6"))
	if err := claims.Check(c, axes, faults); err == nil || !strings.HasPrefix(err.Error(), `expected: "2.6" must be a duration`) {
		t.Errorf("a latency that is expected without a unit: %v", err)
	}
}

// Equal numbers have an interval without width. A verdict by them is not certain, so that it has a
// caution and no P.
func TestNumbersThatDoNotVaryAreNoCertainty(t *testing.T) {
	equal := series(0, "a", []int{1}, [][]float64{{200, 200, 200}}, [][]float64{{9, 10, 11}})
	of := func(c results.ClaimResult) (kinds []string) {
		for _, k := range c.Caveats {
			kinds = append(kinds, k.Kind)
		}
		return kinds
	}
	for expr, verdict := range map[string]v1alpha1.Verdict{"throughput(clients=1) > 190": v1alpha1.VerdictHolds, "throughput(clients=1) < 190": v1alpha1.VerdictFails} {
		got := judge(t, equal, expr, "", "")
		expect(t, got, verdict, "all 3 trials at clients=1, variant=a gave 200", "is no certainty")
		if diff := cmp.Diff([]string{claims.CaveatOneSession, claims.CaveatNoVariation}, of(got)); diff != "" {
			t.Errorf("%s: caveats (-want +got):\n%s", expr, diff)
		}
		if got.Terms[0].P != nil {
			t.Errorf("%s: P %v of no test", expr, *got.Terms[0].P)
		}
	}
	varies := series(0, "a", []int{1}, [][]float64{{200, 201, 202}}, [][]float64{{9, 10, 11}})
	if got := judge(t, varies, "throughput(clients=1) > 190", "", ""); !slices.Equal(of(got), []string{claims.CaveatOneSession}) || got.Terms[0].P == nil {
		t.Errorf("numbers that vary: %v", got.Caveats)
	}
}

// A caveat names the points that it is about.
func TestCaveatsHavePoints(t *testing.T) {
	ls := series(0, "a", []int{1, 2}, times(5, 100, 200), times(5, 10, 11))
	for i := range ls {
		if ls[i].PointIndex == 1 {
			ls[i].ClientBusyShare = new(0.99)
		}
	}
	got := judge(t, ls, "throughput(clients=1) < throughput(clients=2)", "", "")
	if len(got.Caveats) != 1 || got.Caveats[0].Kind != claims.CaveatSaturatedClients || cmp.Diff([]string{"clients=2, variant=a"}, got.Caveats[0].Points) != "" {
		t.Errorf("caveats: %+v", got.Caveats)
	}
}
