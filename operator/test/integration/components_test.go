package integration

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/internal/testkit/refusals"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

func TestWrongComponentsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system, slip := sample(t, "systems/components.yaml"), sample(t, "systems/components.yaml")
	slip.SetName("kv-slip")
	set(t, slip, "spec.clients.containers.0.command", "['{{.Components.proxi.Count}}']")
	for _, s := range []*unstructured.Unstructured{system, slip} {
		s.SetNamespace(ns)
		if err := env.Client.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	refuse(t, env, ns, "systems/components.yaml", refusals.WrongComponents)
	refuse(t, env, ns, "experiment-components.yaml", refusals.WrongFaultsOfComponents)
}
