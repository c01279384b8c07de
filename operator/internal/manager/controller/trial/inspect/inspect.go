// Package inspect decides how long a trial's pods stay if it does not count, so that people can
// look at them. The time starts with the verdict on the trial. Its length is read from the trial's
// Experiment each time.
package inspect

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Until returns when the pods of a trial judged at the given instant may go. Zero: at once. Once
// their removal has begun, nothing keeps them any more.
func Until(ctx context.Context, c client.Reader, trial *v1alpha1.Trial, judged time.Time) (time.Time, error) {
	valid := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid)
	if valid == nil || valid.Status != metav1.ConditionFalse || valid.Reason == v1alpha1.ReasonNotMeasuring {
		return time.Time{}, nil
	}
	if going := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialCleanedUp); going != nil && going.Reason != v1alpha1.ReasonKept {
		return time.Time{}, nil
	}
	exp := &v1alpha1.Experiment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: trial.Spec.Experiment}, exp)
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read the trial's experiment: %w", err)
	}
	if exp.Spec.KeepFailed() <= 0 && !Kept(trial) {
		return time.Time{}, nil
	}
	return judged.Add(exp.Spec.KeepFailed()), nil
}

// Kept reports whether the trial's pods stay, or have stayed until now.
func Kept(trial *v1alpha1.Trial) bool {
	c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialCleanedUp)
	return c != nil && c.Reason == v1alpha1.ReasonKept
}

// Message tells users until when the pods stay, how to look at them, and how to release them.
func Message(trial *v1alpha1.Trial, until time.Time) string {
	return fmt.Sprintf("The pods stay for inspection until %s (spec.debug.keepFailed), and the trial holds its pools. "+
		"List them: kubectl get pods -l %s=%s. Let them go: kubectl patch experiments.assay.dev %s --type merge -p '{\"spec\":{\"debug\":null}}'.",
		until.UTC().Format(time.RFC3339), v1alpha1.LabelTrial, trial.Name, trial.Spec.Experiment)
}

// Of returns a function that lists an experiment's trials whose pods are kept. The controller looks
// at them again when the experiment's spec changes.
func Of(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, exp client.Object) (kept []reconcile.Request) {
		trials := &v1alpha1.TrialList{}
		labels := client.MatchingLabels{v1alpha1.LabelExperiment: exp.GetName()}
		if err := c.List(ctx, trials, client.InNamespace(exp.GetNamespace()), labels, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Trials whose pods are kept cannot be listed", "experiment", exp.GetName())
			return nil
		}
		for i := range trials.Items {
			if Kept(&trials.Items[i]) {
				kept = append(kept, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&trials.Items[i])})
			}
		}
		return kept
	}
}
