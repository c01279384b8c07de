package stats

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// placed is a run: its place in the order, and its mean.
type placed [2]float64

// readModels reads the output of testdata/models.py, which explains each number.
func readModels(t *testing.T) (cases struct {
	Windows []struct {
		Observations   []float64
		Truncation     int
		Apart, Rise, P float64
		Variance       float64
		Starts         []int
	}
	Runs []struct {
		A, B       []placed
		Difference [3]float64
		P          float64
		Widened    bool
	}
	Blocks []struct {
		Samples     [][]float64
		Ratio, Mean [3]float64
	}
}) {
	t.Helper()
	data, err := os.ReadFile("testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases.Windows) < 50 || len(cases.Runs) < 60 || len(cases.Blocks) < 60 {
		t.Fatalf("%d windows, %d runs, %d models, want 50, 60, 60", len(cases.Windows), len(cases.Runs), len(cases.Blocks))
	}
	return cases
}

// agree compares numbers to a millionth.
func agree(t *testing.T, what string, i int, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want)+1e-12 {
		t.Errorf("case %d: %s is %.12g, want %.12g", i, what, got, want)
	}
}

func interval(t *testing.T, what string, i int, got Estimate, want [3]float64) {
	t.Helper()
	for j, x := range []float64{got.Low, got.Value, got.High} {
		agree(t, what, i, x, want[j])
	}
}

func TestWindowsAgreeWithSciPy(t *testing.T) {
	drifts, apart := 0, 0
	for i, c := range readModels(t).Windows {
		z, err := batches(c.Observations, DefaultTransientTolerance)
		if err != nil {
			t.Fatal(err)
		}
		d := truncation(z)
		if d != c.Truncation {
			t.Errorf("case %d: %d batches are left out, want %d", i, d, c.Truncation)
		}
		if beyond := d > 0 && beyondNoise(z[:d], z[d:]); beyond != (c.Apart > transientDeviations) {
			t.Errorf("case %d: the start is beyond noise: %v, %g standard errors", i, beyond, c.Apart)
		}
		rise, p := drift(z)
		agree(t, "the rise", i, rise, c.Rise)
		agree(t, "P of the drift", i, p, c.P)
		variance := noise(z, c.Observations)
		agree(t, "the variance of a batch", i, variance, c.Variance)
		if starts := split(z, variance); !slices.Equal(starts, c.Starts) {
			t.Errorf("case %d: levels begin at %v, want %v", i, starts, c.Starts)
		}
		s, err := CheckStationarity(c.Observations, DefaultTransientTolerance)
		if err != nil {
			t.Fatal(err)
		}
		mean, steady := stat.Mean(c.Observations, nil), stat.Mean(c.Observations[mserBatch*c.Truncation:], nil)
		drifted := math.Abs(c.Rise)/2 > 0.03 && c.P < 0.01
		started := math.Abs(mean/steady-1) > 0.03 && c.Apart > transientDeviations
		if (len(s.Cautions) > 0) != (drifted || started) || (s.Drift != 0) != drifted {
			t.Errorf("case %d: %+v, want a drift %v, a start %v", i, s, drifted, started)
		}
		if drifted {
			drifts++
		}
		if started {
			apart++
		}
	}
	if drifts == 0 || apart == 0 {
		t.Errorf("%d windows drift, and %d have a start: the cases show too little", drifts, apart)
	}
}

func TestRunsInOrderAgreeWithSciPy(t *testing.T) {
	widened := 0
	for i, c := range readModels(t).Runs {
		side := func(all []placed) (runs []Run) {
			for _, r := range all {
				runs = append(runs, Run{Trials: Aggregate([]float64{r[1]}), Place: int(r[0])})
			}
			return runs
		}
		got := CompareRunsInOrder(side(c.A), side(c.B), 0)
		interval(t, "the difference", i, got.Difference, c.Difference)
		agree(t, "P", i, got.P, c.P)
		if got.Widened != c.Widened {
			t.Errorf("case %d: widened is %v, want %v", i, got.Widened, c.Widened)
		}
		if got.Widened {
			widened++
		}
	}
	if widened == 0 {
		t.Error("no interval is wider for the order of the runs")
	}
}

func TestBlocksAgreeWithSciPy(t *testing.T) {
	for i, c := range readModels(t).Blocks {
		b, ok := NewBlocks(c.Samples)
		if !ok {
			t.Fatalf("case %d has no model", i)
		}
		var rounds []int32
		for k := range c.Samples[0] {
			rounds = append(rounds, int32(k))
		}
		one, two := stat.Mean(c.Samples[0], nil), stat.Mean(c.Samples[1], nil)
		ratio := one / two
		interval(t, "the quotient", i, b.EstimateRatio(ratio, []BlockTerm{{0, ratio, rounds}, {1, -ratio, rounds}}), c.Ratio)
		interval(t, "the mean", i, b.Estimate(one, []BlockTerm{{0, one, rounds}}), c.Mean)
	}
}

// By hand: t is 1/sqrt(0.7), with one degree of freedom. A slope of 1 with noise is no exact line.
func TestDriftOfOnePerBatch(t *testing.T) {
	rise, p := drift([]float64{0.5, 0.5, 1.5, 3.5})
	if want := 1 - 2/math.Pi*math.Atan(1/math.Sqrt(0.7)); math.Abs(rise-4/1.5) > 1e-12 || math.Abs(p-want) > 1e-9 {
		t.Errorf("a rise of %g with P %g, want %g with %g", rise, p, 4/1.5, want)
	}
}
