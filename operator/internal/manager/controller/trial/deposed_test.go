package trial

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// A manager once stopped in the middle of a reconcile, and woke up after another one had judged the
// trial. It wrote its progress without a lock, and so it learned the newest resource version. Then
// it overwrote the outcome with the old state that it had read before.
func TestADeposedManagerOverwritesNothing(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	old := p.trial()
	s := p.subject(old.DeepCopy())
	deposed := p.r
	p.newReconciler() // the second manager takes over
	p.measured(10, 0)
	p.settle(true)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)

	before := s.Trial.DeepCopy()
	meta.SetStatusCondition(&s.Trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialCollected, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRunInProgress})
	if _, err := (experiment{deposed}).Progress(t.Context(), before, s.Trial, protocol.TrialProgress{}); err != nil {
		t.Fatal(err)
	}
	if _, err := deposed.record.Save(t.Context(), before, s.Trial, nil); !apierrors.IsConflict(err) || !errors.Is(err, engine.ErrConflict) {
		t.Errorf("the deposed manager writes its status: %v", err)
	}
	invalid := &results.Trial{Format: results.TrialFormat, Name: s.Trial.Name, Outcome: v1alpha1.ReasonInvalid}
	if err := (attachments{deposed}).Store(t.Context(), s, before, invalid, engine.Files{}); !apierrors.IsConflict(err) {
		t.Errorf("the deposed manager replaces the results: %v", err)
	}
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
}
