// Package trial carries out one Trial: it makes the pods, hands their agents what to do phase by
// phase, agrees t = 0, collects and judges the results, and deletes everything again.
//
// Package admission says when a trial may start. Then a reconcile observes once (scope) and runs
// the phases in order until one is not done:
//
//	(chaosMesh ->) deploy -> prove (-> machines) -> start -> load (-> scraped) -> release -> run (-> check) (-> measure) -> collect -> clean up -> complete
//
// What can be observed again (pods, reports) is never decided from conditions. What cannot (the
// instant t = 0, the outcome) is written to status before anything acts on it, so that a manager
// that takes over goes on with the same run. A trial whose run is lost is not repeated silently: it
// ends as Invalid and the experiment controller makes another one.
package trial

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/inspect"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/coordinator"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/results"
)

// Coordinator is what the controller needs of package coordinator.
type Coordinator interface {
	Register(trial types.NamespacedName, pods []coordinator.Pod)
	Direct(trial types.NamespacedName, pod string, d protocol.Directive, files []protocol.File)
	Report(trial types.NamespacedName, pod string) (*protocol.Report, time.Time)
	Forget(trial types.NamespacedName)
}

// Reconciler carries out Trials. All exported fields but Software and Prometheus are needed.
type Reconciler struct {
	Client client.Client
	// Reader reads past the cache: Secrets and ConfigMaps, which are not cached, and what must not
	// be stale.
	Reader      client.Reader
	Clock       clock.Clock
	Recorder    events.EventRecorder
	Coordinator Coordinator
	// Environment of the pods; the authorities that their agents trust are those of Trusted.
	Environment render.Environment
	// Trusted returns the PEM certificates that a new pod's agent checks the coordinator's with.
	// They change.
	Trusted func() string
	// Software is what carries trials out, for their results. Nil: they do not say.
	Software func(ctx context.Context) *results.Software
	// Prometheus of the cluster. Nil: it has none.
	Prometheus Prometheus
	// MessageSpacing is the least time between two writes of a status in which only messages of
	// conditions differ. 0: every message is written.
	MessageSpacing time.Duration

	memory memory
}

// workers is how many trials are brought forward at the same time. Each trial has one of them at
// most, and waits for others only where it takes much memory: see heavy.
const workers = 16

// conflictDelay is how long the cache is given to see our last write.
const conflictDelay = 5 * time.Millisecond

// phase does one part of a trial's life. done is false while it waits; after says when to look
// again if nothing happens before.
type phase func(ctx context.Context, s *scope) (done bool, after time.Duration, err error)

// Reconcile brings one trial forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	trial := &v1alpha1.Trial{}
	if err := r.Client.Get(ctx, req.NamespacedName, trial); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !trial.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, trial)
	}
	if isTrue(trial, v1alpha1.TrialComplete) {
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(trial, v1alpha1.FinalizerTrial) {
		// The finalizer is on the API server before anything is made that it must clean up.
		return ctrl.Result{}, wrap("add the finalizer", r.Client.Update(ctx, trial))
	}
	if !isTrue(trial, v1alpha1.TrialAdmitted) {
		return ctrl.Result{}, nil // package admission decides; nothing exists yet
	}
	s, err := r.observe(ctx, trial)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() {
		hold, patchErr := r.patchStatus(ctx, s)
		switch {
		case hold > 0 && err == nil && (result.RequeueAfter == 0 || result.RequeueAfter > hold):
			result.RequeueAfter = hold
		case patchErr == nil || err != nil:
		case apierrors.IsConflict(patchErr):
			// We acted on a trial that was read before our own last write reached the cache.
			// Nothing is lost: look again.
			result = ctrl.Result{RequeueAfter: conflictDelay}
		default:
			result, err = ctrl.Result{}, patchErr
		}
	}()
	if s.outcomeKnown() && !isKnown(s.before) {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil // it was given up by what was observed
	}
	return r.advance(ctx, s)
}

// advance runs the phases until one is not done. Once the outcome is known only the clean-up is
// left, and it starts in a reconcile of its own, after the outcome has been written.
func (r *Reconciler) advance(ctx context.Context, s *scope) (ctrl.Result, error) {
	phases := []phase{r.chaosMesh, r.deploy, r.prove, r.machines, r.start, r.load, r.release, r.run, r.check, r.measure, r.collect}
	known := s.outcomeKnown()
	if known {
		phases = []phase{r.cleanUp}
	}
	for _, p := range phases {
		done, after, err := p(ctx, s)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !known && s.outcomeKnown() {
			return ctrl.Result{RequeueAfter: time.Millisecond}, nil
		}
		if !done {
			return ctrl.Result{RequeueAfter: after}, nil
		}
	}
	return ctrl.Result{}, nil
}

// SetupWithManager registers the controller. changed tells of agents' reports.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, changed <-chan event.GenericEvent) error {
	toTrial := handler.EnqueueRequestsFromMapFunc(objects.TrialOf)
	return ctrl.NewControllerManagedBy(mgr).
		Named("trial").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		For(&v1alpha1.Trial{}).
		Watches(&corev1.Pod{}, toTrial).
		Watches(&appsv1.StatefulSet{}, toTrial).
		Watches(&batchv1.Job{}, toTrial).
		Watches(&corev1.Service{}, toTrial).
		Watches(&v1alpha1.Experiment{}, handler.EnqueueRequestsFromMapFunc(inspect.Of(r.Client)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(changed, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
