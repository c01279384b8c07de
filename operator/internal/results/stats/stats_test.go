package stats_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// The extra hours of sleep of ten patients with two drugs: Student (1908), "The probable error of a
// mean", from Cushny and Peebles; the data set "sleep" of R.
var (
	sleepOne = []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	sleepTwo = []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
)

func near(digits float64) cmp.Option { return cmpopts.EquateApprox(0, digits) }

func TestAggregate(t *testing.T) {
	for name, tc := range map[string]struct {
		samples []float64
		want    results.Aggregate
	}{
		"nothing": {want: results.Aggregate{}},
		"one sample has no interval": {
			samples: []float64{4.1},
			want:    results.Aggregate{N: 1, Mean: 4.1, Min: 4.1, Max: 4.1, Low: 4.1, High: 4.1},
		},
		// R: t.test(sleep$extra[1:10]) gives 0.75 and [-0.5297804, 2.0297804].
		"Student's first drug": {
			samples: sleepOne,
			want:    results.Aggregate{N: 10, Mean: 0.75, StdDev: 1.789010, Min: -1.6, Max: 3.7, Low: -0.5297804, High: 2.0297804},
		},
		"no variation": {
			samples: []float64{7, 7, 7},
			want:    results.Aggregate{N: 3, Mean: 7, Min: 7, Max: 7, Low: 7, High: 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, stats.Aggregate(tc.samples), near(1e-6)); diff != "" {
				t.Errorf("Aggregate (-want +got):\n%s", diff)
			}
		})
	}
}

// The quantiles that tables of Student's distribution print for a two-sided level of 95%.
func TestIntervalUsesStudentsQuantile(t *testing.T) {
	for n, want := range map[int]float64{2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 10: 2.262, 21: 2.086, 31: 2.042, 121: 1.980} {
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = float64(i % 3)
		}
		a := stats.Aggregate(samples)
		got := (a.High - a.Low) / 2 / (a.StdDev / math.Sqrt(float64(n)))
		if math.Abs(got-want) > 0.0006 {
			t.Errorf("n=%d: the interval is %.4f standard errors wide, tables say %.3f", n, got, want)
		}
	}
}

func TestDifferenceIsWelchs(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b []float64
		want stats.Estimate
	}{
		// R: t.test(extra ~ group, data = sleep) gives df = 17.776 and [-3.3654832, 0.2054832].
		"Student's two drugs": {
			a: sleepOne, b: sleepTwo,
			want: stats.Estimate{Value: -1.58, Low: -3.3654832, High: 0.2054832, Known: true},
		},
		"one trial on one side": {
			a: []float64{3}, b: []float64{1, 2},
			want: stats.Estimate{Value: 1.5, Low: 1.5, High: 1.5},
		},
		"no variation": {
			a: []float64{3, 3}, b: []float64{1, 1},
			want: stats.Estimate{Value: 2, Low: 2, High: 2, Known: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := stats.Difference(stats.Aggregate(tc.a), stats.Aggregate(tc.b))
			if diff := cmp.Diff(tc.want, got, near(1e-6), cmpopts.IgnoreFields(stats.Estimate{}, "Freedom")); diff != "" {
				t.Errorf("Difference (-want +got):\n%s", diff)
			}
		})
	}
}

// A 95% interval must hold the truth in about 95% of experiments: 2000 of them, so the standard
// deviation of the share is 0.5%.
func TestCoverage(t *testing.T) {
	const draws = 2000
	var rng *rand.Rand // of one case, so that the order of the cases does not matter
	normal := func(n int, mean, deviation float64) results.Aggregate {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = mean + deviation*rng.NormFloat64()
		}
		return stats.Aggregate(xs)
	}
	for name, tc := range map[string]struct {
		covered   func() bool
		low, high float64
	}{
		"mean of three": {func() bool {
			a := normal(3, 10, 2)
			return a.Low <= 10 && 10 <= a.High
		}, 0.935, 0.965},
		"difference, equal deviations": {func() bool {
			d := stats.Difference(normal(5, 10, 1), normal(5, 7, 1))
			return d.Low <= 3 && 3 <= d.High
		}, 0.935, 0.97},
		"difference, unequal deviations and sizes": {func() bool {
			d := stats.Difference(normal(4, 10, 5), normal(12, 7, 1))
			return d.Low <= 3 && 3 <= d.High
		}, 0.93, 0.97},
		"ratio": {func() bool {
			r, err := stats.Ratio(normal(6, 10, 1), normal(6, 5, 0.4))
			return err == nil && r.Known && r.Low <= 2 && 2 <= r.High
		}, 0.93, 0.97},
	} {
		t.Run(name, func(t *testing.T) {
			rng = rand.New(rand.NewPCG(7, 2026))
			hits := 0
			for range draws {
				if tc.covered() {
					hits++
				}
			}
			if share := float64(hits) / draws; share < tc.low || share > tc.high {
				t.Errorf("%.1f%% of the intervals hold the truth, want %.1f%% to %.1f%%", 100*share, 100*tc.low, 100*tc.high)
			}
		})
	}
}

