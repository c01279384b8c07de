package experiment_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// The experiment shows why its next trial cannot start, sends one event, and stops showing it when
// the trial has started. There is no event for a trial that only waits for its turn.
func TestATrialThatCannotStartIsShown(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	wait := func(status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		trial := s.trials()[0]
		meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialAdmitted, Status: status, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(s.clock.Now())})
		if err := s.c.Status().Update(t.Context(), &trial); err != nil {
			t.Fatal(err)
		}
	}
	wait(metav1.ConditionFalse, v1alpha1.ReasonQueued, "Waiting for trial x.")
	s.expect(s.settle(), complete, "False TrialsRunning")
	for _, reason := range []string{v1alpha1.ReasonUnschedulable, v1alpha1.ReasonInsufficientResources, v1alpha1.ReasonQuotaExceeded} {
		wait(metav1.ConditionFalse, reason, "It lacks a node.")
		s.expect(s.settle(), complete, "False "+reason, "The next trial has not started. It lacks a node.")
	}
	wait(metav1.ConditionTrue, v1alpha1.ReasonAdmitted, "It has all nodes.")
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 0 runs")
	want := []string{"Normal Valid", "Warning Unschedulable", "Warning InsufficientResources", "Warning QuotaExceeded"}
	if diff := cmp.Diff(want, firstWords(s.told())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The simulation found this: the status of an experiment that was not accepted did not name the
// missing right.
func TestAPlanThatCannotBeFixedSaysWhy(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.use(interceptor.NewClient(s.env.Client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetLabels()[v1alpha1.LabelSystem] != "" {
				return apierrors.NewForbidden(corev1.Resource("controllerrevisions"), o.GetName(), errors.New("no such right"))
			}
			return c.Create(ctx, o, opts...)
		},
	}))
	for range 3 {
		_ = s.reconcile() // tries again after the error
	}
	s.expect(s.experiment(), v1alpha1.ExperimentAccepted, "Unknown SnapshotFailed", "The plan cannot be fixed, and is tried again:", "no such right")
	s.use(s.env.Client)
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 0 runs")
}

// The simulation found this: if the manager may not read ConfigMaps, the experiment waited, but its
// status said that a trial ran.
func TestAManagerWithoutTheRightSaysSo(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.r.Reader = interceptor.NewClient(s.env.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == "ConfigMap" {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, errors.New("no such right"))
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	var err error
	for range 4 {
		err = s.reconcile()
	}
	if err == nil {
		t.Error("it is not tried again")
	}
	s.expect(s.experiment(), complete, "False TrialsRunning", "Trial 0 cannot be made, and is tried again:", "no such right")
	s.r.Reader = s.env.Client
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 0 runs")
}
