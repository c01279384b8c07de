package model_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// orderHolds simulates how often n trials for each point show the order of failure-fp's peaks, with
// nothing of package stats. It takes normal trials of the reported curves, and Student's interval
// of each difference of the greatest means. Pooled: the relative variance comes from all points, as
// in the best case of rounds as blocks. Else the interval is Welch's, from the trials of the two
// points.
func orderHolds(curves [][]float64, n int, deviation float64, pooled bool) float64 {
	const experiments = 4000
	random := rand.New(rand.NewPCG(1, 2))
	type point struct{ mean, variance float64 } // the variance is that of a trial
	holds := 0
	for range experiments {
		var peaks []point
		squares, points := 0.0, 0
		for _, curve := range curves {
			var peak point
			for _, x := range curve {
				trials := make([]float64, n)
				for i := range trials {
					trials[i] = x * (1 + deviation*random.NormFloat64())
				}
				mean, variance := stat.MeanVariance(trials, nil)
				squares, points = squares+variance/(mean*mean), points+1
				if mean > peak.mean {
					peak = point{mean, variance}
				}
			}
			peaks = append(peaks, peak)
		}
		above := func(a, b point) bool {
			va, vb := a.variance/float64(n), b.variance/float64(n)
			freedom := (va + vb) * (va + vb) / ((va*va + vb*vb) / float64(n-1))
			if pooled {
				s := squares / float64(points) / float64(n)
				va, vb, freedom = s*a.mean*a.mean, s*b.mean*b.mean, float64((points-1)*(n-1))
			}
			t := distuv.StudentsT{Nu: freedom, Sigma: 1}.Quantile(0.975)
			return a.mean-b.mean > t*math.Sqrt(va+vb)
		}
		if above(peaks[0], peaks[1]) && above(peaks[1], peaks[2]) {
			holds++
		}
	}
	return float64(holds) / experiments
}

// The power of the order of failure-fp's peaks with three repetitions lies between those of two
// judges. One knows each variance from its own three trials. The other knows one variance from all
// points, and never mistakes another point for the peak. We allow 3 points: three standard errors
// of our simulation.
func TestPowerOfFailureFP(t *testing.T) {
	b, err := os.ReadFile("../../../../../experiments/failure-fp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var exp v1alpha1.Experiment
	if err := yaml.Unmarshal(b, &exp); err != nil {
		t.Fatal(err)
	}
	var axes []results.Axis
	for _, a := range exp.Spec.Sweep {
		axis := results.Axis{Name: a.Axis}
		for _, v := range a.Values {
			axis.Values = append(axis.Values, v.String())
		}
		for _, p := range a.Points {
			axis.Values = append(axis.Values, p.Name)
		}
		axes = append(axes, axis)
	}
	const claim, slack = "order-near-saturation", 0.03
	exp.Spec.Claims = slices.DeleteFunc(exp.Spec.Claims, func(c v1alpha1.Claim) bool { return c.Name != claim })
	var curves [][]float64
	for _, variant := range []string{"ideal", "failure-nofp", "failure-fp"} {
		for _, reported := range exp.Spec.Reported {
			if reported.Metric != "Throughput" || reported.At["variant"].String() != variant {
				continue
			}
			var curve []float64
			for _, v := range reported.Values {
				x, err := strconv.ParseFloat(v.Y.String(), 64)
				if err != nil {
					t.Fatal(err)
				}
				curve = append(curve, x)
			}
			curves = append(curves, curve)
		}
	}
	if len(curves) != 3 {
		t.Fatalf("%d curves of throughput, want 3", len(curves))
	}
	for _, deviation := range []float64{0.02, 0.03, 0.05} {
		least, most := orderHolds(curves, 3, deviation, false), orderHolds(curves, 3, deviation, true)
		t.Logf("deviation %.0f%%: from %.3f (Welch) to %.3f (one variance)", 100*deviation, least, most)
		seen := false
		for _, p := range model.Power(exp.Spec, axes, 3, deviation, 0.1) {
			t.Logf("deviation %.0f%%: %+v", 100*deviation, p)
			if p.Claim != claim {
				continue
			}
			seen = true
			if !p.Known || p.Share < least-slack || p.Share > most+slack {
				t.Errorf("deviation %.0f%%: %+v, want a share from %.2f to %.2f", 100*deviation, p, least, most)
			}
		}
		if !seen {
			t.Errorf("%s was not found", claim)
		}
	}
}
