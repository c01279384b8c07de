// Package admission decides which waiting trials start. It is a controller of its own with one
// worker, so running trials never wait behind a decision about waiting ones.
//
// One pass decides about all waiting trials. It reads trials and experiments from the cache,
// without copies. It finds them by indexes of the cache, since there may be thousands of finished
// trials. Only if a trial may start does it read more: the quotas of its namespace, nodes and pods
// (in pages), and the grants.
//
// # Grants
//
// The cache of a manager may be behind, and a manager that was stopped for longer than its lease
// may still act. Therefore the state of one manager does not lock pools. A trial starts once its
// name is in the ConfigMap of grants, which managers replace under the resource version that they
// read.
//
//	read the grants -> decide, with granted trials as holders of their pools -> write the grants -> write Admitted into the trials' status
//
// If two managers decide at the same time, one fails to write the grants, and decides again. If a
// manager dies before the last step, its successor carries out the grant. A grant lasts until its
// trial is complete or gone.
package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/experiment/queue"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/snapshot"
)

const (
	// QueuePoll is how often waiting trials are looked at without an event: for nodes, for room,
	// for quota. The end of an earlier trial causes a pass long before that.
	QueuePoll = 10 * time.Second
	// soonPoll is how often they are looked at while the next trial of an earlier experiment is
	// about to be made.
	soonPoll = time.Second
	// conflictDelay is how long to wait for the cache to see the write of another manager.
	conflictDelay = 5 * time.Millisecond
)

// CallsAtOnce is how many calls a manager makes at the same time to admit trials.
const CallsAtOnce = 16

// The indexes of cached trials.
const (
	// openTrials has the trials that are not complete, under the value open.
	openTrials = "assay.dev/open"
	open       = "true"
	// experimentOf has the trials of an experiment, by its name.
	experimentOf = "assay.dev/experiment"
)

// Indexes are the indexes that a cache needs for a Reconciler with Indexed.
var Indexes = map[string]client.IndexerFunc{
	openTrials: func(o client.Object) []string {
		if t, is := o.(*v1alpha1.Trial); !is || isTrue(t, v1alpha1.TrialComplete) {
			return nil
		}
		return []string{open}
	},
	experimentOf: func(o client.Object) []string {
		if t, is := o.(*v1alpha1.Trial); is {
			return []string{t.Spec.Experiment}
		}
		return nil
	},
}

// Reconciler admits trials. All exported fields except the last two are needed.
type Reconciler struct {
	Client client.Client
	// Reader reads past the cache, whole clusters in pages.
	Reader   client.Reader
	Clock    clock.Clock
	Recorder events.EventRecorder
	// Environment of the pods that trials will have.
	Environment render.Environment
	// Grants names the ConfigMap of grants, in the manager's namespace.
	Grants types.NamespacedName
	// AtOnce is how many calls about different trials a pass makes at the same time; 0 is one. The
	// order of the trials is decided before, in one write of the grants for all.
	AtOnce int
	// Indexed: Client reads a cache with the Indexes. Otherwise each pass lists all trials.
	Indexed bool

	// pods of waiting trials. Only one pass runs at a time.
	pods podsToBe
}

// podsToBe has the pods that trials will have, by the trials' UIDs. Concurrent calls of a pass
// share it.
type podsToBe struct {
	mu sync.Mutex
	of map[types.UID][]queue.Pod
}

func (p *podsToBe) get(uid types.UID) []queue.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[uid]
}

func (p *podsToBe) set(uid types.UID, pods []queue.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[types.UID][]queue.Pod{}
	}
	p.of[uid] = pods
}

// keep removes the pods of all trials that are not in there.
func (p *podsToBe) keep(there map[types.UID]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(uid types.UID, _ []queue.Pod) bool { return !there[uid] })
}

// pass is one decision about all waiting trials.
type pass struct {
	r           *Reconciler
	now         time.Time
	trials      []v1alpha1.Trial // from the cache, all that matter: must not be changed
	experiments []v1alpha1.Experiment
	byName      map[string]*v1alpha1.Trial
	look        *capacityChecker
	decided     map[string]queue.Decision // by trial
	granted     map[string]bool           // trials that hold their pools, also if the cache does not show it
}

