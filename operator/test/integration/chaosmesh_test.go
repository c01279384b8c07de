package integration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// When an experiment is applied, the webhook asks Chaos Mesh to check the experiment's objects of
// Chaos Mesh, and leaves none of them. Here only the schemas answer. Tests on a cluster cover the
// webhooks of Chaos Mesh.
func TestChaosMeshIsAskedWhenAnExperimentIsApplied(t *testing.T) {
	env := testenv.Get(t)
	env.ChaosMesh(t)
	ns := env.Namespace(t)
	system := sample(t, "systems/driver.yaml")
	system.SetNamespace(ns)
	if err := env.Client.Create(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		edits []edit
		wrong []string // in the rejection; none: it is accepted
	}{
		"the sample": {},
		"an action that there is not": {
			[]edit{{"spec.faults.1.chaosMesh.spec.action", "split"}}, []string{"spec.faults[1].chaosMesh.spec.action", "Chaos Mesh refuses this NetworkChaos: ", `"split"`, `"partition"`},
		},
		"a field that there is not": {
			[]edit{{"spec.faults.1.chaosMesh.spec.directoin", "both"}}, []string{"spec.faults[1].chaosMesh.spec", "Chaos Mesh refuses this NetworkChaos: ", `unknown field "spec.directoin"`},
		},
		"a delay without a unit": {
			[]edit{{"spec.faults.1.chaosMesh.spec", "{action: delay, delay: {latency: \"10\"}}"}}, []string{"spec.faults[1].chaosMesh.spec.delay.latency", "Chaos Mesh refuses this NetworkChaos: "},
		},
		"two wrong faults": {
			[]edit{{"spec.faults.1.chaosMesh.spec.action", "split"}, {"spec.faults.0.chaosMesh.spec.gracePeriod", "-1"}},
			[]string{"spec.faults[1].chaosMesh.spec.action", "spec.faults[0].chaosMesh.spec.gracePeriod"},
		},
		"a kind that the cluster has not": {
			[]edit{{"spec.faults.1.chaosMesh", "{kind: JVMChaos, target: {replicas: [0]}, spec: {action: gc}}"}},
			[]string{"spec.faults[1].chaosMesh", "the cluster has no kind JVMChaos (chaos-mesh.org/v1alpha1); install Chaos Mesh"},
		},
		"a kind that acts on machines": {
			[]edit{{"spec.faults.1.chaosMesh.kind", "PhysicalMachineChaos"}}, []string{"spec.faults[1].chaosMesh.kind", "PhysicalMachineChaos", `"PodChaos"`},
		},
		"a selector of the author's": {
			[]edit{{"spec.faults.0.chaosMesh.spec.selector", "{namespaces: [kube-system]}"}}, []string{"spec.faults[0].chaosMesh.spec.selector", "nobody else's pods can be chosen"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			exp := sample(t, "experiment-chaos-mesh.yaml")
			exp.SetNamespace(ns)
			for _, e := range tc.edits {
				set(t, exp, e.path, e.value)
			}
			err := env.Client.Create(t.Context(), exp, client.DryRunAll)
			if tc.wrong == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range tc.wrong {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the refusal does not say %q: %v", want, err)
				}
			}
		})
	}
	for _, kind := range []string{"PodChaos", "NetworkChaos"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(chaosmesh.GroupVersion.WithKind(kind + "List"))
		if err := env.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil || len(list.Items) != 0 {
			t.Errorf("%d objects of kind %s are left: %v", len(list.Items), kind, err)
		}
	}
}
