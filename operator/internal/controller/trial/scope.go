package trial

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/snapshot"
	"assay.dev/assay/operator/internal/controller/trial/chaos"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/controller/trial/succession"
	"assay.dev/assay/operator/internal/coordinator"
	"assay.dev/assay/operator/internal/fault"
	"assay.dev/assay/operator/internal/placement"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/validity"
)

// scope is all that one reconcile observes, once. Phases read it and change trial.status only.
type scope struct {
	trial    *v1alpha1.Trial
	before   *v1alpha1.Trial // as read, for the status patch
	key      types.NamespacedName
	system   *v1alpha1.SystemSpec
	layout   *placement.Layout
	pods     map[string]*corev1.Pod // by name in the layout
	heard    map[string]heard       // by name in the layout, and by name of the agents that reset machines
	now      time.Time
	rendered *rendered // nil before every pod has an address
	events   []pendingEvent
	inForce  []timeline.Action     // see actions
	known    *validity.Observation // see observation
	answered []results.Measurement // by Prometheus, in the order of the spec

	// What faults of Chaos Mesh do to whole pods: see replaced.go. All but chaos are nil unless the
	// trial has been released and its faults replace pods.
	chaos      *chaos.Run             // the faults that Chaos Mesh carries out
	line       *succession.Run        // who has had a pod's name
	successors map[string]*render.Pod // what a pod that replaced another gets
}

// rendered is what a trial renders to, kept from one reconcile to the next since it does not change
// while the addresses don't.
type rendered struct {
	addresses string
	trial     *render.Trial
	pods      map[string]*render.Pod // by name in the layout
}

// memory is what the controller keeps between reconciles, by trial; all of it can be made again.
type memory struct {
	mu     sync.Mutex
	trials map[types.UID]*memo
	// heavy is held by the one trial whose templates are rendered or whose results are merged: both
	// take memory in proportion to what its author and its pods send.
	heavy sync.Mutex
}

// memo is what is kept of one trial.
type memo struct {
	key       types.NamespacedName
	rendered  *rendered
	system    *v1alpha1.SystemSpec
	created   bool            // its objects exist
	prepared  []protocol.File // not nil once the prepare step's output has been read
	preparing bool            // the prepare step's agent has its directive
	told      map[string]bool // actions of faults that events have told of, by their ID
	progress  time.Time       // when it was last published
	asked     time.Time       // when events were last asked for refusals of its pods
	leaving   time.Time       // when the API server was last asked what is left of it
	written   time.Time       // when its status was last written

	line       succession.Memory         // who has had which pod's name
	successors map[types.UID]*render.Pod // what pods that replaced others get, by pod

	occurrences []*fault.Occurrence // of faults that Chaos Mesh carries out
	chaos       chaos.Memory
}

// remember runs f with what is kept of a trial, and the memory locked.
func (r *Reconciler) remember(trial *v1alpha1.Trial, f func(m *memo)) {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	if r.memory.trials == nil {
		r.memory.trials = map[types.UID]*memo{}
	}
	m := r.memory.trials[trial.UID]
	if m == nil {
		m = &memo{key: client.ObjectKeyFromObject(trial)}
		r.memory.trials[trial.UID] = m
	}
	f(m)
}

// forget drops what is kept of every trial that had the name.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.Coordinator.Forget(key)
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	for uid, m := range r.memory.trials {
		if m.key != key {
			continue
		}
		delete(r.memory.trials, uid)
		if r.Prometheus != nil {
			r.Prometheus.Forget(uid)
		}
	}
}