// Reconcile makes one pass. All requests are the same.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	p := &pass{r: r, now: r.Clock.Now(), byName: map[string]*v1alpha1.Trial{}, decided: map[string]queue.Decision{}, granted: map[string]bool{}}
	waiting, err := p.observe(ctx)
	if err != nil || len(waiting) == 0 {
		return ctrl.Result{}, err
	}
	starts, err := p.decide(ctx, waiting)
	if err != nil {
		return ctrl.Result{}, err
	}
	if starts {
		// The cache makes passes cheap, and in most of them no trial may start. If one may, the
		// pass decides again, with the grants.
		if err := p.grant(ctx, waiting); apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: conflictDelay}, nil
		} else if err != nil {
			return ctrl.Result{}, err
		}
	}
	errs := make([]error, len(waiting))
	r.each(len(waiting), func(i int) { errs[i] = p.tell(ctx, waiting[i]) })
	after := QueuePoll
	for i, t := range waiting {
		if apierrors.IsConflict(errs[i]) {
			after = conflictDelay // another program has changed the trial; the grant stays
			errs[i] = nil
		}
		if p.decided[nameOf(t)].Soon {
			after = min(after, soonPoll)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// each calls do with 0 to n-1, up to AtOnce at a time. With one at a time, it calls do in this
// goroutine and in order.
func (r *Reconciler) each(n int, do func(i int)) {
	if r.AtOnce <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, r.AtOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}

func nameOf(t *v1alpha1.Trial) string { return t.Namespace + "/" + t.Name }

func isTrue(t *v1alpha1.Trial, condition string) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, condition)
}

// observe reads the trials, and returns the waiting ones.
func (p *pass) observe(ctx context.Context) ([]*v1alpha1.Trial, error) {
	trials, experiments := &v1alpha1.TrialList{}, &v1alpha1.ExperimentList{}
	which := []client.ListOption{client.UnsafeDisableDeepCopy}
	if p.r.Indexed {
		which = append(which, client.MatchingFields{openTrials: open})
	}
	if err := p.r.Client.List(ctx, trials, which...); err != nil {
		return nil, fmt.Errorf("list trials: %w", err)
	}
	p.trials = trials.Items
	var waiting []*v1alpha1.Trial
	there := map[types.UID]bool{}
	for i := range p.trials {
		t := &p.trials[i]
		p.byName[nameOf(t)] = t
		// The controller of a trial first adds the finalizer. Without it, the trial is not ready.
		if !isTrue(t, v1alpha1.TrialAdmitted) && !isTrue(t, v1alpha1.TrialComplete) && t.DeletionTimestamp.IsZero() &&
			controllerutil.ContainsFinalizer(t, v1alpha1.FinalizerTrial) {
			waiting, there[t.UID] = append(waiting, t), true
		}
	}
	p.r.pods.keep(there)
	if len(waiting) == 0 {
		return nil, nil
	}
	if err := p.r.Client.List(ctx, experiments, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list experiments: %w", err)
	}
	p.experiments = experiments.Items
	if err := p.observeFinished(ctx); err != nil {
		return nil, err
	}
	p.look = &capacityChecker{r: p.r, trials: p.byName, rooms: map[string]queue.Room{}, quotas: map[string][]corev1.ResourceQuota{}, kept: map[string]int64{}}
	return waiting, nil
}

// observeFinished adds the finished trials on which the queue depends, if they were not read.
func (p *pass) observeFinished(ctx context.Context) error {
	if !p.r.Indexed {
		return nil
	}
	for _, name := range queue.Between(p.trials, p.experiments) {
		list := &v1alpha1.TrialList{}
		if err := p.r.Client.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{experimentOf: name.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list trials of experiment %s: %w", name, err)
		}
		for i := range list.Items {
			// The cache may have changed since it gave the trials that are not complete.
			if t := &list.Items[i]; isTrue(t, v1alpha1.TrialComplete) && p.byName[nameOf(t)] == nil {
				p.trials = append(p.trials, *t)
			}
		}
	}
	return nil
}

// decide decides about the waiting trials without a grant. It reports whether one may start.
func (p *pass) decide(ctx context.Context, waiting []*v1alpha1.Trial) (bool, error) {
	entries := queue.Entries(p.trials, p.experiments, p.now)
	for i := range entries {
		entries[i].Admitted = entries[i].Admitted || p.granted[entries[i].Trial]
	}
	if p.r.AtOnce > 1 {
		if err := p.prepare(ctx, entries); err != nil {
			return false, err
		}
	}
	decided, err := queue.Decide(entries, func(e queue.Entry) (queue.Room, error) { return p.look.room(ctx, e) })
	if err != nil {
		return false, err
	}
	starts := false
	for _, t := range waiting {
		if d, ok := decided[nameOf(t)]; ok && !p.granted[nameOf(t)] {
			p.decided[nameOf(t)] = d
			starts = starts || d.State == queue.Start
		}
	}
	return starts, nil
}

