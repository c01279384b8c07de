package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The installed webhook rejects a mistake in a spec when the spec is applied. Its message has the
// place of the mistake and a right value.
func TestWrongSpecRefused(t *testing.T) {
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   []string
	}{
		"a parameter that does not exist": {
			func(s *v1alpha1.ExperimentSpec) {
				s.Sweep[1].Points[1].Parameters = map[string]v1alpha1.Value{"fastPth": v1alpha1.NewValue("false")}
			},
			[]string{"spec.sweep[1].points[1].parameters[fastPth]", "fastPath"},
		},
		"a claim about a point that does not exist": {
			func(s *v1alpha1.ExperimentSpec) { s.Claims[0].Expr = "mean_latency(variant='idle', clients=10) < 3ms" },
			[]string{"spec.claims[0].expr", "idle", "ideal"},
		},
		"a fault on a replica that does not exist": {
			func(s *v1alpha1.ExperimentSpec) { s.Faults[0].NodeKill.Target.Replicas = []int32{6} },
			[]string{"spec.faults[0]", "6"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, obj := range load(t, failureFile) {
				obj.SetNamespace(e.namespace)
				tc.change(&obj.(*v1alpha1.Experiment).Spec)
				err := e.Create(t.Context(), obj, client.DryRunAll)
				if !apierrors.IsInvalid(err) {
					t.Fatalf("error = %v, want that it is invalid", err)
				}
				for _, want := range tc.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error = %v, want one with %q", err, want)
					}
				}
			}
		})
	}
	for _, obj := range load(t, basilFile) {
		s := obj.(*v1alpha1.System)
		s.Name, s.Namespace = "wrong", e.namespace
		s.Spec.Replicas.Containers[0].Command[1] = "{{.Self.Global"
		if err := e.Create(t.Context(), s, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas.containers[0].command[1]") {
			t.Errorf("a template that does not parse: error = %v, want one that names it", err)
		}
	}
}
