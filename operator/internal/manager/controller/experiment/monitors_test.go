package experiment_test

import (
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

type everywhere struct{}

func (everywhere) HasPodMonitors() (bool, error) { return true, nil }

// The PodMonitor of an experiment's trials exists until the last trial is over. Another owner's
// PodMonitor stays.
func TestPodMonitorGoesWithTheLastTrial(t *testing.T) {
	s := newStageIn(t, testcluster.InProcess(t).WithOthers(t, monitoringv1.SchemeGroupVersion.Group, monitoringv1.AddToScheme))
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
		s.create(pm)
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
