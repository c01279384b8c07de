package trial

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/inspect"
)

// keep leaves the pods of a trial that does not count as they are, while people look at them. What
// is known of the trial is stored first.
func keep(ctx context.Context, r *Reconciler, s *scope) (kept bool, after time.Duration, err error) {
	until, err := inspect.Until(ctx, r.Client, s.trial)
	if err != nil || until.IsZero() {
		return false, 0, err
	}
	if left := until.Sub(s.now); left > 0 && len(s.pods) > 0 {
		if err := r.recordFailure(ctx, s); err != nil {
			return false, 0, err
		}
		s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonKept, "%s", inspect.Message(s.trial, until))
		return true, left + time.Millisecond, nil
	}
	if inspect.Kept(s.trial) {
		now := metav1.NewMicroTime(s.now)
		s.trial.Status.Times.Kept = &now
	}
	return false, 0, nil
}
