package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/stats"
)

func series(x []float64, samples ...[]float64) stats.Series {
	return stats.Series{X: x, Samples: samples}
}

func TestCrossover(t *testing.T) {
	x := []float64{10, 20, 40}
	flat := series(x, []float64{5}, []float64{5}, []float64{5})
	for name, tc := range map[string]struct {
		a, b     stats.Series
		value    float64
		known    bool
		cautions []stats.Caution
	}{
		"between two points":  {a: series(x, []float64{1}, []float64{4}, []float64{8}), b: flat, value: 25, cautions: []stats.Caution{stats.OneSample}},
		"at a point":          {a: series(x, []float64{1}, []float64{5}, []float64{8}), b: flat, value: 20, cautions: []stats.Caution{stats.OneSample}},
		"touching is nothing": {a: series(x, []float64{1}, []float64{5}, []float64{1}), b: flat, cautions: []stats.Caution{stats.NoCrossing}},
		"above everywhere":    {a: series(x, []float64{6}, []float64{7}, []float64{8}), b: flat, cautions: []stats.Caution{stats.NoCrossing}},
		"equal everywhere":    {a: flat, b: flat, cautions: []stats.Caution{stats.NoCrossing}},
		"twice":               {a: series(x, []float64{4}, []float64{6}, []float64{4}), b: flat, value: 15, cautions: []stats.Caution{stats.ManyCrossings, stats.OneSample}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := stats.Crossover(tc.a, tc.b, rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.cautions, c.Cautions); diff != "" || c.Known != tc.known || math.Abs(c.Value-tc.value) > 1e-12 {
				t.Errorf("crossing = %+v, want %g; cautions (-want +got):\n%s", c, tc.value, diff)
			}
		})
	}
	for name, bad := range map[string][2]stats.Series{
		"one point":          {series(x[:1], []float64{1}), series(x[:1], []float64{1})},
		"different points":   {flat, series([]float64{10, 20, 41}, []float64{1}, []float64{1}, []float64{1})},
		"no samples":         {flat, series(x, []float64{1}, nil, []float64{1})},
		"points not in line": {series([]float64{1, 1}, []float64{1}, []float64{1}), series([]float64{1, 1}, []float64{1}, []float64{1})},
		"NaN":                {flat, series(x, []float64{1}, []float64{math.NaN()}, []float64{1})},
	} {
		if c, err := stats.Crossover(bad[0], bad[1], rand.New(rand.NewPCG(1, 1))); err == nil {
			t.Errorf("%s: Crossover = %+v, want an error", name, c)
		}
	}
}

// Of the crossings of two lines at 25, the bootstrap's intervals of ten repetitions must hold it in about 95%; those of three are known to be too narrow, and
// say so.
func TestCrossoverCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 6))
	x := []float64{10, 20, 30, 40}
	for n, want := range map[int][2]float64{10: {0.89, 0.98}, 3: {0.6, 0.92}} {
		held, known := 0, 0
		for range 200 {
			a, b := series(x), series(x)
			for _, at := range x {
				var rising, falling []float64
				for range n {
					rising = append(rising, 100+at+5*rng.NormFloat64())
					falling = append(falling, 150-at+5*rng.NormFloat64())
				}
				a.Samples, b.Samples = append(a.Samples, rising), append(b.Samples, falling)
			}
			c, err := stats.Crossover(a, b, rng)
			if err != nil {
				t.Fatal(err)
			}
			if c.Known {
				known++
			}
			if c.Known && c.Low <= 25 && 25 <= c.High {
				held++
			}
			if few := cmp.Equal(c.Cautions, []stats.Caution{stats.FewSamples}); few != (n < 5) {
				t.Fatalf("n=%d: cautions %v", n, c.Cautions)
			}
		}
		share := float64(held) / float64(known)
		t.Logf("n=%d: %d of 200 have an interval, %.1f%% of them hold the crossing", n, known, 100*share)
		if share < want[0] || share > want[1] || known < 190 {
			t.Errorf("n=%d: %.1f%% of the intervals hold the crossing, want %.0f%% to %.0f%%", n, 100*share, 100*want[0], 100*want[1])
		}
	}
}
