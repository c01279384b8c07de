package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	bundle "assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/manager/controller/archive"
	"assay.dev/assay/operator/internal/manager/controller/experiment"
	"assay.dev/assay/operator/internal/manager/controller/trial"
	"assay.dev/assay/operator/internal/manager/controller/trial/objects"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// leaseTime is how long a manager without answers keeps the lead.
	leaseTime = 15 * time.Second
	// firstRetry and lastRetry bound the wait of a work queue after an error, as in
	// controller-runtime.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
	// home is the namespace of the managers.
	home = "assay-system"
)

// manager is one process of the manager.
type manager struct {
	*world

	name         string
	gone, leads  bool
	stoppedUntil time.Time
	offset       time.Duration // of its steady clock from the world's clock
	processes    []*process

	// fails is how many of its next calls fail. Until failsFor all of its calls fail.
	fails     int
	failsFor  time.Time
	dieAt     int                  // after how many points of writes the manager dies; 0: never
	dieTold   int                  // after how many answers with a new directive it dies; 0: never
	told      map[types.UID]string // the version of the latest directive in an answer
	view      *view
	coord     *coordinator.Coordinator
	handler   http.Handler
	queues    []*workQueue
	inbox     []func() // deliveries of agents that wait for an earlier one
	busy      bool
	trials    *workQueue
	admission *workQueue
	exps      *workQueue
	// The controllers that put results into a store.
	archiveTrials, archiveExps *workQueue
}

// simClock is a clock with a constant error.
type simClock struct {
	clock.Clock

	s   *scheduler
	off func() time.Duration
}

func (c simClock) Now() time.Time                  { return c.s.now.Add(c.off()) }
func (c simClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// NewTimer returns an expired timer, so that no answer is delayed.
func (c simClock) NewTimer(time.Duration) clock.Timer { return overTimer{} }

type overTimer struct{}

var elapsed = func() chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

func (overTimer) C() <-chan time.Time      { return elapsed }
func (overTimer) Stop() bool               { return true }
func (overTimer) Reset(time.Duration) bool { return true }

// journal is the recorder of events.
type journal struct{ m *manager }

func (j journal) Eventf(about runtime.Object, _ runtime.Object, kind, reason, _, note string, args ...any) {
	j.m.trace("%s tells of %s: %s %s", j.m.name, about.(client.Object).GetName(), kind, reason)
	_ = fmt.Sprintf(note, args...)
}

// passes is the coordinator. It reports to the world which pods it directs.
type passes struct {
	*coordinator.Coordinator

	m    *manager
	last map[types.UID]protocol.Directive
	pods map[types.NamespacedName]map[string]types.UID
}

func (p *passes) Register(trial types.NamespacedName, pods []coordinator.Pod) {
	slices.SortFunc(pods, func(a, b coordinator.Pod) int { return strings.Compare(a.Name, b.Name) })
	p.Coordinator.Register(trial, pods)
	p.pods[trial] = map[string]types.UID{}
	for _, one := range pods {
		p.pods[trial][one.Name] = one.UID
	}
}

func (p *passes) Direct(trial types.NamespacedName, pod string, d protocol.Directive, files []protocol.File) {
	p.Coordinator.Direct(trial, pod, d, files)
	uid := p.pods[trial][pod]
	if last, known := p.last[uid]; uid != "" && (!known || !same(last, d)) {
		p.last[uid] = d
		p.m.wake(uid)
	}
}

func (p *passes) Forget(trial types.NamespacedName) {
	p.Coordinator.Forget(trial)
	for _, uid := range p.pods[trial] {
		delete(p.last, uid)
	}
	delete(p.pods, trial)
}

// same reports whether two directives are the same for an agent. A directive's version is not set
// yet.
func same(a, b protocol.Directive) bool { return reflect.DeepEqual(a, b) }

func newManager(w *world, name string) *manager {
	m := &manager{world: w, name: name, offset: w.wall(name), told: map[types.UID]string{}}
	c := &calls{server: w.server, of: m}
	m.view = newView(c)
	steady := simClock{s: w.scheduler, off: func() time.Duration { return m.offset }}
	store := &storage.Store{Client: m.view, Reader: c}
	m.coord = coordinator.New(coordinator.Options{
		Clock: steady, Log: logr.Discard(), Identifier: tokens{w}, Store: store,
		Archive: &archive.UploadHandler{Client: m.view, Reader: c, Stores: w.registry},
		Notify:  func(t types.NamespacedName) { m.trials.add(t) }, Instance: name, Leading: func() bool { return m.leads },
	})
	m.handler = m.coord.Handler()
	env := render.Environment{AgentImage: "agent:1", CoordinatorAddress: "coordinator:7443", Namespace: home}
	passing := &passes{m.coord, m, map[types.UID]protocol.Directive{}, map[types.NamespacedName]map[string]types.UID{}}
	trials := &trial.Reconciler{
		Client: m.view, Reader: c, Clock: steady, Recorder: journal{m}, Coordinator: passing, Environment: env,
		Trusted: func() string { return "ca" }, MessageSpacing: time.Second, Indexed: true,
	}
	admits := &admission.Reconciler{
		Client: m.view, Reader: c, Clock: steady, Recorder: journal{m}, Environment: env, Grants: types.NamespacedName{Namespace: home, Name: admission.GrantsName}, Indexed: true,
	}
	exps := &experiment.Reconciler{
		Client: m.view, Reader: c, Clock: simClock{s: w.scheduler, off: func() time.Duration { return w.wall(name) }}, Recorder: journal{m}, Environment: env,
		Seed:   func() int64 { return 1 + w.rng.Int64N(1<<53-1) },
		Checks: plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Functions: claims.FunctionsOf, UnusedParameters: true, Store: w.registry.Check},
		Store:  w.registry.Resolve,
	}
	m.trials, m.admission, m.exps = m.queue("trial", trials), m.queue("admission", admits), m.queue("experiment", exps)
	gates := &archive.Gates{Clock: steady}
	m.archiveTrials = m.queue("archive of trial", &archive.Trials{Client: m.view, Reader: c, Clock: steady, Recorder: journal{m}, Stores: w.registry, Gates: gates})
	m.archiveExps = m.queue("archive of experiment", &archive.Experiments{Client: m.view, Reader: c, Clock: steady, Stores: w.registry, Gates: gates, Bundle: packStored})
	w.trace("%s begins", name)
	return m
}