func (r *Reconciler) observe(ctx context.Context, trial *v1alpha1.Trial) (*scope, error) {
	s := &scope{trial: trial, before: trial.DeepCopy(), key: client.ObjectKeyFromObject(trial), now: r.Clock.Now(), chaos: &chaos.Run{}, line: &succession.Run{}}
	var err error
	if s.system, err = r.systemOf(ctx, trial); err != nil {
		if apierrors.IsNotFound(err) {
			s.lostRecord(v1alpha1.ReasonRenderFailed, err) // the snapshot is never written again
			return s, nil
		}
		return nil, err
	}
	s.layout = r.layoutOf(trial, s.system)
	if s.pods, err = r.objects().Pods(ctx, s.layout); err != nil {
		return nil, err
	}
	s.chaos = r.chaosRun(s)
	s.line = r.lineOf(s)
	s.hear(r.Coordinator, nil) // of predecessors, too, whom the coordinator is about to forget
	if err := r.succession().Succeed(ctx, s.line); err != nil {
		if apierrors.IsNotFound(err) {
			s.lostRecord(v1alpha1.ReasonRunLost, err)
			return s, nil
		}
		return nil, err
	}
	known, err := r.resetter().Known(ctx, trial)
	if err != nil {
		return nil, err
	}
	machines := known
	for name, p := range s.pods {
		if made, err := r.objects().Made(ctx, s.layout, p); err != nil {
			return nil, err
		} else if !made {
			continue // whoever made it, its agent is none of ours
		}
		known = append(known, coordinator.Pod{UID: p.UID, Trial: s.key, Name: name, Part: p.Labels[v1alpha1.LabelPart], Index: objects.ClientIndex(s.layout, p)})
	}
	r.Coordinator.Register(s.key, known)
	s.hear(r.Coordinator, machines)
	return s, nil
}

// lostRecord gives a trial up of which something is gone that it wrote itself and cannot make
// again: it would hold its pools for ever.
func (s *scope) lostRecord(reason string, err error) {
	if !s.outcomeKnown() {
		s.giveUp(reason, "Somebody has deleted what the trial needs to go on: %s", err)
	}
}

// layoutOf a trial in this cluster.
func (r *Reconciler) layoutOf(trial *v1alpha1.Trial, system *v1alpha1.SystemSpec) *placement.Layout {
	return placement.NewLayout(trial.Namespace, trial.Name, &trial.Spec, system).InDomain(r.Environment.ClusterDomain)
}

// zero is t = 0 of a trial that has been released.
func (s *scope) zero() time.Time { return time.Unix(0, s.trial.Status.ZeroUnixNanos) }

// systemOf reads the System as it was when the experiment was accepted.
func (r *Reconciler) systemOf(ctx context.Context, trial *v1alpha1.Trial) (*v1alpha1.SystemSpec, error) {
	var spec *v1alpha1.SystemSpec
	r.remember(trial, func(m *memo) { spec = m.system })
	if spec != nil {
		return spec, nil
	}
	spec, err := snapshot.Read(ctx, r.Reader, trial)
	if err != nil {
		return nil, err
	}
	r.remember(trial, func(m *memo) { m.system = spec })
	return spec, nil
}

// heard is what a pod's agent said last, and when.
type heard struct {
	report *protocol.Report
	at     time.Time
}

// hear reads what every agent said last, once: all phases of a reconcile judge by the same reports.
func (s *scope) hear(agents Coordinator, machines []coordinator.Pod) {
	s.heard = map[string]heard{}
	names := append(s.everyName(), s.layout.PrepareJob())
	for _, p := range machines {
		names = append(names, p.Name)
	}
	for _, name := range names {
		if rep, at := agents.Report(s.key, name); rep != nil {
			s.heard[name] = heard{rep, at}
		}
	}
}

// report is the last thing that a pod's agent said, or nil.
func (s *scope) report(pod string) *protocol.Report { return s.heard[pod].report }

// serverNames, clientNames and everyName list the pods that take part in the run, in the layout's
// order. Servers are replicas and components.
func (s *scope) serverNames() []string { return s.layout.ServerPods() }

func (s *scope) clientNames() []string { return s.layout.ClientPods() }

func (s *scope) everyName() []string { return append(s.serverNames(), s.clientNames()...) }

// refuted gives the trial up when one of the checks fails.
func (s *scope) refuted(checks []validity.Check) bool {
	f := validity.First(checks, s.observation())
	if !f.OK() {
		s.giveUp(f.Reason, "%s", f.Message)
	}
	return !f.OK()
}

// outcomeKnown: the trial is judged, or given up.
func (s *scope) outcomeKnown() bool { return isKnown(s.trial) }

func isKnown(t *v1alpha1.Trial) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// giveUp ends the trial: as Failed before the run was released, as Invalid after.
func (s *scope) giveUp(reason, format string, args ...any) {
	s.set(v1alpha1.TrialValid, metav1.ConditionFalse, reason, format, args...)
}

func isTrue(t *v1alpha1.Trial, condition string) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, condition)
}
