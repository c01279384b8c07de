package main

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// helm uninstall removed the manager. Only a manager can end experiments, so their namespaces hung.
func TestMayBeRemoved(t *testing.T) {
	env := testenv.Get(t)
	ns, other := env.Namespace(t), env.Namespace(t)
	create := func(o client.Object, finalizers ...string) {
		t.Helper()
		o.SetNamespace(ns)
		o.SetFinalizers(finalizers)
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // the namespace would hang
			o.SetFinalizers(nil)
			if err := env.Client.Update(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
	}
	create(builders.Experiment("plain").System("echo").Obj())
	if err := mayBeRemoved(t.Context(), env.Client, []string{ns}); err != nil {
		t.Errorf("an experiment that no manager has seen is in the way: %v", err)
	}
	create(builders.Experiment("runs").System("echo").Obj(), v1alpha1.FinalizerExperiment)
	for name, namespaces := range map[string][]string{"everywhere": nil, "its namespace": {other, ns}} {
		err := mayBeRemoved(t.Context(), env.Client, namespaces)
		if err == nil || !strings.Contains(err.Error(), "experiment "+ns+"/runs") || !strings.Contains(err.Error(), "kubectl delete experiments.assay.dev") {
			t.Errorf("%s: %v, want the experiment's name and what to do", name, err)
		}
	}
	if err := mayBeRemoved(t.Context(), env.Client, []string{other}); err != nil {
		t.Errorf("a namespace without experiments: %v", err)
	}
}

// The owner had deleted the namespace, and helm uninstall failed: the manager's Role had gone with
// it.
func TestANamespaceThatIsGoneIsNotInTheWay(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":assay-manager"}
	nobody, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := mayBeRemoved(t.Context(), nobody, []string{ns}); err != nil {
		t.Errorf("got %v", err)
	}
	if err := mayBeRemoved(t.Context(), nobody, nil); err == nil {
		t.Error("a manager of the whole cluster that may list nothing is removed")
	}
}