// tokens maps each token to the pod whose UID it is.
type tokens struct{ w *world }

func (t tokens) Claimed(token string) (types.UID, bool) { return types.UID(token), true }

func (t tokens) Known(token string) (types.UID, bool) {
	a := t.w.agents[types.UID(token)]
	return types.UID(token), a != nil && t.w.find("Pod", a.key) != nil && t.w.find("Pod", a.key).GetUID() == a.uid
}

func (t tokens) Identify(context.Context, string) (types.UID, error) {
	return "", &coordinator.DeniedError{Reason: "the pod is gone"}
}

// packStored is a bundle with only the results. The bundle of a real manager also has a report.
func packStored(_ context.Context, stored corev1.ConfigMap, w io.Writer) error {
	b, err := bundle.NewWriter(w, bundle.Gzip, stored.Name, began)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(stored.Data)) {
		if err := b.Add(name, []byte(stored.Data[name])); err != nil {
			return err
		}
	}
	return b.Close()
}

// drop forgets a process that has ended.
func (m *manager) drop(p *process) {
	if i := slices.Index(m.processes, p); i >= 0 {
		m.processes = slices.Delete(m.processes, i, i+1)
	}
}

// point is a point before or after a write. A manager may die there.
func (m *manager) point(name, object string) {
	dies := m.passed(name + " " + object)
	if m.dieAt > 0 {
		m.dieAt--
		dies = dies || m.dieAt == 0
	}
	if dies {
		m.trace("%s dies %s %s", m.name, name, object)
		m.after(0, func() { m.die(false) })
		m.scheduler.wait(time.Hour)
	}
}

