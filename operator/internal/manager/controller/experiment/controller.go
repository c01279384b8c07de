// Package experiment runs Experiments: it creates Trials one after the other, counts how they end,
// and puts their results together.
//
// It creates and deletes Trials, takes snapshots of Systems, and writes one ConfigMap with results;
// what happens inside of a Trial is the trial controller's. Package plan decides from the existing
// Trials whether another Trial comes, and which. A reconcile observes once, then goes through its
// phases:
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
// The facts that cannot be observed again, the seed and the seal, are written to status before the
// first Trial is created. Everything else follows from what exists. A manager that is replaced at
// any point goes on where it was. A trial that was seen too late is made again under the same name,
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

// fieldOwner of what is applied.
const fieldOwner = client.FieldOwner("assay-experiment")

// conflictDelay is long enough for the cache to see what was written.
const conflictDelay = 100 * time.Millisecond

// Reconciler runs Experiments. All fields are needed.
type Reconciler struct {
	Client client.Client
	// Reader reads past the cache: ControllerRevisions and ConfigMaps, which are not cached, and
	// what must not be stale.
	Reader   client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Seed draws the seed of an experiment that names none, from 1 to 2^53-1.
	Seed func() int64
	// Checks are made before an experiment is accepted, as at admission.
	Checks plan.Checks
	// Monitors of the experiments' pods. Nil: there are none.
	Monitors Monitors
	// Store names the result store of an experiment that asks for this; empty: none. Nil: there are
	// no stores.
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
		// The finalizer is on the API server before a Trial is made that it must wait for. Its
		// update is the event that goes on.
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
			// The cache is a moment behind what was written; nothing is wrong.
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

// outcomeChanged lets only those changes of a Trial through that a plan depends on: the many steps
// of its life are no concern of the experiment.
var outcomeChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*v1alpha1.Trial)
		after, okAfter := e.ObjectNew.(*v1alpha1.Trial)
		return !okBefore || !okAfter || plan.Outcome(before) != plan.Outcome(after) || waitsFor(before) != waitsFor(after) || archived(before) != archived(after)
	},
}

// waitsFor is why a trial does not start, or nothing.
func waitsFor(t *v1alpha1.Trial) string {
	if c := queueing(t); c != nil && c.Reason != v1alpha1.ReasonQueued {
		return c.Reason + c.Message
	}
	return ""
}

// experimentsWaitingFor lists the experiments that name a System and have not been accepted: others
// run the snapshot that they took.
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

// finalize deletes the experiment's Trials and lets the experiment go when they are gone. Each
// Trial cleans up after itself first. Results stay.
func (r *Reconciler) finalize(ctx context.Context, exp *v1alpha1.Experiment) error {
	if !controllerutil.ContainsFinalizer(exp, v1alpha1.FinalizerExperiment) {
		return nil
	}
	// Not from the cache: a Trial that was created a moment ago would be left behind.
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
		return nil // the deletion of the last one is the event that goes on
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
