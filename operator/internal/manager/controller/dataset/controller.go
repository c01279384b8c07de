// Package dataset prepares data sets on nodes, and removes them.
//
// A Dataset names a recipe and the nodes that need its data. For each node without the data there
// is a Job (render.DatasetJob), first on one node only: if the recipe fails there, it is not tried
// on the others. The result of a Job is read from its pod. It cannot be observed again, so it is
// written to the status. All else follows from the existing Jobs.
//
//	Ensure (for a trial) -> Dataset -> a Job on one node -> Jobs on the others -> Ready
//	unused for long, or deleted by somebody -> a Job on each node that removes the bytes -> gone
//
// There are few Jobs, and the cache has only Jobs and pods of trials. So these Jobs are read again
// every two seconds while there are any.
package dataset

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/nodes"
)

const (
	// jobPoll is how often the controller looks at Jobs.
	jobPoll = 2 * time.Second
	// claimPoll is how often the controller looks whether the namespace has its claim.
	claimPoll = 10 * time.Second
	// conflictDelay is how long to wait for the cache to see a write.
	conflictDelay = 100 * time.Millisecond
	// maxMessage is the longest message of a condition: the last lines of a recipe have 2 KiB at
	// most.
	maxMessage = 4096
)

// Reconciler prepares and removes data sets. All fields are needed.
type Reconciler struct {
	Client client.Client
	// Reader reads past the cache: Jobs, pods, nodes, claims.
	Reader   client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Environment of the pods.
	Environment render.Environment
	// Keep is how long an unused data set is kept. 0: until a user deletes it.
	Keep time.Duration
}

// Reconcile brings one data set forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d := &v1alpha1.Dataset{}
	if err := r.Client.Get(ctx, req.NamespacedName, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if d.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(d, v1alpha1.FinalizerDataset) {
		// The finalizer is on the API server before a byte is on a node.
		return ctrl.Result{}, wrap("add the finalizer", r.Client.Update(ctx, d))
	}
	s := &scope{before: d.DeepCopy(), d: d, now: r.Clock.Now()}
	after, err := r.advance(ctx, s)
	if err == nil {
		err = r.write(ctx, s)
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

func (r *Reconciler) advance(ctx context.Context, s *scope) (time.Duration, error) {
	ready, err := nodes.Ready(ctx, r.Reader)
	if err != nil {
		return 0, err
	}
	s.nodes = ready
	if !s.d.DeletionTimestamp.IsZero() {
		return r.remove(ctx, s)
	}
	after, err := r.prepare(ctx, s)
	if err != nil || after > 0 {
		return after, err
	}
	return r.expire(ctx, s)
}

// scope is one reconcile.
type scope struct {
	before, d *v1alpha1.Dataset
	now       time.Time
	nodes     map[string]*corev1.Node // that are ready
	gone      bool                    // the finalizer was removed: there is no status to write
}

// write writes the status if it changed, and then sends an event about a failure.
func (r *Reconciler) write(ctx context.Context, s *scope) error {
	if s.gone || equality.Semantic.DeepEqual(s.before.Status, s.d.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, s.d, patch); err != nil {
		return wrap("write the data set's status", client.IgnoreNotFound(err))
	}
	was, is := meta.FindStatusCondition(s.before.Status.Conditions, v1alpha1.DatasetReady), meta.FindStatusCondition(s.d.Status.Conditions, v1alpha1.DatasetReady)
	if is != nil && failed(is) && (was == nil || was.Reason != is.Reason) {
		r.Recorder.Eventf(s.d, nil, corev1.EventTypeWarning, is.Reason, "Prepare", "%s", conditions.Truncate(is.Message, conditions.MaxMessage))
	}
	return nil
}

func (s *scope) set(status metav1.ConditionStatus, reason, format string, args ...any) {
	meta.SetStatusCondition(&s.d.Status.Conditions, metav1.Condition{
		Type: v1alpha1.DatasetReady, Status: status, Reason: reason, Message: conditions.Truncate(fmt.Sprintf(format, args...), maxMessage),
		ObservedGeneration: s.d.Generation, LastTransitionTime: metav1.NewTime(s.now),
	})
}

// failed reports whether the data set cannot be prepared until a user changes something.
func failed(c *metav1.Condition) bool {
	switch c.Reason {
	case v1alpha1.ReasonRecipeFailed, v1alpha1.ReasonNotIdentical, v1alpha1.ReasonNoClaim:
		return true
	}
	return false
}

// has reports whether a node has the data.
func has(d *v1alpha1.Dataset, node string) bool {
	for _, n := range d.Status.Nodes {
		if n.Name == node {
			return true
		}
	}
	return false
}

// claimed says what is missing if the owner of the cluster gave the namespace no place for data
// sets. Empty: there is a place.
func (r *Reconciler) claimed(ctx context.Context, namespace string) (problem string, err error) {
	claim := &corev1.PersistentVolumeClaim{}
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: render.DatasetClaim}, claim)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("Namespace %s has no PersistentVolumeClaim %s, in which data sets are kept. Ask the owner of the cluster for it: docs/guide/data-sets.md.", namespace, render.DatasetClaim), nil
	case err != nil:
		return "", wrap("read the claim for data sets", err)
	case claim.Status.Phase == corev1.ClaimLost:
		return fmt.Sprintf("The PersistentVolumeClaim %s of namespace %s has lost its volume.", render.DatasetClaim, namespace), nil
	}
	return "", nil
}

// jobOf reads a Job of the data set, or returns nil. The result leaving reports whether Kubernetes
// is about to delete the Job, because it belongs to an earlier Dataset of this name.
func (r *Reconciler) jobOf(ctx context.Context, d *v1alpha1.Dataset, task, node string) (job *batchv1.Job, leaving bool, err error) {
	job = &batchv1.Job{}
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: render.DatasetJobName(d.Name, task, node)}, job)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, wrap("read a Job of the data set", err)
	}
	return job, !metav1.IsControlledBy(job, d) || !job.DeletionTimestamp.IsZero(), nil
}

func (r *Reconciler) create(ctx context.Context, d *v1alpha1.Dataset, job *batchv1.Job) error {
	if err := controllerutil.SetControllerReference(d, job, r.Client.Scheme()); err != nil {
		return wrap("own a Job of the data set", err)
	}
	if err := r.Client.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
		return wrap("create a Job of the data set", err)
	}
	return nil
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return wrap("set up the controller of data sets", ctrl.NewControllerManagedBy(mgr).
		Named("dataset").
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		For(&v1alpha1.Dataset{}).
		Complete(r))
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