// answeredWith may make the manager die after it has answered an agent with a new directive.
func (m *manager) answeredWith(request *http.Request, answer *httptest.ResponseRecorder) {
	if m.dieTold == 0 || request.URL.Path != "/v1/sync" || answer.Code != http.StatusOK {
		return
	}
	var d protocol.Directive
	if err := json.Unmarshal(answer.Body.Bytes(), &d); err != nil {
		panic(err)
	}
	uid := types.UID(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "))
	if m.told[uid] == d.Version {
		return
	}
	m.told[uid] = d.Version
	if m.dieTold--; m.dieTold == 0 {
		m.after(0, func() { m.die(false) })
	}
}

// trouble says why a call of the API server fails; nil: it does not.
func (m *manager) trouble() error {
	if m.fails > 0 && m.oneIn(2) {
		m.fails--
		return apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	}
	if m.now.Before(m.failsFor) {
		m.scheduler.wait(m.between(0, time.Second))
		return apierrors.NewServerTimeout(resourceOf("object"), "call", 1)
	}
	return nil
}

// elected starts the controllers, with all existing objects in their queues.
func (m *manager) elected() {
	if m.gone {
		return
	}
	m.leads = true
	m.trace("%s leads", m.name)
	for _, o := range m.view.kinds["Experiment"].objects.inOrder() {
		m.exps.add(client.ObjectKeyFromObject(o))
		m.archiveExp(client.ObjectKeyFromObject(o))
	}
	for _, o := range m.view.kinds["Trial"].objects.inOrder() {
		m.trials.add(client.ObjectKeyFromObject(o))
		m.archiveTrial(o.(*v1alpha1.Trial))
	}
	m.admission.add(types.NamespacedName{Name: "waiting-trials"})
}

// die ends the process. released: it gives the lease back.
func (m *manager) die(released bool) {
	if m.gone {
		return
	}
	m.gone = true
	m.trace("%s ends (gives the lease back: %t)", m.name, released)
	for len(m.processes) > 0 {
		p := m.processes[0]
		m.drop(p)
		p.kill()
	}
	m.forget()
	m.ended(m, released)
}

// forget drops the memory of a manager that has ended. The world keeps only its clock.
func (m *manager) forget() {
	m.view.forget()
	for _, q := range m.queues {
		q.r, q.waiting, q.in = nil, nil, nil
	}
	m.coord, m.handler, m.told, m.inbox = nil, nil, nil, nil
}

// saw queues keys for a change, like the watches of the controllers.
func (m *manager) saw(kind string, old, now client.Object) {
	o := now
	if o == nil {
		o = old
	}
	key := client.ObjectKeyFromObject(o)
	switch kind {
	case "Trial":
		m.trials.add(key)
		before, _ := old.(*v1alpha1.Trial)
		after, _ := now.(*v1alpha1.Trial)
		if before == nil || after == nil || queueChanged(before, after) {
			m.admission.add(types.NamespacedName{Name: "waiting-trials"})
		}
		m.sawStored(before, after)
		if before == nil || after == nil || plan.Outcome(before) != plan.Outcome(after) || waits(before) != waits(after) || archived(before) != archived(after) {
			if name := o.GetLabels()[v1alpha1.LabelExperiment]; name != "" {
				m.exps.add(types.NamespacedName{Namespace: key.Namespace, Name: name})
			}
		}
	case "Experiment":
		m.exps.add(key)
		m.archiveExp(key)
		if old == nil || now == nil || old.GetGeneration() != now.GetGeneration() {
			m.admission.add(types.NamespacedName{Name: "waiting-trials"})
		}
	case "System": // experiments that are not accepted wait for their System
		for _, e := range m.view.kinds["Experiment"].objects.inOrder() {
			e := e.(*v1alpha1.Experiment)
			names := slices.ContainsFunc(e.Spec.Systems, func(ref v1alpha1.SystemReference) bool { return ref.Name == key.Name })
			if names && e.Status.Seed == 0 {
				m.exps.add(client.ObjectKeyFromObject(e))
			}
		}
	case "Pod", "StatefulSet", "Job", "Service":
		for _, r := range objects.TrialOf(context.Background(), o) {
			m.trials.add(r.NamespacedName)
		}
	}
}

// sawStored passes on the same changes as the watches of the archive.
func (m *manager) sawStored(before, after *v1alpha1.Trial) {
	if after != nil {
		m.archiveTrial(after)
	}
	if before == nil || after != nil && (!storing(before) || storing(after)) {
		return
	}
	m.archiveExp(types.NamespacedName{Namespace: before.Namespace, Name: before.Labels[v1alpha1.LabelExperiment]})
}

func (m *manager) archiveTrial(t *v1alpha1.Trial) {
	if storing(t) {
		m.archiveTrials.add(client.ObjectKeyFromObject(t))
	}
}

// archiveExp does no work in a history without a store, so such histories stay the same.
func (m *manager) archiveExp(key types.NamespacedName) {
	if m.stored {
		m.archiveExps.add(key)
	}
}

// archived has the fields that the experiment controller's predicate reads.
func archived(t *v1alpha1.Trial) string {
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialResultsStored); c != nil {
		return string(c.Status) + c.Reason + c.Message
	}
	return ""
}

// queueChanged reports whether the admission controller's predicate passes a change on.
func queueChanged(before, after *v1alpha1.Trial) bool {
	for _, c := range []string{v1alpha1.TrialAdmitted, v1alpha1.TrialDeployed, v1alpha1.TrialComplete} {
		if meta.IsStatusConditionTrue(before.Status.Conditions, c) != meta.IsStatusConditionTrue(after.Status.Conditions, c) {
			return true
		}
	}
	return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || len(before.Finalizers) != len(after.Finalizers)
}