func TestPointsCountOnlyTrialsThatSucceeded(t *testing.T) {
	at := map[string]string{"clients": "5"}
	line := func(point int32, outcome string, throughput float64) results.TrialLine {
		return results.TrialLine{PointIndex: point, Coordinates: at, Outcome: outcome, Throughput: throughput, Committed: 60, Aborted: 20, Errors: 15, Timeouts: 5}
	}
	got := stats.Points([]results.TrialLine{
		line(1, stats.Succeeded, 100), line(0, stats.Failed, 0), line(1, stats.Invalid, 1e9), line(1, stats.Succeeded, 200),
	})
	if len(got) != 2 || got[0].Index != 0 || got[1].Index != 1 {
		t.Fatalf("points = %+v, want 0 and 1 in order", got)
	}
	if p := got[0]; p.Valid != 0 || p.Failed != 1 || len(p.Metrics) != 0 {
		t.Errorf("a point whose trials all failed: %+v", p)
	}
	p := got[1]
	if p.Valid != 2 || p.Invalid != 1 || p.Failed != 0 {
		t.Errorf("valid %d, invalid %d, failed %d; want 2, 1, 0", p.Valid, p.Invalid, p.Failed)
	}
	if a := p.Metrics[stats.Throughput]; a.N != 2 || a.Mean != 150 {
		t.Errorf("throughput %+v: the invalid trial must not be in it", a)
	}
	if rate := p.Metrics[stats.AbortRate].Mean; rate != 0.2 {
		t.Errorf("abort rate %g, want 20 of 100 attempts that ended", rate)
	}
}

func TestWarning(t *testing.T) {
	for n, want := range map[int]string{0: "no valid trial", 1: "no interval", 2: "12.7 standard errors", 3: "4.3 standard errors"} {
		if got := stats.Warning(n); !strings.Contains(got, want) {
			t.Errorf("Warning(%d) = %q, want it to say %q", n, got, want)
		}
	}
	if got := stats.Warning(5); got != "" {
		t.Errorf("Warning(5) = %q, want none", got)
	}
}

// Tables, plots and sentences write a number by this rule alone.
func TestRounded(t *testing.T) {
	for want, of := range map[string][2]float64{
		"4.12": {4.123, 0.14}, "3085": {3085.4, 42}, "2.60": {2.6, 0}, "0.373": {0.3731, 0}, "21919": {21918.76, 0}, "49.6": {49.556, 0}, "0.0": {-0.00001, 1}, "0": {0, 0}, "-0.50": {-0.5, 0.9},
	} {
		if got := stats.Rounded(of[0], of[1]); got != want {
			t.Errorf("Rounded(%g, %g) = %s, want %s", of[0], of[1], got, want)
		}
	}
}

func TestDecimals(t *testing.T) {
	for name, tc := range map[string]struct {
		value, half float64
		want        int
	}{
		"4.123 ± 0.14":              {4.123, 0.14, 2},
		"4.123 ± 1.4":               {4.123, 1.4, 1},
		"3085 ± 42":                 {3085, 42, 0},
		"3085 ± 420":                {3085, 420, 0},
		"2.6 without an interval":   {2.6, 0, 2},
		"0.026 without an interval": {0.026, 0, 4},
		"3085 without an interval":  {3085, 0, 0},
		"a tiny interval":           {1, 1e-9, 4},
		"zero":                      {0, 0, 0},
		"infinity":                  {math.Inf(1), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stats.Decimals(tc.value, tc.half); got != tc.want {
				t.Errorf("Decimals(%g, %g) = %d, want %d", tc.value, tc.half, got, tc.want)
			}
		})
	}
}
