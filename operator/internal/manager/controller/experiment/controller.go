// Package experiment runs Experiments: it creates Trials one after the other, counts their
// outcomes, and makes the results.
//
// It creates and deletes Trials, takes snapshots of Systems, and writes one ConfigMap with results.
// The trial controller carries Trials out. Package plan decides from the existing Trials whether
// another Trial comes, and which. A reconcile observes once, then goes through its phases:
//
//	accept    the spec fits its Systems -> snapshots of them, the seal of the claims and the seed are written, and the plan is fixed from then on
//	advance   plan.Next -> images and data on the nodes -> create a Trial, wait for one, or be done
//	unmonitor after the last Trial, delete the PodMonitors that Trials have made
//	forget    after the last Trial, delete the Jobs that pulled images, and the Secrets that Trials have shared
//	store     what the Trials that are done come to -> ConfigMap, verdicts in status
//
// An experiment that recurs has one phase instead: recur makes an Experiment at each due time,
// which then has the phases above.
//
// The seed and the seal cannot be observed again, so they are written to status before the first
// Trial is created. Everything else follows from the existing objects. A manager that takes over at
// any point goes on. If the cache has not seen a new Trial, the next one would have the same name,
// which is taken.
package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
)

// fieldOwner of applied objects.
const fieldOwner = client.FieldOwner("assay-experiment")

// conflictDelay is how long to wait for the cache to see a write.
const conflictDelay = 100 * time.Millisecond

// Reconciler runs Experiments. All fields are needed.
type Reconciler struct {
	Client client.Client
	// Reader reads past the cache: ControllerRevisions and ConfigMaps, which are not cached, and
	// objects that must not be stale.
	Reader   client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Seed draws the seed of an experiment without one, from 1 to 2^53-1.
	Seed func() int64
	// Checks are the checks of admission, made again before an experiment is accepted.
	Checks plan.Checks
	// Monitors of the experiments' pods. Nil: the cluster has none.
	Monitors Monitors
	// Store returns the name of the result store for a request. Empty: no store. Nil: there are no
	// stores.
	Store func(asked *v1alpha1.Results) string
	// Environment of the pods that pull images.
	Environment render.Environment
}

// Reconcile brings one experiment forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	exp := &v1alpha1.Experiment{}
	if err := r.Client.Get(ctx, req.NamespacedName, exp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !exp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, exp)
	}
	if controllerutil.AddFinalizer(exp, v1alpha1.FinalizerExperiment) {
		// The finalizer must be on the API server before a Trial is made. Writing it causes the
		// event for the next step.
		return ctrl.Result{}, wrap("add the finalizer", r.Client.Update(ctx, exp))
	}
	s, err := r.observe(ctx, exp)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() {
		if statusErr := r.updateStatus(ctx, s); statusErr != nil && err == nil {
			err = statusErr
		}
		if apierrors.IsConflict(err) {
			// The cache is only a moment behind a write.
			result, err = ctrl.Result{RequeueAfter: conflictDelay}, nil
		}
	}()
	if exp.Spec.Recurrence != nil {
		return runsMaker{r}.recur(ctx, s)
	}
	for _, phase := range []func(context.Context, *scope) error{r.accept, r.advance, r.unmonitor, r.puller().forget, r.forgetPrepared, r.store} {
		if err := phase(ctx, s); err != nil || s.plan == nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: s.again}, nil
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return wrap("set up the experiment controller", ctrl.NewControllerManagedBy(mgr).
		Named("experiment").
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		For(&v1alpha1.Experiment{}).
		Owns(&v1alpha1.Trial{}, builder.WithPredicates(outcomeChanged)).
		Owns(&v1alpha1.Experiment{}, builder.WithPredicates(runChanged)).
		Watches(&v1alpha1.System{}, handler.EnqueueRequestsFromMapFunc(r.experimentsWaitingFor)).
		Watches(&v1alpha1.Dataset{}, handler.EnqueueRequestsFromMapFunc(r.experimentsWaitingForData)).
		Complete(r))
}

// outcomeChanged selects the changes of a Trial on which a plan depends. The experiment ignores the
// many other steps of a Trial.
var outcomeChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*v1alpha1.Trial)
		after, okAfter := e.ObjectNew.(*v1alpha1.Trial)
		return !okBefore || !okAfter || plan.Outcome(before) != plan.Outcome(after) || waitsFor(before) != waitsFor(after) || archived(before) != archived(after)
	},
}

// waitsFor returns why a trial does not start, or "".
func waitsFor(t *v1alpha1.Trial) string {
	if c := queueing(t); c != nil && c.Reason != v1alpha1.ReasonQueued {
		return c.Reason + c.Message
	}
	return ""
}

// experimentsWaitingFor lists the experiments that name a System and have not been accepted.
// Accepted ones run their snapshot.
func (r *Reconciler) experimentsWaitingFor(ctx context.Context, system client.Object) []reconcile.Request {
	list := &v1alpha1.ExperimentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(system.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the experiments that a System is for")
		return nil
	}
	var requests []reconcile.Request
	for _, exp := range list.Items {
		names := func(ref v1alpha1.SystemReference) bool { return ref.Name == system.GetName() }
		if exp.Status.Seed == 0 && slices.ContainsFunc(exp.Spec.Systems, names) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: exp.Namespace, Name: exp.Name}})
		}
	}
	return requests
}

// finalize deletes the experiment's Trials, and removes the finalizer when they are gone. Each
// Trial cleans up after itself first. Results stay.
func (r *Reconciler) finalize(ctx context.Context, exp *v1alpha1.Experiment) error {
	if !controllerutil.ContainsFinalizer(exp, v1alpha1.FinalizerExperiment) {
		return nil
	}
	// Do not read from the cache, which may miss a Trial that was just created.
	trials, err := listTrials(ctx, r.Reader, exp)
	if err != nil {
		return err
	}
	for i := range trials {
		if !trials[i].DeletionTimestamp.IsZero() {
			continue
		}
		uid := trials[i].UID
		err := r.Client.Delete(ctx, &trials[i], client.Preconditions{UID: &uid}, client.PropagationPolicy("Background"))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Trial %s: %w", trials[i].Name, err)
		}
	}
	if len(trials) > 0 {
		return nil // the event of the last deletion continues
	}
	before := exp.DeepCopy()
	controllerutil.RemoveFinalizer(exp, v1alpha1.FinalizerExperiment)
	err = r.Client.Patch(ctx, exp, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return wrap("remove the finalizer", client.IgnoreNotFound(err))
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
