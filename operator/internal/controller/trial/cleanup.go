package trial

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/render"
)

const typesMergePatch = types.MergePatchType

// finishGrace is how long, beyond the System's own grace, the processes may take to end before their pods are deleted all the same.
const finishGrace = 5 * time.Second

// handOverGrace is how long after that pods may take to give their files away, where the trial has a store; agents give up a little earlier.
const handOverGrace = 80 * time.Second

// deletionPoll is how soon to look again for objects whose end no watch tells.
const deletionPoll = 200 * time.Millisecond

// cleanUp ends the processes as the System wants it, deletes all that the trial made but its results, confirms that it is gone, and completes the trial.
func (r *Reconciler) cleanUp(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if _, _, err := r.clearChaos(ctx, s.trial); err != nil {
		return false, 0, err
	}
	left := r.finishing(ctx, s)
	r.audit(ctx, s, true)
	if left > 0 {
		s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "The processes are being ended.")
		return false, left, nil
	}
	if err := r.recordFailure(ctx, s); err != nil {
		// The trial holds its pools until a quota of ConfigMaps, say, lets its results be written, but not for ever: then only its conditions tell of it.
		waited := s.now.Sub(findCondition(s.trial, v1alpha1.TrialValid).LastTransitionTime.Time)
		if waited < storeGrace {
			s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "Before anything is deleted: %s.", err)
			return false, min(storeGrace-waited+time.Millisecond, deployPoll), nil
		}
		s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonResultsNotStored, "After %v, what is known of the trial could not be stored: %s.", storeGrace, err)
	}
	remains, err := r.deleteEverything(ctx, s.trial)
	if err != nil {
		return false, 0, err
	}
	if remains != "" {
		s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "Still there: %s.", remains)
		return false, deletionPoll, nil
	}
	s.done(v1alpha1.TrialCleanedUp, v1alpha1.ReasonGone, "Nothing of the trial is left but its results.", &s.trial.Status.Times.Done)
	reason, message := outcome(s.trial)
	s.set(v1alpha1.TrialComplete, metav1.ConditionTrue, reason, "%s", message)
	r.forget(s.key)
	return true, 0, nil
}

// finishing asks every pod to end its processes and says how long to wait for it. Nothing to wait for: 0.
func (r *Reconciler) finishing(ctx context.Context, s *scope) time.Duration {
	c := findCondition(s.trial, v1alpha1.TrialValid)
	if c == nil || len(s.pods) == 0 {
		return 0
	}
	if s.rendered == nil {
		if err := r.render(ctx, s); err != nil || s.rendered == nil {
			return 0
		}
	}
	if err := r.renderSuccessors(ctx, s); err != nil {
		return 0
	}
	st := stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos, finish: true}
	if !isTrue(s.trial, v1alpha1.TrialStarted) {
		st.started = nil // what never ran need not start to be ended
	}
	r.direct(s, st)
	grace := finishGrace
	if stop := s.system.Replicas.Stop; stop != nil {
		grace += stop.Grace.OrZero()
	}
	if n := s.trial.Status.Network; n != nil && n.Backend != "" {
		grace += s.longestRoundTrip() // what is under way is let through before the network is put back
	}
	by := c.LastTransitionTime.Add(grace)
	for _, name := range s.everyName() {
		if s.pods[name] == nil || !s.now.Before(by) {
			continue
		}
		if rep := s.report(name); rep != nil && !rep.Finished && rep.Failure == "" {
			return by.Sub(s.now)
		}
	}
	return r.handingOver(s, by.Add(handOverGrace))
}

// handingOver says how long to wait for pods to give their files away. A pod that runs and has not reported is waited for, too: a manager that has just taken over
// must hear from its agent first.
func (r *Reconciler) handingOver(s *scope, by time.Time) time.Duration {
	if s.trial.Spec.ResultsStore == "" {
		return 0
	}
	for _, name := range s.everyName() {
		p := s.pods[name]
		if p == nil || p.Status.Phase != corev1.PodRunning || !s.now.Before(by) {
			continue
		}
		if rep := s.report(name); rep == nil || !rep.HandedOver {
			return by.Sub(s.now)
		}
	}
	return 0
}

