package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

func TestBinsThatLieInTheWindow(t *testing.T) {
	line := results.Timeline{IntervalMillis: 100, FirstMillis: -200, Committed: []int64{9, 9, 4, 5, 10, 9}, LatencySumMicros: []int64{9, 9, 40, 100, 30, 9}}
	for name, tc := range map[string]struct {
		nanos               int64
		committed           []int64
		throughput, latency []float64
	}{
		"whole bins":               {300e6, nil, []float64{4, 5, 10}, []float64{10, 20, 3}},
		"a bin that is cut":        {299e6, nil, []float64{4, 5}, []float64{10, 20}},
		"one without transactions": {300e6, []int64{9, 9, 4, 0, 10, 9}, []float64{4, 0, 10}, nil},
		"none at its end":          {300e6, []int64{0, 0, 4, 5, 10, 0}, []float64{4, 5, 10}, []float64{10, 20, 3}},
		"no bin":                   {99e6, nil, nil, nil},
	} {
		of := line
		if tc.committed != nil {
			of.Committed = tc.committed
		}
		throughput, latency := windowBins(of, tc.nanos)
		if diff := cmp.Diff([][]float64{tc.throughput, tc.latency}, [][]float64{throughput, latency}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFaultsInTheWindow(t *testing.T) {
	for name, tc := range map[string]struct {
		fault results.FaultRecord
		want  bool
	}{
		"in it": {results.FaultRecord{StartedMillis: 5, ConfirmedMillis: 6}, true}, "before it": {results.FaultRecord{StartedMillis: -6, ConfirmedMillis: -5}, false}, "confirmed in it": {results.FaultRecord{StartedMillis: -6, ConfirmedMillis: 0}, true},
		"at its end": {results.FaultRecord{StartedMillis: 10, ConfirmedMillis: 10}, false}, "just in it": {results.FaultRecord{StartedMillis: 9.99, ConfirmedMillis: 12}, true}, "after it": {results.FaultRecord{StartedMillis: 11}, false},
		"failed": {results.FaultRecord{StartedMillis: 5, Error: "x"}, false}, "skipped": {results.FaultRecord{StartedMillis: 5, Skipped: true}, false},
	} {
		if got := inWindow(tc.fault, 10e6); got != tc.want {
			t.Errorf("a fault %s counts: %t", name, got)
		}
		check := CheckWindow(results.Trial{MeasureNanos: 10e6, Faults: []results.FaultRecord{tc.fault}})
		if (check.Unchecked == "a fault began or ended in the window") != tc.want {
			t.Errorf("a fault %s: %q", name, check.Unchecked)
		}
	}
	if got := CheckWindow(results.Trial{ChangingLoad: true}).Unchecked; got != "the load changes in the window" {
		t.Errorf("of a load that changes: %q", got)
	}
	if got := CheckWindow(results.Trial{}).Unchecked; got != "the trial has no timeline" {
		t.Errorf("without a timeline: %q", got)
	}
}

// Computed by hand: t is 12.706 for one degree of freedom and 4.303 for two.
func TestRunsAreComparedByTheirMeans(t *testing.T) {
	run := func(mean, deviation float64, n int) results.Aggregate {
		return results.Aggregate{Mean: mean, StdDev: deviation, N: n}
	}
	for name, tc := range map[string]struct {
		a, b             []results.Aggregate
		between          float64
		tested, hasRatio bool
		value, half      float64
	}{
		"no run": {nil, []results.Aggregate{run(1, 1, 3)}, 0, false, false, 0, math.NaN()},
		// The means are 10, 12 and 17, 19: s² = 2, and 4.3027 √2.
		"two and two": {[]results.Aggregate{run(10, 5, 3), run(12, 5, 3)}, []results.Aggregate{run(17, 5, 3), run(19, 5, 3)}, 0, true, true, 7, 4.302653 * math.Sqrt2},
		// s² = 2 by the two, and 12.7062 √2 √(1 + 1/2).
		"two and one":           {[]results.Aggregate{run(10, 5, 3), run(12, 5, 3)}, []results.Aggregate{run(17, 5, 3)}, 0, true, true, 6, 12.706205 * math.Sqrt(3)},
		"one and one, unstated": {[]results.Aggregate{run(10, 1, 3)}, []results.Aggregate{run(17, 1, 3)}, 0, false, true, 7, math.NaN()},
		"one trial each":        {[]results.Aggregate{run(10, 0, 1)}, []results.Aggregate{run(17, 0, 1)}, 0.1, false, true, 7, math.NaN()},
		// No trial differs: 10% of 10 and of 20, and the normal quantile.
		"one and one, stated": {[]results.Aggregate{run(10, 0, 3)}, []results.Aggregate{run(20, 0, 3)}, 0.1, true, true, 10, 1.959966 * math.Sqrt(5)},
		"of zero":             {[]results.Aggregate{run(-1, 1, 3), run(1, 1, 3)}, []results.Aggregate{run(5, 1, 3)}, 0, true, false, 5, 12.706205 * math.Sqrt(3)},
	} {
		c := CompareRuns(tc.a, tc.b, tc.between)
		if c.Tested != tc.tested || c.HasRatio != tc.hasRatio || math.Abs(c.Difference.Value-tc.value) > 1e-9 {
			t.Errorf("%s: tested %t, a ratio %t, difference %g; want %t, %t, %g", name, c.Tested, c.HasRatio, c.Difference.Value, tc.tested, tc.hasRatio, tc.value)
		}
		if !math.IsNaN(tc.half) && (math.Abs(c.Difference.High-c.Difference.Value-tc.half) > 1e-4 || math.Abs(c.Difference.Value-c.Difference.Low-tc.half) > 1e-4) {
			t.Errorf("%s: %+v, want %g to each side", name, c.Difference, tc.half)
		}
	}
	same := CompareRuns([]results.Aggregate{run(5, 1, 3), run(5, 1, 3)}, []results.Aggregate{run(5, 1, 3)}, 0)
	if same.P != 1 {
		t.Errorf("runs that are all alike differ by chance with P %g", same.P)
	}
	if c := CompareRuns([]results.Aggregate{run(5, 1, 3), run(5, 1, 3)}, []results.Aggregate{run(6, 1, 3)}, 0); c.P != 0 || c.A.N != 2 || c.B.N != 3 {
		t.Errorf("runs that do not vary, and another: %+v", c)
	}
}

// With one run on each side, the trials within the runs and the stated deviation between runs vary.
func TestTwoRunsWithTrialsThatVary(t *testing.T) {
	a, b := results.Aggregate{Mean: 10, StdDev: 3, N: 4}, results.Aggregate{Mean: 20, StdDev: 6, N: 9}
	c := CompareRuns([]results.Aggregate{a}, []results.Aggregate{b}, 0.1)
	// U is 9/4 and 36/9, and of the runs 1 and 4: 11.25. Satterthwaite's 11.25²/(2.25²/3 + 4²/8) is
	// 34.32, and its quantile 2.0315.
	if half := 2.0315 * math.Sqrt(11.25); math.Abs(c.Difference.High-10-half) > 1e-3 || math.Abs(10-c.Difference.Low-half) > 1e-3 {
		t.Errorf("%+v, want 10 and %g to each side", c.Difference, half)
	}
}

// Every second bin chooses where a dip is lowest, and the bins between say how low. Two halves are
// averaged.
func TestBottomOfADip(t *testing.T) {
	for name, tc := range map[string]struct {
		bins []float64
		want float64
	}{
		// 2 and 4 are lowest at even places: 1 and 3 beside them. 1 and 3 at odd ones: 4 and 10.
		"in the middle": {[]float64{8, 7, 2, 1, 4, 3, 10, 5}, (2 + 7) / 2.},
		// 4 and 2 at even places: 3 and 1. 3 and 1 at odd ones, behind which nothing lies: 4 and 2.
		"at the end": {[]float64{8, 7, 6, 5, 4, 3, 2, 1}, (2 + 3) / 2.},
		// 1 and 2 at even places: 5 and 6. 5 and 6 at odd ones: 2 and 9.
		"at the beginning": {[]float64{1, 5, 2, 6, 9, 9, 9, 9}, (5.5 + 5.5) / 2},
		"too short":        {[]float64{5, 1, 3}, 3},
	} {
		if got := bottom(append(tc.bins, 100, 100), 0, len(tc.bins), 2); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", name, got, tc.want)
		}
	}
}
