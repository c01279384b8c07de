package integration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/internal/testkit/refusals"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// edit puts a value at a path.
type edit struct{ path, value string }

// Whoever applies a specification that cannot work is told so at once, and how to repair it.
func TestWrongExperimentsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system := sample(t, "systems/driver.yaml")
	for _, object := range refusals.Systems(system.Object) {
		s := &unstructured.Unstructured{Object: object}
		s.SetNamespace(ns)
		if err := env.Client.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	refuse(t, env, ns, "experiment-faults.yaml", refusals.WrongExperiments)
}

func TestWrongSystemsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	refuse(t, env, env.Namespace(t), "systems/driver.yaml", refusals.WrongSystems)
}

func refuse(t *testing.T, env *testenv.Env, ns, file string, tests map[string]refusals.Wrong) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: tc.Apply(sample(t, file).Object)}
			obj.SetNamespace(ns)
			err := apply(t, env, obj)
			if err == nil {
				t.Fatal("accepted")
			}
			for what, want := range map[string]string{"field": tc.Field, "value": tc.Value, "right": tc.Right} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the refusal does not name the %s, %q:\n%v", what, want, err)
				}
			}
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsForbidden(err) {
				t.Errorf("refused with %s, want a refusal of the specification", apierrors.ReasonForError(err))
			}
		})
	}
}
