package claims

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

var searchedAxes = []results.Axis{{Name: "variant", Values: []string{"a", "b"}}, {Name: "rate", Values: []string{"100", "200", "300"}, Searched: true}}

func TestCapacityIsChecked(t *testing.T) {
	for expr, want := range map[string]string{
		"capacity(variant='a') > 5":           "",
		"capacity() > 5":                      "capacity reads one search: give axis variant one of its values a, b",
		"capacity(variant='a', rate=100) > 5": "axis rate is searched: capacity gives its value",
		"capacity(variant='c') > 5":           "axis variant has no value c",
		"capacity(variant='a') * 2 > 5":       "ratio, crossover, shape and capacity can be compared with a number",
		"capacity(variant='a', of='x') > 5":   "there is no axis of",
	} {
		err := Check(v1alpha1.Claim{Expr: expr}, searchedAxes, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}

func TestCapacityIsJudged(t *testing.T) {
	load := func(x float64) *float64 { return &x }
	capacities := []results.Capacity{
		{Axis: "rate", At: map[string]string{"variant": "a"}, From: 100, To: 300, Outcome: string(v1alpha1.CapacityFound), Trials: 9, Capacity: load(200), Low: load(190), High: load(210)},
		{Axis: "rate", At: map[string]string{"variant": "b"}, From: 100, To: 300, Outcome: string(v1alpha1.CapacityAboveHighest), Trials: 4, Low: load(290)},
	}
	for expr, want := range map[string]v1alpha1.Verdict{
		"capacity(variant='a') > 180":                                v1alpha1.VerdictHolds,
		"capacity(variant='a') > 205":                                v1alpha1.VerdictInconclusive,
		"capacity(variant='a') > 220":                                v1alpha1.VerdictFails,
		"capacity(variant='b') > 280":                                v1alpha1.VerdictHolds,
		"capacity(variant='b') > 500":                                v1alpha1.VerdictInconclusive,
		"capacity(variant='b') < 280":                                v1alpha1.VerdictFails,
		"capacity(variant='a') < 220 && capacity(variant='b') > 220": v1alpha1.VerdictHolds,
		"capacity(variant='c') > 1":                                  v1alpha1.VerdictNotEvaluated,
	} {
		got := EvaluateWith([]v1alpha1.Claim{{Name: "c", Expr: expr}}, nil, nil, capacities)[0]
		if got.Verdict != string(want) {
			t.Errorf("%s is %s, want %s: %s", expr, got.Verdict, want, got.Message)
		}
	}
	reported := v1alpha1.NewValue("195")
	got := EvaluateWith([]v1alpha1.Claim{{Name: "c", Expr: "capacity(variant='a')", Reported: &reported, Within: "10%"}}, nil, nil, capacities)[0]
	if got.Verdict != string(v1alpha1.VerdictHolds) || got.Measured == nil || *got.Low != 190 || !strings.Contains(got.Message, "Found after 9 trials") {
		t.Errorf("%+v", got)
	}
	ofSession := func(r results.ClaimResult) bool {
		return slices.ContainsFunc(r.Caveats, func(c results.Caveat) bool { return c.Kind == CaveatOneSession })
	}
	if !ofSession(got) {
		t.Errorf("a capacity is an absolute number, and the verdict does not say so: %s", got.Message)
	}
	// The machines became slower, so that the search has no interval.
	capacities[0] = results.Capacity{Axis: "rate", At: map[string]string{"variant": "a"}, From: 100, To: 300, Outcome: string(v1alpha1.CapacityOutOfTrials), Trials: 30, Capacity: load(200), Message: "the machines carried less"}
	if got := EvaluateWith([]v1alpha1.Claim{{Name: "c", Expr: "capacity(variant='a') > 1"}}, nil, nil, capacities)[0]; got.Verdict != string(v1alpha1.VerdictInconclusive) || !strings.Contains(got.Message, "the machines carried less") || strings.Contains(got.Message, "holds 95%") || ofSession(got) {
		t.Errorf("%+v", got)
	}
	capacities[0] = results.Capacity{Axis: "rate", At: map[string]string{"variant": "a"}, Outcome: string(v1alpha1.CapacityNotJudged), Trials: 1, Message: "trial 0 cannot be judged"}
	if got := EvaluateWith([]v1alpha1.Claim{{Name: "c", Expr: "capacity(variant='a') > 1"}}, nil, nil, capacities)[0]; got.Verdict != string(v1alpha1.VerdictNotEvaluated) || !strings.Contains(got.Message, "cannot be judged") {
		t.Errorf("%+v", got)
	}
}
