package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// expandWith plans an experiment with these tolerances.
func expandWith(t *testing.T, tolerances v1alpha1.Tolerances) (*plan.Plan, string) {
	t.Helper()
	exp := builders.Experiment("exp").System("echo").Set(func(s *v1alpha1.ExperimentSpec) { s.Tolerances = tolerances }).Obj()
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": builders.System("echo").Obj().Spec})
	if len(errs) == 0 {
		return p, ""
	}
	return nil, errs.ToAggregate().Error()
}

// An Experiment without tolerances gets the defaults of the API server, and every trial has them.
func TestDefaultTolerances(t *testing.T) {
	p, err := expandWith(t, v1alpha1.Tolerances{})
	if err != "" {
		t.Fatal(err)
	}
	want := v1alpha1.Tolerances{
		FaultLateness: "20ms", ChaosMeshLateness: "10s", StartSpread: "100ms", LinkDelay: "1ms", LinkLateness: "10ms", LinkLoss: "5%", Throttling: "1%", Steal: "1%", Contention: "5%",
		GeneratorLag: "10ms", ClockError: "10ms", OutOfRange: "0%",
	}
	if diff := cmp.Diff(want, p.Points[0].Template.Tolerances); diff != "" {
		t.Errorf("tolerances (-want +got):\n%s", diff)
	}
}

func TestTolerancesOutOfBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		tolerances v1alpha1.Tolerances
		want       []string
	}{
		"a share above all":        {v1alpha1.Tolerances{Throttling: "100.5%"}, []string{"spec.tolerances.throttling", `"100.5%"`, "from 0% to 100%"}},
		"a share without a sign":   {v1alpha1.Tolerances{Steal: "0.01"}, []string{"spec.tolerances.steal", `"0.01"`, "such as 1%"}},
		"a share below nothing":    {v1alpha1.Tolerances{LinkLoss: "-1%"}, []string{"spec.tolerances.linkLoss"}},
		"no number":                {v1alpha1.Tolerances{OutOfRange: "NaN%"}, []string{"spec.tolerances.outOfRange"}},
		"a lag of nothing":         {v1alpha1.Tolerances{GeneratorLag: "0s"}, []string{"spec.tolerances.generatorLag", "from 1µs"}},
		"an error of a day":        {v1alpha1.Tolerances{ClockError: "24h"}, []string{"spec.tolerances.clockError", "to 1h"}},
		"an offset below nothing":  {v1alpha1.Tolerances{ClockOffset: "-1ms"}, []string{"spec.tolerances.clockOffset"}},
		"all, and nothing, are in": {v1alpha1.Tolerances{Throttling: "100%", Steal: "0%", LinkLoss: "0.5%", ClockOffset: "1ms"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := expandWith(t, tc.tolerances)
			if (err == "") != (tc.want == nil) {
				t.Fatalf("error = %q, want %v", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err, want) {
					t.Errorf("error = %q, want one with %q", err, want)
				}
			}
		})
	}
}