// deleteAll deletes every object of a trial but its results and says what is still there.
func (r *Reconciler) deleteAll(ctx context.Context, key types.NamespacedName) (string, error) {
	in := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: key.Name}}
	left := ""
	for _, kind := range []struct {
		what string
		list client.ObjectList
	}{
		// The owners first, or they would replace their pods.
		{"StatefulSet", &appsv1.StatefulSetList{}},
		{"Job", &batchv1.JobList{}},
		{"Pod", &corev1.PodList{}},
		{"Service", &corev1.ServiceList{}},
		{"ConfigMap", &corev1.ConfigMapList{}},
		{"PersistentVolumeClaim", &corev1.PersistentVolumeClaimList{}},
	} {
		if err := r.Reader.List(ctx, kind.list, in...); err != nil {
			return "", fmt.Errorf("list each %s of the trial: %w", kind.what, err)
		}
		n, err := r.deleteItems(ctx, kind.list)
		if err != nil {
			return "", fmt.Errorf("delete each %s of the trial: %w", kind.what, err)
		}
		if n > 0 && left == "" {
			left = fmt.Sprintf("%d of kind %s", n, kind.what)
		}
	}
	had, err := r.deleteSecret(ctx, key)
	if err != nil {
		return "", fmt.Errorf("delete the prepare step's Secret: %w", err)
	}
	if had && left == "" {
		left = "the prepare step's Secret"
	}
	machines, err := r.machinePods(ctx, r.Reader, key)
	if err != nil {
		return "", err
	}
	n, err := r.deleteItems(ctx, machines)
	if err != nil {
		return "", fmt.Errorf("delete each pod that resets a machine: %w", err)
	}
	if n > 0 && left == "" {
		left = fmt.Sprintf("%d pods that reset machines", n)
	}
	return left, nil
}

// deleteSecret deletes the one Secret that a trial may have, and says whether it was there. It is asked for by name, since a manager that could list
// Secrets could read all of them.
func (r *Reconciler) deleteSecret(ctx context.Context, key types.NamespacedName) (bool, error) {
	secret := &corev1.Secret{}
	name := (&render.Layout{Trial: key.Name}).PreparedSecret()
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if secret.Labels[v1alpha1.LabelTrial] != key.Name {
		return false, nil // somebody else's
	}
	return true, client.IgnoreNotFound(r.Client.Delete(ctx, secret))
}

func (r *Reconciler) deleteItems(ctx context.Context, list client.ObjectList) (int, error) {
	n := 0
	for _, o := range itemsOf(list) {
		if o.GetLabels()[v1alpha1.LabelResults] != "" {
			continue
		}
		n++
		if !o.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return n, err
		}
	}
	return n, nil
}

func itemsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	switch l := list.(type) {
	case *appsv1.StatefulSetList:
		out = pointers(l.Items, func(o *appsv1.StatefulSet) client.Object { return o })
	case *batchv1.JobList:
		out = pointers(l.Items, func(o *batchv1.Job) client.Object { return o })
	case *corev1.PodList:
		out = pointers(l.Items, func(o *corev1.Pod) client.Object { return o })
	case *corev1.ServiceList:
		out = pointers(l.Items, func(o *corev1.Service) client.Object { return o })
	case *corev1.ConfigMapList:
		out = pointers(l.Items, func(o *corev1.ConfigMap) client.Object { return o })
	case *corev1.PersistentVolumeClaimList:
		out = pointers(l.Items, func(o *corev1.PersistentVolumeClaim) client.Object { return o })
	}
	return out
}

func pointers[T any](items []T, f func(*T) client.Object) []client.Object {
	out := make([]client.Object, 0, len(items))
	for i := range items {
		out = append(out, f(&items[i]))
	}
	return out
}

// finalize cleans up after a trial that is being deleted. It does not wait for processes to end by themselves: nobody wants their results any more.
func (r *Reconciler) finalize(ctx context.Context, trial *v1alpha1.Trial) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(trial)
	r.Coordinator.Forget(key)
	left, err := r.deleteEverything(ctx, trial)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left != "" {
		return ctrl.Result{RequeueAfter: deletionPoll}, nil
	}
	r.forget(key)
	before := trial.DeepCopy()
	if controllerutil.RemoveFinalizer(trial, v1alpha1.FinalizerTrial) {
		// Only that: a whole object has defaults of fields that are newer than it, which would be a change of its spec.
		err := r.Client.Patch(ctx, trial, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return ctrl.Result{}, wrap("remove the finalizer", client.IgnoreNotFound(err))
	}
	return ctrl.Result{}, nil
}
