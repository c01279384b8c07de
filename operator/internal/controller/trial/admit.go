package trial

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"assay.dev/assay/operator/api/v1alpha1"
)

// queuePoll is how often a trial that waits looks by itself. The end of the trial ahead wakes it up long before, unless the cache had not seen that
// end yet when it looked.
const queuePoll = 10 * time.Second

// admit lets one trial of the whole cluster use the machines at a time, in order of creation: two at once would measure each other.
func (r *Reconciler) admit(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialAdmitted) {
		return true, 0, nil
	}
	// The cache keeps the queue cheap: most trials that look find another ahead. One that finds none looks again past the cache, where a trial that
	// was admitted a moment ago is seen.
	for _, reader := range []client.Reader{r.Client, r.Reader} {
		list := &v1alpha1.TrialList{}
		if err := reader.List(ctx, list); err != nil {
			return false, 0, fmt.Errorf("list trials: %w", err)
		}
		if other := ahead(s.trial, list.Items); other != nil {
			s.set(v1alpha1.TrialAdmitted, metav1.ConditionFalse, v1alpha1.ReasonQueued,
				"Waiting for trial %s/%s: one trial at a time uses the machines.", other.Namespace, other.Name)
			return false, queuePoll, nil // its end wakes us up
		}
	}
	s.done(v1alpha1.TrialAdmitted, v1alpha1.ReasonAdmitted, "No other trial uses the machines.", &s.trial.Status.Times.Admitted)
	s.set(v1alpha1.TrialComplete, metav1.ConditionFalse, v1alpha1.ReasonInProgress, "The trial is on its way.")
	// The next reconcile observes what an admitted trial has; the status patch triggers it.
	return false, time.Millisecond, nil
}

// ahead returns the trial that must be over before this one may start, if any: one that is admitted and not complete, else an older one that waits.
func ahead(t *v1alpha1.Trial, all []v1alpha1.Trial) *v1alpha1.Trial {
	var older *v1alpha1.Trial
	for i := range all {
		o := &all[i]
		if o.UID == t.UID || isTrue(o, v1alpha1.TrialComplete) {
			continue
		}
		if isTrue(o, v1alpha1.TrialAdmitted) {
			return o
		}
		if o.DeletionTimestamp.IsZero() && comesBefore(o, t) && (older == nil || comesBefore(o, older)) {
			older = o
		}
	}
	return older
}

func comesBefore(a, b *v1alpha1.Trial) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}

// queuedTrials are woken up when a trial is over or gone.
func (r *Reconciler) queuedTrials(ctx context.Context, o client.Object) []reconcile.Request {
	t, ok := o.(*v1alpha1.Trial)
	if !ok || (!isTrue(t, v1alpha1.TrialComplete) && t.DeletionTimestamp.IsZero()) {
		return nil
	}
	list := &v1alpha1.TrialList{}
	if err := r.Client.List(ctx, list); err != nil {
		logFor(ctx).Info("Queued trials cannot be listed; they are looked at again at the next change", "err", err.Error())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if q := &list.Items[i]; !isTrue(q, v1alpha1.TrialAdmitted) && q.UID != t.UID {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(q)})
		}
	}
	return out
}
