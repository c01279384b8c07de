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
)

const typesMergePatch = types.MergePatchType

// finishGrace is how long, beyond the System's own grace, the processes may take to end before their pods are deleted all the same.
const finishGrace = 5 * time.Second

// deletionPoll is how soon to look again for objects whose end no watch tells.
const deletionPoll = 200 * time.Millisecond

// cleanUp ends the processes as the System wants it, deletes all that the trial made but its results, confirms that it is gone, and completes the trial.
func (r *Reconciler) cleanUp(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if left := r.finishing(ctx, s); left > 0 {
		s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "The processes are being ended.")
		return false, left, nil
	}
	if err := r.recordFailure(ctx, s); err != nil {
		return false, 0, err
	}
	left, err := r.deleteAll(ctx, s.key)
	if err != nil {
		return false, 0, err
	}
	if left != "" {
		s.set(v1alpha1.TrialCleanedUp, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "Still there: %s.", left)
		return false, deletionPoll, nil
	}
	s.done(v1alpha1.TrialCleanedUp, v1alpha1.ReasonGone, "Nothing of the trial is left but its results.", &s.trial.Status.Times.Done)
	reason, message := outcome(s.trial)
	s.set(v1alpha1.TrialComplete, metav1.ConditionTrue, reason, "%s", message)
	r.forget(s.key)
	r.forgetUID(s.trial.UID)
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
	st := stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos, finish: true}
	if !isTrue(s.trial, v1alpha1.TrialStarted) {
		st.started = nil // what never ran need not start to be ended
	}
	r.direct(s, st)
	grace := finishGrace
	if stop := s.system.Replicas.Stop; stop != nil {
		grace += stop.Grace.OrZero()
	}
	left := c.LastTransitionTime.Add(grace).Sub(s.now)
	if left <= 0 {
		return 0
	}
	for _, name := range s.everyName() {
		if s.pods[name] == nil {
			continue
		}
		if rep := r.report(s, name); rep != nil && !rep.Finished && rep.Failure == "" {
			return left
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
		{"Secret", &corev1.SecretList{}},
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
	return left, nil
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
	case *corev1.SecretList:
		out = pointers(l.Items, func(o *corev1.Secret) client.Object { return o })
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
	r.forget(key)
	left, err := r.deleteAll(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left != "" {
		return ctrl.Result{RequeueAfter: deletionPoll}, nil
	}
	r.forgetUID(trial.UID)
	if controllerutil.RemoveFinalizer(trial, v1alpha1.FinalizerTrial) {
		return ctrl.Result{}, wrap("remove the finalizer", client.IgnoreNotFound(r.Client.Update(ctx, trial)))
	}
	return ctrl.Result{}, nil
}
