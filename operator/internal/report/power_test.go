package report_test

import (
	"math"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/results"
)

// The power of failure-fp's claims with three repetitions, as an independent simulation of the order of
// the peaks found it. Ours has 200 experiments, so that 10 points are 3 standard errors.
func TestPowerOfFailureFP(t *testing.T) {
	b, err := os.ReadFile("../../../experiments/failure-fp.yaml")
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
	for deviation, want := range map[float64]map[string]float64{
		0.02: {"order-near-saturation": 0.99},
		0.03: {"order-near-saturation": 0.86},
		0.05: {"order-near-saturation": 0.35},
	} {
		seen := 0
		for _, p := range report.Power(exp.Spec, axes, 3, deviation) {
			t.Logf("deviation %.0f%%: %+v", 100*deviation, p)
			share, listed := want[p.Claim]
			if !listed {
				continue
			}
			seen++
			if !p.Known || math.Abs(p.Share-share) > 0.10 {
				t.Errorf("deviation %.0f%%: %+v, want a share of %.2f", 100*deviation, p, share)
			}
		}
		if seen != len(want) {
			t.Errorf("%d of %d claims were found", seen, len(want))
		}
	}
}
