package stats_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results/stats"
)

func TestBalance(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes []float64
		want  stats.Balance
	}{
		"perfect":       {[]float64{5, 5, 5}, stats.Balance{Mean: 5, MaxToMean: 1}},
		"by hand":       {[]float64{2, 4, 4, 4, 5, 5, 7, 9}, stats.Balance{Mean: 5, StdDev: 2, CoV: 0.4, MaxToMean: 1.8}},
		"one node":      {[]float64{3}, stats.Balance{Mean: 3, MaxToMean: 1}},
		"one does all":  {[]float64{0, 0, 0, 8}, stats.Balance{Mean: 2, StdDev: math.Sqrt(12), CoV: math.Sqrt(3), MaxToMean: 4}},
		"nothing to do": {[]float64{0, 0}, stats.Balance{MaxToMean: 1}},
		"1 at most":     {[]float64{1, 0}, stats.Balance{Mean: 0.5, StdDev: 0.5, CoV: 1, MaxToMean: 2}},
	} {
		got, err := stats.BalanceOf(tc.nodes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got, near(1e-12)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, bad := range map[string][]float64{"none": nil, "negative": {1, -1}, "NaN": {math.NaN()}, "infinite": {math.Inf(1)}} {
		if b, err := stats.BalanceOf(bad); err == nil {
			t.Errorf("%s: BalanceOf = %+v, want an error", name, b)
		}
	}
}

// A load that moves from node to node is balanced in total and never at any time.
func TestMeanCoVSeesWhatTotalsHide(t *testing.T) {
	moving := [][]float64{{8, 0, 0, 0}, {0, 8, 0, 0}, {0, 0, 8, 0}, {0, 0, 0, 8}}
	if got, err := stats.MeanCoV(moving); err != nil || math.Abs(got-math.Sqrt(3)) > 1e-12 {
		t.Errorf("MeanCoV = %g, %v, want the square root of 3", got, err)
	}
	if _, err := stats.MeanCoV(nil); err == nil {
		t.Error("MeanCoV of nothing: want an error")
	}
	if _, err := stats.MeanCoV([][]float64{{1}, {}}); err == nil {
		t.Error("MeanCoV of an interval without nodes: want an error")
	}
}

func TestShareOutside(t *testing.T) {
	if got, err := stats.ShareOutside([]float64{1, 2, 3, 4}, 2, 3); err != nil || got != 0.5 {
		t.Errorf("ShareOutside = %g, %v, want 0.5: the bounds belong to the range", got, err)
	}
	for name, tc := range map[string]struct {
		values    []float64
		low, high float64
	}{"none": {nil, 0, 1}, "no range": {[]float64{1}, 2, 1}, "NaN": {[]float64{math.NaN()}, 0, 1}, "NaN as a bound": {[]float64{1}, math.NaN(), 1}} {
		if got, err := stats.ShareOutside(tc.values, tc.low, tc.high); err == nil {
			t.Errorf("%s: ShareOutside = %g, want an error", name, got)
		}
	}
}
