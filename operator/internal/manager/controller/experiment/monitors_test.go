package experiment_test

import (
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// The kind of the Prometheus operator, without the schema of its spec.
const podMonitorKind = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "podmonitors.monitoring.coreos.com",
"annotations": {"api-approved.kubernetes.io": "unapproved, a test's"}}, "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
"names": {"kind": "PodMonitor", "listKind": "PodMonitorList", "plural": "podmonitors", "singular": "podmonitor"}, "versions": [{"name": "v1", "served": true, "storage": true,
"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`

type everywhere struct{}

func (everywhere) HasPodMonitors() (bool, error) { return true, nil }

// The PodMonitor that trials have made is there until the last of them is over, and another's
// stays.
func TestPodMonitorGoesWithTheLastTrial(t *testing.T) {
	s := newStageIn(t, &testenv.Get(t).Env)
	if err := monitoringv1.AddToScheme(s.env.Scheme); err != nil {
		t.Fatal(err)
	}
	kind := &unstructured.Unstructured{}
	if err := kind.UnmarshalJSON([]byte(podMonitorKind)); err != nil {
		t.Fatal(err)
	}
	if err := s.c.Create(t.Context(), kind); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	s.r.Monitors = everywhere{}
	s.create(builders.System("basil").Set(func(spec *v1alpha1.SystemSpec) { spec.Replicas.Metrics = &v1alpha1.MetricsEndpoint{Port: 9102} }).Obj(),
		two().Obj())
	s.settle()
	ours := &monitoringv1.PodMonitor{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: s.trials()[0].Spec.System.Revision}}
	if err := controllerutil.SetControllerReference(s.experiment(), ours, s.env.Scheme); err != nil {
		t.Fatal(err)
	}
	theirs := &monitoringv1.PodMonitor{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "theirs"}}
	for _, pm := range []*monitoringv1.PodMonitor{ours, theirs} {
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // until the kind is served
			err := s.c.Create(t.Context(), pm)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	s.settle()
	s.finish(v1alpha1.ReasonSucceeded)
	s.settle()
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(ours), ours); err != nil {
		t.Errorf("between two trials: %v", err)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	s.settle()
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(ours), ours); !apierrors.IsNotFound(err) {
		t.Errorf("it outlives the last trial: %v", err)
	}
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("somebody else's: %v", err)
	}
}
