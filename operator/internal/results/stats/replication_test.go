package stats_test

import (
	"math"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// The numbers are those of testdata/replications.py, by SciPy's roots.
func TestReplicationsAgreeWithSciPy(t *testing.T) {
	for _, c := range [][5]float64{
		{0.05, 0.2, 0.02, 0.0764284356356, 0.999999999677},
		{0.05, 0.05, 0.02, 0.0764284356356, 0.0931803836112},
		{3.0, -1.0, 0.5, 4.58570613814, 2.81394303521e-29},
	} {
		least, p := stats.SmallTelescopes(c[0], c[1], c[2])
		if math.Abs(least/c[3]-1) > 1e-9 || math.Abs(p/c[4]-1) > 1e-6 {
			t.Errorf("small telescopes of %v: %.12g, %.12g", c[:3], least, p)
		}
	}
	for _, c := range [][4]float64{
		{3.0, 3.0, 1.0, 0.0169474267623},
		{4.0, 2.5, 2.0, 0.0251145032691},
		{2.0, 6.0, 0.3, 0.0247125077542},
		{5.0, -2.0, 1.5, 0.964603381528},
		{20.0, 15.0, 9.0, 3.96981799986e-18},
	} {
		if p := stats.ScepticalP(c[0], c[1], c[2]); math.Abs(p/c[3]-1) > 1e-6 {
			t.Errorf("sceptical P of %v: %.12g", c[:3], p)
		}
	}
	if p := stats.ScepticalP(3, 0, 1); p != 0.5 {
		t.Errorf("sceptical P of no effect: %g", p)
	}
}
