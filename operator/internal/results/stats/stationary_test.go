package stats_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/results/stats"
)

// window is 20 s of bins of 100 ms: 100 transactions in each, with a noise of 10% and whatever
// shape adds.
func window(rng *rand.Rand, shape func(i int) float64) []float64 {
	xs := make([]float64, 200)
	for i := range xs {
		xs[i] = math.Max(0, 100*shape(i)+10*rng.NormFloat64())
	}
	return xs
}

func TestCheckStationarity(t *testing.T) {
	const experiments = 500
	for name, tc := range map[string]struct {
		shape         func(i int) float64
		least, most   float64 // share of windows that are not stationary
		transientFrom int
		transientTo   int
	}{
		"steady":                        {shape: func(int) float64 { return 1 }, most: 0.01, transientTo: 100},
		"the first 4 s at half":         {shape: step0(40, 0.5), least: 0.99, most: 1, transientFrom: 35, transientTo: 90},
		"the first 4 s faster by half":  {shape: step0(40, 1.5), least: 0.99, most: 1, transientFrom: 35, transientTo: 90},
		"the first second stalls":       {shape: step0(10, 0), least: 0.1, most: 1, transientFrom: 10, transientTo: 80},
		"half a second stalls: 2.5%":    {shape: step0(5, 0), most: 0.03, transientFrom: 5, transientTo: 80},
		"a drift from 80% to 120%":      {shape: func(i int) float64 { return 0.8 + 0.4*float64(i)/200 }, least: 0.9, most: 1, transientFrom: 50, transientTo: 100},
		"a drift of 1% changes nothing": {shape: func(i int) float64 { return 0.995 + 0.01*float64(i)/200 }, most: 0.01, transientTo: 100},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2026, 5))
			unsteady, outside := 0, 0
			for range experiments {
				s, err := stats.CheckStationarity(window(rng, tc.shape), stats.DefaultTransientTolerance)
				if err != nil {
					t.Fatal(err)
				}
				if len(s.Cautions) > 0 {
					unsteady++
				}
				if s.Transient < tc.transientFrom || s.Transient > tc.transientTo {
					outside++
				}
			}
			if share := float64(unsteady) / experiments; share < tc.least || share > tc.most {
				t.Errorf("%.1f%% of the windows are called not stationary, want %.0f%% to %.0f%%", 100*share, 100*tc.least, 100*tc.most)
			}
			if outside > experiments/10 {
				t.Errorf("the transient is outside of %d to %d bins in %d of %d windows", tc.transientFrom, tc.transientTo, outside, experiments)
			}
		})
	}
}

// Noise alone must not count as a transient. The table has, by the rate of random transactions
// (Poisson), how many of 1000 steady windows are called not stationary. Few transactions in a short
// window vary by much more than the tolerance.
func TestSteadyNoiseIsStationary(t *testing.T) {
	const windows = 1000
	for _, seconds := range []int{5, 10, 20, 60} {
		for _, rate := range []float64{5, 20, 100, 1000} {
			rng := rand.New(rand.NewPCG(2026, 11))
			alarms, counted := 0, 0
			for range windows {
				xs := make([]float64, 10*seconds)
				for at := rng.ExpFloat64() / rate; at < float64(seconds); at += rng.ExpFloat64() / rate {
					xs[int(10*at)]++
				}
				s, err := stats.CheckStationarity(xs, stats.DefaultTransientTolerance)
				if err != nil {
					continue // nothing at all happened
				}
				counted++
				alarms += len(s.Cautions)
			}
			share := float64(alarms) / float64(counted)
			t.Logf("%d s, %.0f tx/s: %.1f%%", seconds, rate, 100*share)
			if share > 0.05 {
				t.Errorf("%.1f%% of the steady windows of %d s with %.0f tx/s are called not stationary, want 5%% at most", 100*share, seconds, rate)
			}
		}
	}
}

// step0 is level for the first bins, and 1 after.
func step0(bins int, level float64) func(int) float64 {
	return func(i int) float64 {
		if i < bins {
			return level
		}
		return 1
	}
}

