package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// The levels are those of another program: testdata/looks.py, which integrates by Simpson's rule on
// 4,001 points, and compares two looks with SciPy's bivariate normal distribution.
func TestLevelsOfLooks(t *testing.T) {
	for name, tc := range map[string]struct {
		looks stats.Looks
		want  []float64
	}{
		"one look":    {stats.Looks{First: 3, Last: 3}, []float64{0.050000000}},
		"two looks":   {stats.Looks{First: 3, Last: 4}, []float64{0.037500000, 0.029108928}},
		"eight looks": {stats.Looks{First: 3, Last: 10}, []float64{0.015000000, 0.010646813, 0.011436111, 0.012727513, 0.014188539, 0.015737359, 0.017344266, 0.018995842}},
		"sixteen looks": {stats.Looks{First: 5, Last: 20}, []float64{0.012500000, 0.007558003, 0.007424581, 0.007795063, 0.008332023, 0.008947179, 0.009607303, 0.010297136,
			0.011008692, 0.011737383, 0.012480375, 0.013235813, 0.014002425, 0.014779303, 0.015565773, 0.016361324}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.looks.Count() != len(tc.want) {
				t.Fatalf("%d looks, want %d", tc.looks.Count(), len(tc.want))
			}
			for i, want := range tc.want {
				if got := tc.looks.Level(tc.looks.First + i); math.Abs(got-want) > 1e-6*want {
					t.Errorf("look %d: level %.9f, want %.9f", i+1, got, want)
				}
			}
			if tc.looks.Level(1) != tc.looks.Level(tc.looks.First) || tc.looks.Level(1000) != tc.looks.Level(tc.looks.Last) {
				t.Error("before the first look and after the last the level is another")
			}
		})
	}
}

// Among sums of normal values, 5% cross a bound at some look.
func TestLooksTogetherAreWrongInFivePercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, looks := range []stats.Looks{{First: 3, Last: 12}, {First: 10, Last: 100}} {
		const experiments = 20000
		crossed := 0
		for range experiments {
			var sum float64
			for n := 1; n <= looks.Last; n++ {
				sum += rng.NormFloat64()
				if n >= looks.First && math.Erfc(math.Abs(sum)/math.Sqrt(2*float64(n))) < looks.Level(n) {
					crossed++
					break
				}
			}
		}
		if share := float64(crossed) / experiments; math.Abs(share-0.05) > 0.0047 { // three standard errors
			t.Errorf("%+v: %.2f%% cross a bound, want 5%%", looks, 100*share)
		}
	}
}

func TestEstimateAtALevel(t *testing.T) {
	xs := []float64{9, 10, 11, 10.5}
	a := stats.Aggregate(xs)
	plain := stats.Propagate(a.Mean, []stats.Term{{Gradient: 1, Sample: a}})
	log := stats.PropagateRatio(a.Mean, []stats.Term{{Gradient: 1, Sample: a}})
	half := 5.840909310 * a.StdDev / 2 // the 99.5% quantile of t with 3 degrees of freedom, by SciPy
	for name, tc := range map[string]struct {
		got       stats.Estimate
		low, high float64
	}{
		"mean":                {plain.At(0.01), a.Mean - half, a.Mean + half},
		"logarithm":           {log.At(0.01), a.Mean * math.Exp(-half/a.Mean), a.Mean * math.Exp(half/a.Mean)},
		"there and back":      {plain.At(0.01).At(0.05), plain.Low, plain.High},
		"a known deviation":   {stats.Estimate{Low: -stats.NormalQuantile, High: stats.NormalQuantile, Known: true}.At(0.01), -2.575829304, 2.575829304},
		"an end that is open": {stats.Estimate{Value: 1, Low: math.Inf(-1), High: 2, Known: true, Freedom: 4}.At(0.01), math.Inf(-1), 1 + 4.604094871/2.776445105},
		"no interval":         {stats.Estimate{Value: 1, Low: 1, High: 1}.At(0.01), 1, 1},
	} {
		if !agrees(tc.got.Low, tc.low, 10) && tc.got.Low != tc.low || !agrees(tc.got.High, tc.high, 10) {
			t.Errorf("%s: [%v, %v], want [%v, %v]", name, tc.got.Low, tc.got.High, tc.low, tc.high)
		}
	}
}

// The chance agrees with experiments that go on from where the estimate is.
func TestChanceOfTheLastLook(t *testing.T) {
	looks := stats.Looks{First: 3, Last: 20}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, distance := range []float64{-1, 0.5, 2} { // of the estimate above 0, in standard errors
		const n, experiments = 10, 40000
		se := 1 / math.Sqrt(n)
		e := stats.Estimate{Value: distance * se, Low: (distance - stats.NormalQuantile) * se, High: (distance + stats.NormalQuantile) * se, Known: true}
		got, known := looks.Chance(e, n, 0, math.Inf(1))
		if !known {
			t.Fatal("not known")
		}
		decided := 0
		quantile := stats.Estimate{Level: looks.Level(looks.Last)}.Quantile()
		for range experiments {
			truth := e.Value + se*rng.NormFloat64()
			rest := truth + rng.NormFloat64()/math.Sqrt(float64(looks.Last-n))
			last := (e.Value*n + rest*float64(looks.Last-n)) / float64(looks.Last)
			if math.Abs(last) > quantile/math.Sqrt(float64(looks.Last)) {
				decided++
			}
		}
		if want := float64(decided) / experiments; math.Abs(got-want) > 0.01 {
			t.Errorf("%v standard errors above 0: chance %.3f, simulated %.3f", distance, got, want)
		}
	}
	if chance, known := looks.Chance(stats.Estimate{Value: 1, Low: 0, High: 2, Known: true}, 20, 0, 3); chance != 0 || !known {
		t.Errorf("after the last look the chance is %v, %v", chance, known)
	}
	if _, known := looks.Chance(stats.Estimate{Value: 1}, 5, 0, 3); known {
		t.Error("without an interval there is a chance")
	}
}
