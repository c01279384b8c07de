package stats_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

func TestRatioIsReciprocal(t *testing.T) {
	a, b := stats.Aggregate([]float64{90, 110, 130}), stats.Aggregate([]float64{47, 50, 53})
	ab, err := stats.Ratio(a, b)
	if err != nil {
		t.Fatal(err)
	}
	ba, err := stats.Ratio(b, a)
	if err != nil {
		t.Fatal(err)
	}
	if ab.Low >= ab.Value || ab.High <= ab.Value {
		t.Errorf("interval [%g, %g] of the ratio %g", ab.Low, ab.High, ab.Value)
	}
	want := stats.Estimate{Value: 1 / ab.Value, Low: 1 / ab.High, High: 1 / ab.Low, Known: true, Freedom: ab.Freedom}
	if diff := cmp.Diff(want, ba.Estimate, near(1e-9)); diff != "" {
		t.Errorf("b/a is not the reciprocal of a/b (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]stats.Caution{stats.FewSamples}, ab.Cautions); diff != "" {
		t.Errorf("cautions (-want +got):\n%s", diff)
	}
}

func TestRatioWithoutInterval(t *testing.T) {
	firm := stats.Aggregate([]float64{9, 10, 11, 10, 10})
	for name, tc := range map[string]struct {
		a, b    results.Aggregate
		caution stats.Caution
	}{
		"the denominator's interval holds 0": {firm, stats.Aggregate([]float64{-3, 1, 5, -2, 6}), stats.DenominatorNearZero},
		"an interval beyond all measure":     {results.Aggregate{N: 5, Mean: 1, StdDev: 1e90}, results.Aggregate{N: 5, Mean: 1e-20}, stats.DenominatorNearZero},
		"one trial of the numerator":         {stats.Aggregate([]float64{10}), firm, stats.OneSample},
		"one trial of the denominator":       {firm, stats.Aggregate([]float64{10}), stats.OneSample},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := stats.Ratio(tc.a, tc.b)
			if err != nil {
				t.Fatal(err)
			}
			if r.Known || !slices.Contains(r.Cautions, tc.caution) || r.Low != r.Value || r.High != r.Value {
				t.Errorf("ratio = %+v, want the caution %s and no interval", r, tc.caution)
			}
		})
	}
	if r, err := stats.Ratio(firm, stats.Aggregate([]float64{1, -1})); err == nil {
		t.Errorf("ratio to a mean of 0 = %+v, want an error", r)
	}
}
