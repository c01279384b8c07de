package dataset

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/nodes"
	"assay.dev/assay/operator/internal/text/few"
)

// expire deletes a data set that was unused for long. An incomplete experiment uses all data sets
// of its Systems' recipes.
func (r *Reconciler) expire(ctx context.Context, s *scope) (time.Duration, error) {
	if r.Keep == 0 {
		return 0, nil
	}
	used := s.d.CreationTimestamp
	if s.d.Status.LastUsed != nil {
		used = *s.d.Status.LastUsed
	}
	if left := used.Add(r.Keep).Sub(s.now); left > 0 {
		return left + time.Second, nil
	}
	experiments := &v1alpha1.ExperimentList{}
	if err := r.Client.List(ctx, experiments, client.InNamespace(s.d.Namespace)); err != nil {
		return 0, wrap("list the experiments of the namespace", err)
	}
	for i := range experiments.Items {
		x := &experiments.Items[i]
		names := func(ref v1alpha1.SystemReference) bool { return ref.Name == s.d.Spec.Recipe.System }
		if !meta.IsStatusConditionTrue(x.Status.Conditions, v1alpha1.ExperimentComplete) && slices.ContainsFunc(x.Spec.Systems, names) {
			return time.Hour, nil
		}
	}
	version := s.d.ResourceVersion // any program that begins to use it changes the version
	err := r.Client.Delete(ctx, s.d, client.Preconditions{ResourceVersion: &version})
	return 0, wrap("delete a data set that nothing uses", client.IgnoreNotFound(err))
}

// remove deletes the bytes from all nodes that may have some, and then removes the finalizer. It
// skips nodes that do not answer: a node that never comes back would keep the Dataset for ever.
func (r *Reconciler) remove(ctx context.Context, s *scope) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(s.d, v1alpha1.FinalizerDataset) {
		s.gone = true
		return 0, nil
	}
	if user, err := r.user(ctx, s.d); err != nil || user != "" {
		s.set(metav1.ConditionFalse, v1alpha1.ReasonRemoving, "Waiting for trial %s, whose pods are about to copy it.", user)
		return jobPoll, err
	}
	if idle, err := r.idle(ctx, s.d); err != nil || !idle {
		s.set(metav1.ConditionFalse, v1alpha1.ReasonRemoving, "Waiting for what prepares it to end.")
		return jobPoll, err
	}
	problem, err := r.claimed(ctx, s.d.Namespace)
	if err != nil {
		return 0, err
	}
	if problem == "" {
		waiting, err := r.removeFrom(ctx, s)
		if err != nil {
			return 0, err
		}
		if len(waiting) > 0 {
			s.set(metav1.ConditionFalse, v1alpha1.ReasonRemoving, "Deleting the bytes on %s.", few.Names(waiting))
			return jobPoll, nil
		}
	}
	before := s.d.DeepCopy()
	controllerutil.RemoveFinalizer(s.d, v1alpha1.FinalizerDataset)
	s.gone = true
	err = r.Client.Patch(ctx, s.d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return 0, wrap("remove the finalizer", client.IgnoreNotFound(err))
}

// user returns a trial that uses the data set and whose pods do not have their copies yet.
func (r *Reconciler) user(ctx context.Context, d *v1alpha1.Dataset) (string, error) {
	trials := &v1alpha1.TrialList{}
	if err := r.Client.List(ctx, trials, client.InNamespace(d.Namespace)); err != nil {
		return "", wrap("list the trials of the namespace", err)
	}
	for i := range trials.Items {
		t := &trials.Items[i]
		uses := func(set v1alpha1.TrialDataset) bool { return set.Dataset == d.Name }
		if slices.ContainsFunc(t.Spec.Datasets, uses) && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialAdmitted) &&
			!meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialDeployed) && !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete) {
			return t.Name, nil
		}
	}
	return "", nil
}

// idle ends the Jobs that prepare the data set, and reports whether all have ended.
func (r *Reconciler) idle(ctx context.Context, d *v1alpha1.Dataset) (bool, error) {
	for _, node := range d.Spec.Nodes {
		job, leaving, err := r.jobOf(ctx, d, "prepare", node)
		if err != nil {
			return false, err
		}
		if job == nil || !metav1.IsControlledBy(job, d) {
			continue
		}
		if ended, _, _ := nodes.Over(job); ended {
			continue
		}
		if !leaving {
			// In the foreground, a Job exists until its pod is gone.
			err = r.Client.Delete(ctx, job, client.PropagationPolicy("Foreground"))
		}
		return false, wrap("end a Job of the data set", client.IgnoreNotFound(err))
	}
	return true, nil
}

// removeFrom deletes the bytes, and lists the nodes that still have them.
func (r *Reconciler) removeFrom(ctx context.Context, s *scope) (waiting []string, err error) {
	for _, node := range s.d.Spec.Nodes {
		if s.nodes[node] == nil {
			continue
		}
		job, leaving, err := r.jobOf(ctx, s.d, "remove", node)
		if err != nil {
			return nil, err
		}
		if job == nil {
			err := r.create(ctx, s.d, render.DatasetRemovalJob(s.d, node, r.Environment))
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return nil, nil // no Job can run there any more
			}
			if err != nil {
				return nil, err
			}
			waiting = append(waiting, node)
			continue
		}
		ended, well, message := nodes.Over(job)
		switch {
		case leaving || !ended:
			waiting = append(waiting, node)
		case !well:
			r.tellLeft(s.d, job, node, message)
		}
	}
	return waiting, nil
}

// tellLeft reports that bytes are left on a node.
func (r *Reconciler) tellLeft(d *v1alpha1.Dataset, job *batchv1.Job, node, message string) {
	r.Recorder.Eventf(d, job, corev1.EventTypeWarning, "BytesLeft", "Remove", "The bytes of data set %s are left on node %s: %s", d.Name, node, message)
}
