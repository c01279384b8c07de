package trial

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// A manager that was stopped in the middle of a reconcile, and woke up when another had judged the
// trial, wrote its progress without a lock, learned the newest resource version by that, and
// overwrote the outcome with what it had read before.
func TestADeposedManagerOverwritesNothing(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	old := p.trial()
	s, err := p.r.observe(t.Context(), old.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	deposed := p.r
	p.newReconciler() // takes over
	p.measured(10, 0)
	p.settle(true)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)

	s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonRunInProgress, "The clients run.")
	if _, err := deposed.publishProgress(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := deposed.patchStatus(t.Context(), s); !apierrors.IsConflict(err) {
		t.Errorf("the deposed manager writes its status: %v", err)
	}
	s.giveUp(v1alpha1.ReasonRunLost, "The pods are gone.")
	if err := deposed.storeTrial(t.Context(), s, &results.Trial{Format: results.TrialFormat, Name: s.key.Name, Outcome: v1alpha1.ReasonInvalid}, nil); !apierrors.IsConflict(err) {
		t.Errorf("the deposed manager replaces the results: %v", err)
	}
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
}
