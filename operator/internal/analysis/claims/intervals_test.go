package claims_test

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Counts and binned times are often equal in all trials. Neither of two equal sides is the greater.
func TestEqualInAllTrials(t *testing.T) {
	same := [][]float64{{40, 40, 40, 40, 40}}
	ls := append(series(0, "a", []int{1}, times(5, 100), same), series(1, "b", []int{1}, times(5, 100), same)...)
	for symbol, want := range map[string]struct {
		verdict v1alpha1.Verdict
		words   string
	}{
		">":  {v1alpha1.VerdictInconclusive, "40.0 ms > 40.0 ms does not hold"},
		"<":  {v1alpha1.VerdictInconclusive, "40.0 ms < 40.0 ms does not hold"},
		">=": {v1alpha1.VerdictHolds, "40.0 ms >= 40.0 ms holds"},
		"<=": {v1alpha1.VerdictHolds, "40.0 ms <= 40.0 ms holds"},
	} {
		expect(t, judge(t, ls, "mean_latency(variant='a') "+symbol+" mean_latency(variant='b')", "", ""), want.verdict, want.words)
	}
}

// The model of rounds takes a drift between rounds away. A point whose trials ran after all others
// has no share in those rounds, and the model would hide the drift.
func TestTheModelOfRoundsNeedsAllPointsInTurn(t *testing.T) {
	at := func(last int32) (message string) {
		ls := append(series(0, "a", []int{1}, [][]float64{{100, 98, 102, 99, 101}}, times(5, 10)), series(1, "b", []int{1}, [][]float64{{111, 108, 110, 112, 109}}, times(5, 9))...)
		ls = append(ls, series(3, "d", []int{1}, [][]float64{{95, 97, 96, 94, 93}}, times(5, 11))...)
		for k, l := range series(2, "c", []int{1}, [][]float64{{104, 105, 106, 103, 107}}, times(5, 9)) {
			if last > 0 {
				l.Number = last + int32(k)
			}
			ls = append(ls, l)
		}
		got := judge(t, ls, "throughput(variant='a') < throughput(variant='b')", "", "")
		expect(t, got, v1alpha1.VerdictHolds)
		return got.Message
	}
	const model = "one model of 4 points"
	if got := at(0); !strings.Contains(got, model) {
		t.Errorf("in turn: %q, want it to say %q", got, model)
	}
	if got := at(1000); strings.Contains(got, model) {
		t.Errorf("a point ran last: %q, which speaks of %q", got, model)
	}
}

// A point lacks the round in which the machines were fast. It is compared over the rounds that both
// have. The mean of all rounds would hold the drift.
func TestARoundThatOneSideLacksIsNotInTheDifference(t *testing.T) {
	a := series(0, "a", []int{1}, [][]float64{{100, 102, 98, 101, 99, 700}}, times(6, 10))
	b := series(1, "b", []int{1}, [][]float64{{80, 82, 78, 81, 79}}, times(5, 10))
	// A third point ran last, so that there is no model of all points.
	c := series(2, "c", []int{1}, times(6, 50), times(6, 10))
	for k := range c {
		c[k].Number = 1000 + int32(k)
	}
	got := judge(t, slices.Concat(a, b, c), "throughput(variant='a') - throughput(variant='b') < 50", "", "")
	expect(t, got, v1alpha1.VerdictHolds, "by rounds")
}

// The best point has one trial, and another one may be the best as well. The interval of the other
// one says nothing of the first.
func TestATieWithAPointOfOneTrialDecidesNothing(t *testing.T) {
	ls := append(series(0, "a", []int{10}, times(5, 900), times(5, 10)), series(1, "a", []int{20}, times(1, 950), times(1, 12))...)
	for _, expr := range []string{"max_throughput() < 5000", "max_throughput() > 5000", "max_throughput() * 2 < 5000"} {
		expect(t, judge(t, ls, expr, "", ""), v1alpha1.VerdictInconclusive, "may also be at", "some points have one trial")
	}
	ls = append(ls, series(1, "a", []int{20}, [][]float64{{0, 960, 940, 955, 945}}, times(5, 12))[1:]...)
	expect(t, judge(t, ls, "max_throughput() < 5000", "", ""), v1alpha1.VerdictHolds)
}
