package watch_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/watch"
)

// The output says that a trial waits for idle machines: its clients have long been ready.
func TestTheWaitForIdleMachinesIsNamed(t *testing.T) {
	s := newScene(t)
	s.steps = []func(){
		func() { s.condition(v1alpha1.ExperimentAccepted, "True", "Valid", "") },
		func() { s.counts(1, 0, 0); s.trial("e-0", 0, 0, "", "") },
		func() { s.trial("e-0", 0, 0, v1alpha1.TrialLoaded, "") },
		func() {
			var trial v1alpha1.Trial
			if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "e-0"}, &trial); err != nil {
				t.Fatal(err)
			}
			meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialRunning, Status: metav1.ConditionFalse,
				Reason: v1alpha1.ReasonWaitingForIdle, Message: "Everything is ready.", LastTransitionTime: metav1.NewTime(s.now)})
			if err := s.client.Status().Update(t.Context(), &trial); err != nil {
				t.Fatal(err)
			}
		},
	}
	if err := s.until(watch.Options{Timeout: 20 * time.Second}); err == nil {
		t.Fatal("the experiment is not over")
	}
	if got := s.out.String(); !strings.Contains(got, "waiting for the clients\n") || !strings.Contains(got, "waiting for idle machines\n") {
		t.Errorf("printed:\n%s", got)
	}
}
