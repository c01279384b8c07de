package experiment

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// withdraw deletes trials in the queue that can no longer end before spec.budget.until. A trial
// that was admitted meanwhile has another version, and stays.
func withdraw(ctx context.Context, c client.Client, s *scope) error {
	for _, name := range s.step.Withdraw {
		for i := range s.trials {
			t := &s.trials[i]
			if t.Name != name {
				continue
			}
			err := c.Delete(ctx, t, client.Preconditions{UID: &t.UID, ResourceVersion: &t.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("withdraw Trial %s: %w", name, err)
			}
		}
	}
	return nil
}

// lookAgain makes the experiment reconcile soon after an instant, if not before.
func (s *scope) lookAgain(at time.Time) {
	if at.IsZero() || s.step.Done {
		return
	}
	wait := max(0, at.Sub(s.now.Time)) + time.Second
	if s.again == 0 || wait < s.again {
		s.again = wait
	}
}

// setWithinBudget reports whether the experiment is within its budget, if it has one.
func setWithinBudget(s *scope) {
	if s.exp.Spec.Budget == nil || s.exp.Spec.Recurrence != nil || s.plan == nil {
		meta.RemoveStatusCondition(&s.exp.Status.Conditions, v1alpha1.ExperimentWithinBudget)
		return
	}
	status, b := metav1.ConditionTrue, s.step.Budget
	if b.Reason == "" {
		return // there was no decision this time
	}
	if b.Reason != v1alpha1.ReasonWithinBudget {
		status = metav1.ConditionFalse
	}
	s.set(v1alpha1.ExperimentWithinBudget, status, b.Reason, b.Message)
}
