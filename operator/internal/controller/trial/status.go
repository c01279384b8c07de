package trial

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/conditions"
)

// set changes one condition. Messages are sentences that say what is waited for or what to do.
func (s *scope) set(condition string, status metav1.ConditionStatus, reason, format string, args ...any) {
	message := conditions.Truncate(fmt.Sprintf(format, args...), conditions.MaxMessage)
	changed := meta.SetStatusCondition(&s.trial.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.trial.Generation, LastTransitionTime: metav1.NewTime(s.now),
	})
	if changed {
		s.note(condition, status, reason, message)
	}
}

// done marks a phase as done; instant is written once.
func (s *scope) done(condition, reason, message string, instant **metav1.MicroTime) {
	s.set(condition, metav1.ConditionTrue, reason, "%s", message)
	if instant != nil && *instant == nil {
		t := metav1.NewMicroTime(s.now)
		*instant = &t
	}
}

// wait says what a phase waits for, and gives the trial up when it has waited for longer than limit
// since the instant.
func (s *scope) wait(condition, reason, message string, since *metav1.MicroTime, limit time.Duration) (bool, time.Duration, error) {
	s.set(condition, metav1.ConditionFalse, reason, "%s", message)
	if since == nil {
		return false, time.Second, nil
	}
	left := since.Add(limit).Sub(s.now)
	if left <= 0 {
		s.giveUp(v1alpha1.ReasonDeadlineExceeded, "%s: after %v, still %s", condition, limit, message)
		return false, 0, nil
	}
	return false, left + time.Millisecond, nil
}

// patchStatus writes the status if it changed, then sends the events of what changed. Where only
// messages changed, it may hold them back, and says for how long.
func (r *Reconciler) patchStatus(ctx context.Context, s *scope) (hold time.Duration, err error) {
	if equality.Semantic.DeepEqual(s.before.Status, s.trial.Status) {
		return 0, nil
	}
	if hold := r.holdMessages(s); hold > 0 {
		return hold, nil
	}
	// With the optimistic lock, a manager that has lost the lead, or has read an old trial, cannot
	// overwrite an instant or an outcome.
	patch := client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, s.trial, patch); err != nil {
		return 0, fmt.Errorf("write the trial's status: %w", err)
	}
	s.sendEvents(r.Recorder)
	return 0, nil
}

// holdMessages says for how long a change of nothing but messages is held back. A trial that waits
// for many pods has a new message for each of them, and every write wakes up all who watch trials.
func (r *Reconciler) holdMessages(s *scope) (hold time.Duration) {
	if isTrue(s.trial, v1alpha1.TrialComplete) {
		return 0 // and nothing is remembered of it any more
	}
	rest := s.trial.Status
	rest.Conditions = s.before.Status.Conditions
	same := conditions.SameButMessages(s.before.Status.Conditions, s.trial.Status.Conditions) && equality.Semantic.DeepEqual(s.before.Status, rest)
	r.remember(s.trial, func(m *memo) {
		if hold = m.written.Add(r.MessageSpacing).Sub(s.now); !same || hold <= 0 {
			hold, m.written = 0, s.now
		}
	})
	return hold
}