func waits(t *v1alpha1.Trial) string {
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialAdmitted); c != nil && c.Reason != v1alpha1.ReasonQueued {
		return c.Reason + c.Message
	}
	return ""
}

// workQueue is the work queue of a controller with one worker.
type workQueue struct {
	m        *manager
	name     string
	r        reconcile.Reconciler
	waiting  []types.NamespacedName
	in       map[types.NamespacedName]bool
	running  *types.NamespacedName
	again    bool // the running key was added again
	failures map[types.NamespacedName]int
	due      map[types.NamespacedName]time.Time // when a key is added that waits for a time
}

func (m *manager) queue(name string, r reconcile.Reconciler) *workQueue {
	q := &workQueue{m: m, name: name, r: r, in: map[types.NamespacedName]bool{}, failures: map[types.NamespacedName]int{}, due: map[types.NamespacedName]time.Time{}}
	m.queues = append(m.queues, q)
	return q
}

func (q *workQueue) add(key types.NamespacedName) {
	switch {
	case !q.m.leads || q.m.gone || q.in[key]:
		return
	case q.running != nil && *q.running == key:
		q.again = true
		return
	}
	q.in[key] = true
	q.waiting = append(q.waiting, key)
	if q.running == nil && len(q.waiting) == 1 {
		q.m.after(q.m.between(0, 3*time.Millisecond), q.next)
	}
}

// addAfter adds a key after a time. A real queue keeps only the earliest such time of a key. Here
// each is kept, unless the world has earliest: the seeds that failed are histories of this kind.
func (q *workQueue) addAfter(key types.NamespacedName, d time.Duration) {
	at := q.m.now.Add(d)
	if q.m.earliest {
		if due, waits := q.due[key]; waits && !at.Before(due) {
			return
		}
		q.due[key] = at
	}
	q.m.after(d, func() {
		if q.m.earliest {
			if !q.due[key].Equal(at) {
				return // an earlier time came
			}
			delete(q.due, key)
		}
		if left := q.m.stoppedUntil.Sub(q.m.now); left > 0 {
			q.addAfter(key, left)
			return
		}
		q.add(key)
	})
}

// next takes the next key as soon as the worker is free.
func (q *workQueue) next() {
	if q.m.gone || q.running != nil || len(q.waiting) == 0 {
		return
	}
	if left := q.m.stoppedUntil.Sub(q.m.now); left > 0 {
		q.m.after(left, q.next)
		return
	}
	key := q.waiting[0]
	q.waiting = q.waiting[1:]
	delete(q.in, key)
	q.running, q.again = &key, false
	q.m.spawn(q.m, func() {
		result, err := q.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		q.m.reconciles++
		q.done(key, result, err)
	})
}

func (q *workQueue) done(key types.NamespacedName, result ctrl.Result, err error) {
	again := q.again
	q.running = nil
	switch {
	case err != nil:
		q.m.trace("%s cannot reconcile %s %s: %v", q.m.name, q.name, key.Name, err)
		wait := min(lastRetry, firstRetry<<min(q.failures[key], 20))
		q.failures[key]++
		q.addAfter(key, wait)
	case result.RequeueAfter > 0:
		delete(q.failures, key)
		q.addAfter(key, result.RequeueAfter)
	default:
		delete(q.failures, key)
	}
	if again {
		q.add(key)
	}
	if len(q.waiting) > 0 {
		q.m.after(q.m.between(0, time.Millisecond), q.next)
	}
}

// answer is a manager's answer to an agent; code 0: there is none.
type answer struct {
	code    int
	manager string
	body    []byte
}

// serve makes the manager handle one request of an agent, and answers it. It handles deliveries one
// after the other.
func (m *manager) serve(request *http.Request, stores bool, answered func(answer)) {
	if m.gone {
		answered(answer{})
		return
	}
	handle := func() {
		m.spawn(m, func() {
			recorder := httptest.NewRecorder()
			m.handler.ServeHTTP(recorder, request)
			answered(answer{recorder.Code, recorder.Header().Get(protocol.ManagerHeader), recorder.Body.Bytes()})
			m.answeredWith(request, recorder)
			if stores {
				m.busy = false
				m.nextDelivery()
			}
		})
	}
	if !stores {
		handle()
		return
	}
	m.inbox = append(m.inbox, handle)
	m.nextDelivery()
}

func (m *manager) nextDelivery() {
	if m.busy || len(m.inbox) == 0 || m.gone {
		return
	}
	next := m.inbox[0]
	m.inbox, m.busy = m.inbox[1:], true
	next()
}
