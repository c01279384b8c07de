// Package trial runs the engine (package engine) on each Trial, and connects it to Kubernetes: to
// the trial's pods, its record, and the attachments of its results. It decides only when to look at
// a trial, and cleans up after deleted trials.
//
// Package admission decides when a trial may start.
package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/engine/instants"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/trial/inspect"
	"assay.dev/assay/operator/internal/manager/controller/trial/objects"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// Coordinator holds the calls that the controller needs of package coordinator.
type Coordinator interface {
	Register(trial types.NamespacedName, pods []coordinator.Pod)
	Direct(trial types.NamespacedName, pod string, d protocol.Directive, files []protocol.File)
	Report(trial types.NamespacedName, pod string) (*protocol.Report, time.Time)
	Forget(trial types.NamespacedName)
}

// Prometheus holds the calls that the controller needs of package monitoring.
type Prometheus interface {
	engine.Prometheus
	// PodMonitorLabels returns the labels by which the installed Prometheus selects PodMonitors.
	PodMonitorLabels() map[string]string
	// Forget drops the questions and answers kept for a trial.
	Forget(trial types.UID)
}

// Reconciler carries out Trials. All exported fields but Software and Prometheus are needed.
type Reconciler struct {
	Client client.Client
	// Reader bypasses the cache. It reads Secrets and ConfigMaps, which are not cached, and objects
	// that must not be stale.
	Reader      client.Reader
	Clock       clock.Clock
	Recorder    events.EventRecorder
	Coordinator Coordinator
	// Environment describes the pods' surroundings. The authorities that their agents trust come
	// from Trusted instead.
	Environment render.Environment
	// Trusted returns the PEM certificates by which a new pod's agent checks the coordinator's
	// certificate. They change.
	Trusted func() string
	// Software returns the versions of the software that carries trials out, for their results.
	// Nil: results leave them out.
	Software func(ctx context.Context) *results.Software
	// Prometheus reads the cluster's Prometheus. Nil: the cluster has none.
	Prometheus Prometheus
	// MessageSpacing is the least time between two writes of a status in which only messages of
	// conditions differ. 0: every message is written.
	MessageSpacing time.Duration
	// Near: the agents run on the manager's own machine.
	Near bool
	// AtOnce is how many calls about one trial's objects run at the same time. 0: one.
	AtOnce int
	// Indexed: Client reads a cache with the Indexes. Otherwise some looks go through all trials.
	Indexed bool

	made   sync.Once
	engine *engine.Engine
	chaos  chaosFaults
	record record
	// deletions holds the deletions that the API server has dated.
	deletions instants.Seen
}

// workers is how many trials are reconciled at the same time. Each trial occupies at most one
// worker. It waits for other trials only where it needs much memory: see heavy.
const workers = 16

// CallsAtOnce is how many calls a manager makes at the same time about one trial's objects.
const CallsAtOnce = 16

// conflictDelay is how long we give the cache to see our last write.
const conflictDelay = 5 * time.Millisecond

// deletionPoll is how soon to look again for objects whose end no watch reports.
const deletionPoll = 200 * time.Millisecond

// leftGrace is how long a deleted trial waits for objects that run nothing and cannot be deleted.
// Then it leaves them to the garbage collector, since the trial owns them.
const leftGrace = engine.StoreGrace

// carrier returns the engine that carries the trials out. The first call makes it.
func (r *Reconciler) carrier() *engine.Engine {
	r.made.Do(func() {
		r.chaos.r, r.record.r = r, r
		r.engine = engine.New(engine.World{
			Pods: r.pods(), Record: &r.record, Attachments: attachments{r}, Clock: r.Clock, Agents: agentsOf{r}, Experiment: experiment{r},
			Faults: &r.chaos, Nodes: nodeResetter{r}, Domain: r.Environment.ClusterDomain, Near: r.Near,
			Prometheus: func() engine.Prometheus {
				if r.Prometheus == nil {
					return nil
				}
				return r.Prometheus
			},
		})
	})
	return r.engine
}

// Reconcile moves one trial forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
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
		// The finalizer must be on the API server before we make anything that it must clean up.
		return ctrl.Result{}, wrap("add the finalizer", r.Client.Update(ctx, trial))
	}
	if !isTrue(trial, v1alpha1.TrialAdmitted) {
		return ctrl.Result{}, nil // package admission decides; nothing exists yet
	}
	after, err := r.carrier().Advance(ctx, trial)
	switch {
	case errors.Is(err, engine.ErrConflict):
		// Our last write has not reached the cache yet, and we acted on an older trial. Nothing is
		// lost: look again.
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	case isTrue(trial, v1alpha1.TrialComplete):
		r.forget(req.NamespacedName)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// finalize cleans up after a trial that is being deleted. It does not wait for processes to end by
// themselves, since nothing needs their results any more.
func (r *Reconciler) finalize(ctx context.Context, trial *v1alpha1.Trial) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(trial)
	r.Coordinator.Forget(key)
	remains, err := r.pods().Delete(ctx, trial)
	var left *engine.LeftError
	now := r.Clock.Now()
	if wait := leftGrace - now.Sub(r.deletions.Date(trial.UID, trial.DeletionTimestamp.Time, now)); errors.As(err, &left) && wait > 0 {
		log.FromContext(ctx).Info("Something of a deleted trial cannot be deleted", "trial", trial.Name, "err", err.Error())
		return ctrl.Result{RequeueAfter: min(wait, engine.RetryPoll)}, nil
	}
	if err != nil && left == nil {
		return ctrl.Result{}, err
	}
	if remains.Left != "" {
		return ctrl.Result{RequeueAfter: deletionPoll}, nil
	}
	r.forget(key)
	before := trial.DeepCopy()
	if controllerutil.RemoveFinalizer(trial, v1alpha1.FinalizerTrial) {
		// Patch only the finalizer. A whole object has defaults of fields that are newer than it,
		// and writing them would change its spec.
		err := r.Client.Patch(ctx, trial, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return ctrl.Result{}, wrap("remove the finalizer", client.IgnoreNotFound(err))
	}
	return ctrl.Result{}, nil
}

// forget drops everything kept about the trials of that name.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.Coordinator.Forget(key)
	for _, uid := range r.carrier().Forget(key) {
		r.chaos.forget(uid)
		r.record.forget(uid)
		if r.Prometheus != nil {
			r.Prometheus.Forget(uid)
		}
	}
}

func isTrue(t *v1alpha1.Trial, condition string) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, condition)
}

// SetupWithManager registers the controller. The channel changed announces agents' reports.
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
