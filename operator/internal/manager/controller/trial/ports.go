package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/queue"
	"assay.dev/assay/operator/internal/manager/controller/trial/chaos"
	"assay.dev/assay/operator/internal/manager/controller/trial/inspect"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// attachments keeps attachments in objects of the cluster: see package storage.
type attachments struct{ r *Reconciler }

var _ engine.Attachments = attachments{}

// results returns the reader and writer of trials' results.
func (r *Reconciler) results() storage.Results {
	return storage.Results{Client: r.Client, Reader: r.Reader, Software: r.Software}
}

func (a attachments) Prepared(ctx context.Context, s *engine.Subject) ([]byte, error) {
	return a.r.prepared(s).Read(ctx)
}

func (a attachments) Show(ctx context.Context, s *engine.Subject, files *corev1.ConfigMap) error {
	return a.r.objects().Create(ctx, s.Trial, files)
}

func (a attachments) Clients(ctx context.Context, s *engine.Subject) ([]results.Client, map[string][]byte, error) {
	return a.r.results().OfClients(ctx, s.Trial, s.Layout)
}

func (a attachments) Store(ctx context.Context, s *engine.Subject, before *v1alpha1.Trial, t *results.Trial, files engine.Files) error {
	return conflict(a.r.results().Put(ctx, before, s.Trial, s.Layout, t, storage.Attachments{Given: files.Given, Reports: files.Reports}))
}

func (a attachments) KeepFiles(ctx context.Context, s *engine.Subject) error {
	return a.r.results().KeepFiles(ctx, s.Trial, s.Layout)
}

// agentsOf passes calls on to the coordinator.
type agentsOf struct{ r *Reconciler }

var _ engine.Agents = agentsOf{}

func (a agentsOf) Direct(trial types.NamespacedName, pod string, d protocol.Directive, files []protocol.File) {
	a.r.Coordinator.Direct(trial, pod, d, files)
}

func (a agentsOf) Report(trial types.NamespacedName, pod string) (*protocol.Report, time.Time) {
	return a.r.Coordinator.Report(trial, pod)
}

// experiment reads a trial's Experiment, and makes events on it.
type experiment struct{ r *Reconciler }

var _ engine.Experiment = experiment{}

func (e experiment) KeepUntil(ctx context.Context, trial *v1alpha1.Trial, judged time.Time) (until time.Time, message string, err error) {
	until, err = inspect.Until(ctx, e.r.Client, trial, judged)
	if err != nil || until.IsZero() {
		return time.Time{}, "", err
	}
	return until, inspect.Message(trial, until), nil
}

func (e experiment) Gap(ctx context.Context, trial *v1alpha1.Trial, begins time.Time) (time.Duration, error) {
	trials, err := e.measuredOn(ctx, trial.Spec.Placement.Pools())
	if err != nil {
		return 0, err
	}
	return queue.Gap(trials, trial, begins), nil
}

// drainedOn is the index of the trials that have measured, by the pools that they had.
const drainedOn = "assay.dev/drained-on"

// anyNode is the pool of a trial that may run on any node.
const anyNode = "*"

// Indexes are the indexes that a cache needs for a Reconciler with Indexed.
var Indexes = map[string]client.IndexerFunc{
	drainedOn: func(o client.Object) []string {
		t, is := o.(*v1alpha1.Trial)
		if !is || t.Status.Times.Drained == nil {
			return nil
		}
		if pools := t.Spec.Placement.Pools(); len(pools) > 0 {
			return pools
		}
		return []string{anyNode}
	},
}

// measuredOn returns trials, without copies: among them all that have measured on one of the pools.
func (e experiment) measuredOn(ctx context.Context, pools []string) ([]v1alpha1.Trial, error) {
	which := []client.ListOption{client.UnsafeDisableDeepCopy}
	if !e.r.Indexed || len(pools) == 0 {
		trials := &v1alpha1.TrialList{}
		err := e.r.Client.List(ctx, trials, which...)
		return trials.Items, wrap("list trials", err)
	}
	var all []v1alpha1.Trial
	for _, pool := range append(slices.Clone(pools), anyNode) {
		trials := &v1alpha1.TrialList{}
		if err := e.r.Client.List(ctx, trials, append(which, client.MatchingFields{drainedOn: pool})...); err != nil {
			return nil, fmt.Errorf("list trials of pool %s: %w", pool, err)
		}
		all = append(all, trials.Items...)
	}
	return all, nil
}