// prepare renders the pods of all trials that would start if each had room. Otherwise the queue
// would ask for them one by one, with a call each. If a call fails, the queue meets the error
// again.
func (p *pass) prepare(ctx context.Context, entries []queue.Entry) error {
	likely, err := queue.Decide(entries, func(queue.Entry) (queue.Room, error) { return queue.Room{State: queue.Start}, nil })
	if err != nil {
		return err
	}
	var wanted []*v1alpha1.Trial
	for name, d := range likely {
		t := p.byName[name]
		if _, asked := p.look.rooms[name]; d.State == queue.Start && t != nil && !asked && p.r.pods.get(t.UID) == nil {
			wanted = append(wanted, t)
		}
	}
	listed := p.r.listSnapshots(ctx, wanted)
	p.r.each(len(wanted), func(i int) {
		t := wanted[i]
		revision := listed[types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.System.Revision}]
		if revision == nil {
			_, _ = p.r.podsToBe(ctx, t)
		} else if system, err := snapshot.Of(revision); err == nil {
			_ = p.r.render(t, system)
		}
	})
	return nil
}

const (
	// listFrom is how many trials a namespace must have for a list of its snapshots: one page costs
	// as much as so many single reads at most.
	listFrom = 8
	// snapshotPage is how many snapshots are read at once. A snapshot may have a megabyte.
	snapshotPage = 50
)

// listSnapshots reads the Systems of trials by lists, for namespaces with many trials. The caller
// reads missing ones one by one.
func (r *Reconciler) listSnapshots(ctx context.Context, trials []*v1alpha1.Trial) map[types.NamespacedName]*appsv1.ControllerRevision {
	wanted, found := map[string]map[string]bool{}, map[types.NamespacedName]*appsv1.ControllerRevision{}
	many := map[string]int{}
	for _, t := range trials {
		if wanted[t.Namespace] == nil {
			wanted[t.Namespace] = map[string]bool{}
		}
		wanted[t.Namespace][t.Spec.System.Revision] = true
		many[t.Namespace]++
	}
	for namespace, names := range wanted {
		next := ""
		for range many[namespace] / listFrom { // more pages would cost more than single reads
			list := &appsv1.ControllerRevisionList{}
			if r.Reader.List(ctx, list, client.InNamespace(namespace), client.Limit(snapshotPage), client.Continue(next)) != nil {
				break // the single read meets the error again
			}
			for _, one := range list.Items {
				if names[one.Name] {
					found[client.ObjectKeyFromObject(&one)] = &one
				}
			}
			if next = list.GetContinue(); next == "" {
				break
			}
		}
	}
	return found
}

// grant decides again with the grants of all managers. It adds trials that may start until no other
// may, and writes the grants.
func (p *pass) grant(ctx context.Context, waiting []*v1alpha1.Trial) error {
	g, err := p.r.readGrants(ctx)
	if err != nil {
		return err
	}
	if err := p.hold(ctx, g); err != nil {
		return err
	}
	before := len(g.trials)
	for {
		starts, err := p.decide(ctx, waiting)
		if err != nil {
			return err
		}
		if !starts {
			break
		}
		for _, t := range waiting {
			if !p.granted[nameOf(t)] && p.decided[nameOf(t)].State == queue.Start {
				g.trials = append(g.trials, grantOf(t))
				p.granted[nameOf(t)] = true
			}
		}
	}
	if len(g.trials) == before {
		return nil // the grants show, unlike the cache, that another trial starts
	}
	return p.r.writeGrants(ctx, g)
}