// Batches of 5 rise from 2 by 5 each to 197, without noise: 40 steps of 5, by a mean of 99.5.
func TestAStraightLineIsADrift(t *testing.T) {
	var line []float64
	for i := range 200 {
		line = append(line, float64(i))
	}
	s, err := stats.CheckStationarity(line, stats.DefaultTransientTolerance)
	if err != nil || math.Abs(s.Drift-200/99.5) > 1e-12 || len(s.Cautions) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestCheckStationarityRefuses(t *testing.T) {
	steady := make([]float64, 100)
	for i := range steady {
		steady[i] = 7
	}
	if s, err := stats.CheckStationarity(steady, 0.05); err != nil || s.Transient != 0 || s.Bias != 0 || len(s.Cautions) > 0 {
		t.Errorf("a window without noise: %+v, %v", s, err)
	}
	with := func(x float64) []float64 {
		return append(append([]float64{}, steady...), x)
	}
	for name, tc := range map[string]struct {
		observations []float64
		tolerance    float64
	}{
		"too few": {steady[:49], 0.05}, "NaN": {with(math.NaN()), 0.05}, "negative": {with(-1), 0.05}, "infinite": {with(math.Inf(1)), 0.05},
		"no tolerance": {steady, 0}, "nothing happened": {make([]float64, 100), 0.05},
	} {
		if s, err := stats.CheckStationarity(tc.observations, tc.tolerance); err == nil {
			t.Errorf("%s: CheckStationarity = %+v, want an error", name, s)
		}
	}
	first := append([]float64{7, 7, 7, 7, 7}, make([]float64, 95)...) // one batch, then nothing
	if s, err := stats.CheckStationarity(first, 0.05); err == nil || !strings.Contains(err.Error(), "in the last 95 observations") {
		t.Errorf("nothing after the first batch: %+v, %v", s, err)
	}
}

// FindChanges sees changes after the start of a window. CheckStationarity does not: it called most
// of these windows steady every time.
func TestFindChanges(t *testing.T) {
	const experiments = 300
	from := func(i int, level float64) func(int) float64 {
		return func(k int) float64 {
			if k >= i {
				return level
			}
			return 1
		}
	}
	for name, tc := range map[string]struct {
		shape       func(i int) float64
		least, most float64
		ends        int
	}{
		"steady":                                {shape: func(int) float64 { return 1 }, most: 0.01},
		"a drift of 1% changes nothing":         {shape: func(i int) float64 { return 0.995 + 0.01*float64(i)/200 }, most: 0.01},
		"30% less from 75% of the window on":    {shape: from(150, 0.7), least: 0.99, most: 1},
		"clients end at 85%":                    {shape: from(170, 0), least: 0.99, most: 1, ends: 30},
		"clients end one second early":          {shape: from(190, 0), least: 0.99, most: 1, ends: 10},
		"two fifths of the clients end at 60%":  {shape: from(120, 0.6), least: 0.99, most: 1},
		"the first 4 s at half":                 {shape: step0(40, 0.5), least: 0.99, most: 1},
		"a stall of 2 s in the middle":          {shape: func(i int) float64 { return map[bool]float64{true: 0, false: 1}[i >= 90 && i < 110] }, least: 0.99, most: 1},
		"a warm-up from 50%, over in 2 s":       {shape: func(i int) float64 { return 1 - 0.5*math.Exp(-float64(i)/20) }, most: 1},
		"2% less from the middle on is nothing": {shape: from(100, 0.98), most: 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2026, 7))
			seen, ended := 0, 0
			for range experiments {
				c, err := stats.FindChanges(window(rng, tc.shape), stats.DefaultTransientTolerance)
				if err != nil {
					t.Fatal(err)
				}
				if len(c.Cautions) > 0 {
					seen++
				}
				if c.Ends == tc.ends {
					ended++
				}
			}
			if share := float64(seen) / experiments; share < tc.least || share > tc.most {
				t.Errorf("%.1f%% of the windows are called not stationary, want %.0f%% to %.0f%%", 100*share, 100*tc.least, 100*tc.most)
			}
			if share := float64(ended) / experiments; share < 0.95 {
				t.Errorf("%d observations at the end are seen to be empty in %.1f%% of the windows", tc.ends, 100*share)
			}
		})
	}
	// Few transactions in a bin: noise alone is no change.
	rng := rand.New(rand.NewPCG(1, 1))
	seen := 0
	for range experiments {
		xs := make([]float64, 200)
		for i := range xs {
			xs[i] = distuv.Poisson{Lambda: 5, Src: rng}.Rand()
		}
		c, err := stats.FindChanges(xs, stats.DefaultTransientTolerance)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Cautions) > 0 {
			seen++
		}
	}
	if seen > experiments*3/100 {
		t.Errorf("%d of %d steady windows with 50 transactions a second are called not stationary", seen, experiments)
	}
}