func (e experiment) Progress(ctx context.Context, before, trial *v1alpha1.Trial, p protocol.TrialProgress) (conflict bool, err error) {
	return e.r.objects().PublishProgress(ctx, before, trial, p)
}

// Reasons of the events that report faults.
const (
	faultCarriedOut = "FaultCarriedOut"
	faultFailed     = "FaultFailed"
)

// Faults makes an event of each note on the Experiment.
func (e experiment) Faults(ctx context.Context, trial *v1alpha1.Trial, notes []engine.FaultNote) error {
	exp := &v1alpha1.Experiment{}
	if err := e.r.Client.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: trial.Spec.Experiment}, exp); err != nil {
		return err
	}
	for _, n := range notes {
		kind, reason := corev1.EventTypeNormal, faultCarriedOut
		if n.Failed {
			kind, reason = corev1.EventTypeWarning, faultFailed
		}
		e.r.Recorder.Eventf(exp, trial, kind, reason, n.Kind, "%s", n.Message)
	}
	return nil
}

// nodeResetter makes the pods that reset nodes, in the manager's namespace.
type nodeResetter struct{ r *Reconciler }

var _ engine.NodeResetter = nodeResetter{}

func (n nodeResetter) Refusal(ctx context.Context, trial *v1alpha1.Trial, resets engine.Resets) (string, error) {
	return n.r.resetter().Refusal(ctx, trial, resets)
}

func (n nodeResetter) Create(ctx context.Context, trial *v1alpha1.Trial, nodes []string) (string, error) {
	return n.r.resetter().Create(ctx, trial, nodes)
}

func (n nodeResetter) Describe(node string) string {
	return fmt.Sprintf("the pod in namespace %s that will reset node %s", n.r.Environment.Namespace, node)
}

// chaosFaults carries out faults through Chaos Mesh.
type chaosFaults struct {
	r *Reconciler

	mu     sync.Mutex
	trials map[types.UID]*chaos.Memory
}

var _ engine.Injector = (*chaosFaults)(nil)

func (r *Reconciler) chaosExecutor() *chaos.Executor {
	return &chaos.Executor{Client: r.Client, Reader: r.Reader, Clock: r.Clock, Recorder: r.Recorder}
}

// memory returns the executor's memory of a trial. No two reconciles of a trial run at once.
func (c *chaosFaults) memory(trial types.UID) *chaos.Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trials == nil {
		c.trials = map[types.UID]*chaos.Memory{}
	}
	if c.trials[trial] == nil {
		c.trials[trial] = &chaos.Memory{}
	}
	return c.trials[trial]
}

func (c *chaosFaults) forget(trial types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trials, trial)
}

func (c *chaosFaults) Refusal(ctx context.Context, trial *v1alpha1.Trial) (string, error) {
	return c.r.chaosExecutor().Refusal(ctx, trial)
}

func (c *chaosFaults) Clear(ctx context.Context, trial *v1alpha1.Trial) error {
	_, _, err := c.r.chaosExecutor().Clear(ctx, trial, c.memory(trial.UID))
	return err
}

func (c *chaosFaults) Of(s *engine.Subject, observed map[string]*corev1.Pod, faults []*fault.Occurrence) engine.Injection {
	return injection{c.r.chaosExecutor(), &chaos.Run{
		Trial: s.Trial, System: s.System, Layout: s.Layout, Pods: observed, Occurrences: faults, Memory: c.memory(s.Trial.UID),
	}}
}

// injection carries out one trial's faults through Chaos Mesh.
type injection struct {
	executor *chaos.Executor
	run      *chaos.Run
}

func (i injection) Due(ctx context.Context) (time.Duration, error) { return i.executor.Due(ctx, i.run) }

func (i injection) Record(a timeline.Action) *protocol.ActionRecord { return i.run.Record(a) }

func (i injection) Injected(o *fault.Occurrence) validity.Injection { return i.run.Injection(o) }

// lost returns a LostError if err means that an object does not exist.
func lost(err error) error {
	if apierrors.IsNotFound(err) {
		return &engine.LostError{Err: err}
	}
	return err
}

// conflict returns an ErrConflict if err means that an object has changed since it was read.
func conflict(err error) error {
	if apierrors.IsConflict(err) {
		return errors.Join(engine.ErrConflict, err)
	}
	return err
}