// hold lets trials with grants hold their pools, and drops the grants of finished trials.
func (p *pass) hold(ctx context.Context, g *grants) error {
	kept := g.trials[:0]
	for _, one := range g.trials {
		t, err := p.find(ctx, one)
		if err != nil {
			return err
		}
		// A trial that is deleted before it was admitted never starts: writing Admitted needs the
		// resource version from before its deletion.
		if t == nil || isTrue(t, v1alpha1.TrialComplete) || !isTrue(t, v1alpha1.TrialAdmitted) && !t.DeletionTimestamp.IsZero() {
			continue
		}
		kept = append(kept, one)
		p.granted[nameOf(t)] = true
		if _, decided := p.decided[nameOf(t)]; decided {
			p.decided[nameOf(t)] = queue.Decision{State: queue.Start, Message: "Another manager granted the trial its pools."}
		}
	}
	g.trials = kept
	return nil
}

// find returns a trial that has a grant, or nil if it is gone.
func (p *pass) find(ctx context.Context, g grant) (*v1alpha1.Trial, error) {
	if t := p.byName[g.Namespace+"/"+g.Name]; t != nil && t.UID == g.UID {
		return t, nil
	}
	key, t := client.ObjectKey{Namespace: g.Namespace, Name: g.Name}, &v1alpha1.Trial{}
	if p.r.Indexed && p.r.Client.Get(ctx, key, t) == nil && t.UID == g.UID && isTrue(t, v1alpha1.TrialComplete) {
		return t, nil
	}
	// The cache may not have seen it yet.
	t = &v1alpha1.Trial{}
	err := p.r.Reader.Get(ctx, key, t)
	if apierrors.IsNotFound(err) || err == nil && t.UID != g.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read trial %s/%s, which has a grant: %w", g.Namespace, g.Name, err)
	}
	p.trials = append(p.trials, *t)
	return t, nil
}

// tell writes the decision about a trial into its status, if it changed.
func (p *pass) tell(ctx context.Context, t *v1alpha1.Trial) error {
	d, admitted := p.decided[nameOf(t)], p.granted[nameOf(t)]
	if !admitted && says(t, d) {
		return nil // the most frequent case, and a copy of the trial costs more than all else of a pass
	}
	told := t.DeepCopy()
	if admitted {
		p.set(told, v1alpha1.TrialAdmitted, metav1.ConditionTrue, v1alpha1.ReasonAdmitted, d.Message)
		p.set(told, v1alpha1.TrialComplete, metav1.ConditionFalse, v1alpha1.ReasonInProgress, "The trial is on its way.")
		at := metav1.NewMicroTime(p.now)
		told.Status.Times.Admitted = &at
	} else {
		p.set(told, v1alpha1.TrialAdmitted, metav1.ConditionFalse, string(d.State), d.Message)
	}
	if equality.Semantic.DeepEqual(t.Status, told.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(t.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := p.r.Client.Status().Patch(ctx, told, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write the status of trial %s: %w", nameOf(t), err)
	}
	if admitted {
		p.r.Recorder.Eventf(told, nil, corev1.EventTypeNormal, v1alpha1.ReasonAdmitted, v1alpha1.TrialAdmitted, "%s", d.Message)
	}
	return nil
}

// says reports whether a trial's status already has a decision not to start it.
func says(t *v1alpha1.Trial, d queue.Decision) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialAdmitted)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == string(d.State) && c.ObservedGeneration == t.Generation &&
		c.Message == conditions.Truncate(d.Message, conditions.MaxMessage)
}

// set changes one condition.
func (p *pass) set(t *v1alpha1.Trial, condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: conditions.Truncate(message, conditions.MaxMessage),
		ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(p.now),
	})
}

// the is the only request.
var the = []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "waiting-trials"}}}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	pass := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return the })
	return ctrl.NewControllerManagedBy(mgr).
		Named("admission").
		// Only one pass runs at a time, since it decides about all trials.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Watches(&v1alpha1.Trial{}, pass, builder.WithPredicates(predicate.Funcs{UpdateFunc: matters})).
		Watches(&v1alpha1.Experiment{}, pass, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// matters reports whether an update changes the queue. Running trials change often in other ways.
func matters(e event.UpdateEvent) bool {
	before, okBefore := e.ObjectOld.(*v1alpha1.Trial)
	after, okAfter := e.ObjectNew.(*v1alpha1.Trial)
	if !okBefore || !okAfter {
		return true
	}
	for _, condition := range []string{v1alpha1.TrialAdmitted, v1alpha1.TrialDeployed, v1alpha1.TrialComplete} {
		if isTrue(before, condition) != isTrue(after, condition) {
			return true
		}
	}
	return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || len(before.Finalizers) != len(after.Finalizers)
}
