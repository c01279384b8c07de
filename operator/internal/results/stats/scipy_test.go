package stats_test

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// sciPyCase is one of the cases that testdata/cases.py writes. The script explains each value. A
// nil slice or pointer is a value that does not exist.
type sciPyCase struct {
	A, B         []float64
	Mean, StdDev float64
	T            []float64
	Median       []float64 // value, low, high, coverage
	Welch        []float64
	Fieller      []float64
	U            float64
	UP           *float64
	Paired       []float64
	Tau, TauP    *float64
	Slope        *float64
}

func readSciPy(t *testing.T) []sciPyCase {
	t.Helper()
	f, err := os.Open("testdata/scipy.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []sciPyCase
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// agrees compares to 1e-9 of the value, or of scale where the value is a small difference of large
// numbers.
func agrees(got, want, scale float64) bool {
	return math.Abs(got-want) <= 1e-9*math.Max(math.Abs(want), scale)
}

func TestAgreesWithSciPy(t *testing.T) {
	cases := readSciPy(t)
	if len(cases) != 1000 {
		t.Fatalf("%d cases, want 1000", len(cases))
	}
	compared := map[string]int{}
	for i, c := range cases {
		compare := func(what string, scale float64, got, want []float64) {
			t.Helper()
			if len(got) != len(want) {
				t.Errorf("case %d: %s = %v, SciPy says %v", i, what, got, want)
				return
			}
			compared[what]++
			for j := range got {
				if !agrees(got[j], want[j], scale) {
					t.Errorf("case %d: %s = %v, SciPy says %v (a=%v b=%v)", i, what, got, want, c.A, c.B)
					return
				}
			}
		}
		a, err := stats.Summarize(c.A)
		if err != nil {
			t.Fatal(err)
		}
		b, err := stats.Summarize(c.B)
		if err != nil {
			t.Fatal(err)
		}
		deviation := math.Max(a.StdDev, b.StdDev)
		compare("mean", 0, []float64{a.Mean}, []float64{c.Mean})
		compare("standard deviation", 0, []float64{a.StdDev}, []float64{c.StdDev})
		if c.T != nil {
			compare("Student's interval", a.StdDev, []float64{a.Low, a.High}, c.T)
		}
		compare("median", 0, []float64{a.Median.Value, a.Median.Low, a.Median.High, a.Median.Coverage}, c.Median)
		if c.Welch != nil {
			d := stats.Difference(a.Aggregate, b.Aggregate)
			compare("Welch's interval", deviation, []float64{d.Low, d.High}, c.Welch)
		}
		compareRatio(t, i, c, a, b, compare)
		u, err := stats.MannWhitney(c.A, c.B)
		if err != nil {
			t.Fatal(err)
		}
		compare("U", 0, []float64{u.Statistic}, []float64{c.U})
		if c.UP != nil {
			compare("p of U", 0, []float64{u.P}, []float64{*c.UP})
		}
		comparePairs(t, c, deviation, compare)
	}
	for what, n := range compared {
		if n < 700 {
			t.Errorf("%s was compared in %d cases only", what, n)
		}
	}
	t.Logf("compared: %v", compared)
}

func compareRatio(t *testing.T, i int, c sciPyCase, a, b stats.Summary, compare func(string, float64, []float64, []float64)) {
	t.Helper()
	r, err := stats.Ratio(a.Aggregate, b.Aggregate)
	if err != nil {
		t.Fatal(err)
	}
	if r.Known != (c.Fieller != nil) {
		t.Errorf("case %d: the ratio has an interval: %v; SciPy's roots are %v", i, r.Known, c.Fieller)
	}
	if r.Known {
		compare("Fieller's interval", math.Abs(r.Value), []float64{r.Low, r.High}, c.Fieller)
	}
}

func comparePairs(t *testing.T, c sciPyCase, deviation float64, compare func(string, float64, []float64, []float64)) {
	t.Helper()
	k := min(len(c.A), len(c.B))
	p, _, err := stats.Paired(c.A[:k], c.B[:k])
	if err != nil {
		t.Fatal(err)
	}
	if c.Paired != nil {
		compare("the paired interval", deviation, []float64{p.Low, p.High}, c.Paired)
	}
	trend, err := stats.FindTrend(c.A[:k], c.B[:k])
	if err != nil {
		t.Fatal(err)
	}
	if c.Tau != nil && c.TauP != nil {
		compare("tau", 1, []float64{trend.Statistic}, []float64{*c.Tau})
		compare("p of tau", 0, []float64{trend.P}, []float64{*c.TauP})
	}
	if c.Slope != nil {
		compare("slope", 0, []float64{trend.Slope}, []float64{*c.Slope})
	}
}
