package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
)

// world is one history: a cluster, two managers, experiments, and their disturbances.
type world struct {
	*cluster

	managers   []*manager // the ones that have not ended
	known      map[string]*manager
	leader     *manager
	vacant     time.Time                // when another manager may lead
	serials    map[string]int           // of the processes on each host
	walls      map[string]time.Duration // error of the clock on each host of a manager
	reconciles int

	experiments []types.NamespacedName
	ends        int       // experiments that are complete
	dropOneIn   int       // one in so many messages of agents is lost; 0: none
	troubled    time.Time // time of the last disturbance
	faultsFail  map[types.UID]bool
	disturbed   []disturbance
	violations  []string
	releases    int
	onRelease   []func(t *v1alpha1.Trial)
	facts       map[types.UID]*facts
	held        collection      // trials that hold their pools
	deleted     map[string]bool // experiments that were deleted, or trials of them

	bucket   *bucket
	registry *store.Registry
	stored   bool // experiments name the store
	onSets   bool // an experiment has two sets of nodes
	earliest bool // work queues keep only the earliest time for which a key waits
	// pace is how often the client on an agent's node commits; nil: ten times a second.
	pace       func(a *agent) time.Duration
	failpoints failpoints
}

// disturbance is a user's disturbance of trials.
type disturbance struct {
	at     time.Time
	party  v1alpha1.Cause
	what   string
	trials map[types.UID]bool // the affected ones; nil: any trial
}

// facts are the world's knowledge of a trial.
type facts struct {
	agents []*agent
	// unplanned ends of processes.
	unplanned []unplanned
	launches  map[string]int // of clients, by pod
	system    bool           // the system under test failed
	completed time.Time      // when that was written
}

type unplanned struct {
	pod string
	at  time.Time
}

func newWorld(seed uint64, keep bool) *world {
	s := newScheduler(seed, keep)
	w := &world{
		cluster: newCluster(newServer(s)), known: map[string]*manager{}, serials: map[string]int{}, walls: map[string]time.Duration{},
		faultsFail: map[types.UID]bool{}, facts: map[types.UID]*facts{}, deleted: map[string]bool{},
	}
	w.cluster.of = w
	w.bucket = newBucket(w)
	w.registry = newRegistry(w.bucket)
	w.server.changed = append(w.server.changed, w.observe)
	for _, ns := range []string{home, "lab"} {
		if err := w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			panic(err)
		}
	}
	return w
}

// violated notes that an invariant was violated.
func (w *world) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.trace("VIOLATION %s", text)
	if len(w.violations) < 10 {
		w.violations = append(w.violations, text)
	}
}

// host of a manager's process.
func host(name string) string { return name[:strings.LastIndex(name, ".")] }

// wall is the present error of the clock on a manager's host.
func (w *world) wall(name string) time.Duration { return w.walls[host(name)] }

// clockOf is how far a manager's clock differs from the world's.
func (w *world) clockOf(name string) (time.Duration, bool) {
	m := w.known[name]
	if m == nil {
		return 0, false
	}
	return m.offset, true
}

// boot starts a manager's process on a host.
func (w *world) boot(on string) {
	w.serials[on]++
	m := newManager(w, fmt.Sprintf("%s.%d", on, w.serials[on]))
	w.managers, w.known[m.name] = append(w.managers, m), m
	w.server.changed = append(w.server.changed, m.view.changed)
	if w.leader == nil {
		w.after(max(0, w.vacant.Sub(w.now))+w.between(0, 2*time.Second), w.elect)
	}
}

// elect lets a manager lead, if none does.
func (w *world) elect() {
	if w.leader != nil || w.now.Before(w.vacant) {
		return
	}
	var can []*manager
	for _, m := range w.managers {
		if !m.gone && !w.now.Before(m.stoppedUntil) && !m.leads {
			can = append(can, m)
		}
	}
	if len(can) == 0 {
		w.after(2*time.Second, w.elect)
		return
	}
	w.leader = can[w.rng.IntN(len(can))]
	w.leader.elected()
}

// ended is called at a manager's end. Its host starts another process.
func (w *world) ended(m *manager, released bool) {
	w.managers = slices.DeleteFunc(w.managers, func(o *manager) bool { return o == m })
	w.disconnected(m)
	on := host(m.name)
	w.after(w.between(time.Second, 20*time.Second), func() { w.boot(on) })
	if w.leader != m {
		return
	}
	w.leader = nil
	wait := leaseTime + w.between(0, 2*time.Second)
	if released {
		wait = w.between(0, 2*time.Second)
	}
	w.vacant = w.now.Add(wait)
	w.after(wait, w.elect)
}

// disconnected makes the agents of a manager report to another one. It stands for the sync that an
// agent always has open: it fails when the process ends, or has no answer in time.
func (w *world) disconnected(m *manager) {
	for _, pod := range w.server.objects["Pod"].inOrder() {
		if a := w.agents[pod.GetUID()]; a != nil && a.manager == m {
			a.manager = nil
			a.tell()
		}
	}
}

// stop stops a manager's process for a time, in the middle of its work. Another manager leads when
// the lease has expired. The stopped one notices that soon after it continues.
func (w *world) stop(m *manager, d time.Duration) {
	m.stoppedUntil = w.now.Add(d)
	if d > noAnswer {
		w.after(noAnswer, func() { w.disconnected(m) })
	}
	if m != w.leader || d < leaseTime {
		return
	}
	w.after(leaseTime+w.between(0, 2*time.Second), func() {
		if w.leader == m && w.now.Before(m.stoppedUntil) {
			w.leader = nil
			w.elect()
		}
	})
	w.after(d+w.between(0, 2*time.Second), func() {
		if w.leader != m {
			m.die(false)
		}
	})
}

// pickManager returns the manager that a connection reaches.
func (w *world) pickManager() *manager {
	if len(w.managers) == 0 {
		return nil
	}
	return w.managers[w.rng.IntN(len(w.managers))]
}

// wake notifies an agent of a new directive.
func (w *world) wake(uid types.UID) {
	if a := w.agents[uid]; a != nil {
		w.after(w.between(time.Millisecond, 3*time.Millisecond), func() {
			if a.alive() {
				a.tell()
			}
		})
	}
}

// dropped reports whether a message of an agent is lost.
func (w *world) dropped() bool { return w.oneIn(w.dropOneIn) }

// factsOf a trial, made at the first call.
func (w *world) factsOf(uid types.UID) *facts {
	if w.facts[uid] == nil {
		w.facts[uid] = &facts{launches: map[string]int{}}
	}
	return w.facts[uid]
}

func (w *world) trialNamed(key types.NamespacedName) *v1alpha1.Trial {
	t, _ := w.find("Trial", key).(*v1alpha1.Trial)
	return t
}

func (w *world) eachTrial() []*v1alpha1.Trial {
	var out []*v1alpha1.Trial
	for _, o := range w.each("Trial") {
		out = append(out, o.(*v1alpha1.Trial))
	}
	return out
}

func isTrue(t *v1alpha1.Trial, condition string) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, condition)
}

// active are the running trials.
func (w *world) active() []*v1alpha1.Trial {
	var out []*v1alpha1.Trial
	for _, o := range w.held.order {
		out = append(out, o.(*v1alpha1.Trial))
	}
	return out
}

// disturb notes that a user disturbs trials. Without names, it affects any running trial.
func (w *world) disturb(party v1alpha1.Cause, what string, trials ...types.UID) {
	d := disturbance{at: w.now, party: party, what: what}
	if len(trials) > 0 {
		d.trials = map[types.UID]bool{}
		for _, t := range trials {
			d.trials[t] = true
			if party == v1alpha1.CausedBySystem {
				w.factsOf(t).system = true
			}
		}
	}
	w.disturbed = append(w.disturbed, d)
	w.troubled = maxTime(w.troubled, w.now) // a store may be down for longer
	w.trace("DISTURBED by %s: %s", party, what)
}

// kinds of disturbances, by name. Each acts now, and returns false if there is no object to
// disturb.
var kinds = map[string]func(w *world) bool{
	"manager dies": func(w *world) bool {
		m := w.leader
		if m == nil {
			return false
		}
		w.disturb(v1alpha1.CausedByEnvironment, m.name+" dies")
		m.die(w.oneIn(3))
		return true
	},
	"manager dies at a write": func(w *world) bool {
		m := w.leader
		if m == nil {
			return false
		}
		m.dieAt = 1 + w.rng.IntN(60)
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("%s will die at point %d", m.name, m.dieAt))
		return true
	},
	"manager dies as it answers": func(w *world) bool {
		m := w.leader
		if m == nil {
			return false
		}
		m.dieTold = 1 + w.rng.IntN(40)
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("%s will die after it has told agents %d new things", m.name, m.dieTold))
		return true
	},
	"manager is stopped": func(w *world) bool {
		m := w.leader
		if m == nil {
			return false
		}
		d := w.between(time.Second, 60*time.Second)
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("%s is stopped for %v", m.name, d))
		w.stop(m, d)
		return true
	},
	"calls fail": func(w *world) bool {
		if w.leader == nil {
			return false
		}
		w.leader.fails = 1 + w.rng.IntN(12)
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("%d calls of %s fail", w.leader.fails, w.leader.name))
		return true
	},
	"API server is away": func(w *world) bool {
		d := w.between(time.Second, 90*time.Second)
		for _, m := range w.managers {
			m.failsFor = w.now.Add(d)
		}
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("the API server is away for %v", d))
		return true
	},
	"API server is slow": func(w *world) bool {
		w.slow = w.between(10*time.Millisecond, 2*time.Second)
		d := w.between(5*time.Second, 2*time.Minute)
		w.after(d, func() { w.slow = 0 })
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("calls of the API server take up to %v more, for %v", w.slow, d))
		return true
	},
	"cache lags": func(w *world) bool {
		if w.leader == nil {
			return false
		}
		kind := []string{"Trial", "Pod", "Experiment", "StatefulSet", "Job"}[w.rng.IntN(5)]
		d := w.between(100*time.Millisecond, 40*time.Second)
		w.leader.view.lag(kind, d)
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("%s hears of no %s for %v", w.leader.name, kind, d))
		return true
	},
	"messages are lost": func(w *world) bool {
		w.dropOneIn = 2 + w.rng.IntN(8)
		d := w.between(time.Second, 40*time.Second)
		w.after(d, func() { w.dropOneIn = 0 })
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("agents' messages are lost, one in %d, for %v", w.dropOneIn, d))
		return true
	},
	"Secret is deleted":    func(w *world) bool { return w.deleteOne("Secret") },
	"ConfigMap is deleted": func(w *world) bool { return w.deleteOne("ConfigMap") },
	"fault fails": func(w *world) bool {
		t := w.oneActive()
		if t == nil || len(t.Spec.Faults) == 0 {
			return false
		}
		w.faultsFail[t.UID] = true
		w.disturb(v1alpha1.CausedByEnvironment, "faults of "+t.Name+" fail", t.UID)
		return true
	},
	"pod is evicted": func(w *world) bool {
		a, t := w.onePod()
		if a == nil {
			return false
		}
		w.disturb(v1alpha1.CausedByEnvironment, "pod "+a.key.Name+" is evicted", t)
		w.evict(a, "EvictionByEvictionAPI", "Eviction API: evicting")
		return true
	},
	"pod is deleted": func(w *world) bool {
		a, t := w.onePod()
		if a == nil {
			return false
		}
		w.disturb(v1alpha1.CausedByEnvironment, "somebody deletes pod "+a.key.Name, t)
		_ = w.remove(w.find("Pod", a.key), client.DeleteOptions{})
		return true
	},
	"containers are lost": func(w *world) bool {
		a, t := w.onePod()
		if a == nil || !a.alive() {
			return false
		}
		w.disturb(v1alpha1.CausedByEnvironment, "the runtime loses the containers of "+a.key.Name, t)
		a.restartContainers()
		return true
	},
	"node restarts": func(w *world) bool {
		n := w.oneNode()
		if n == nil {
			return false
		}
		d := w.between(3*time.Second, 50*time.Second)
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("node %s restarts within %v", n.name, d))
		w.lose(n, false, d)
		return true
	},
	"report is damaged": func(w *world) bool {
		a, t := w.onePod()
		if a == nil || a.part != v1alpha1.PodTypeClient || a.disk.over {
			return false
		}
		w.disturb(v1alpha1.CausedBySystem, "the client of "+a.key.Name+" writes nonsense", t)
		a.disk.damaged = true
		return true
	},
	"kubelet evicts": func(w *world) bool {
		a, t := w.onePod()
		if a == nil || !a.alive() {
			return false
		}
		w.disturb(v1alpha1.CausedByEnvironment, "the kubelet evicts pod "+a.key.Name, t)
		a.fails("Evicted", "The node was low on resource: memory.")
		return true
	},
	"disk is full": func(w *world) bool {
		a, t := w.onePod()
		if a == nil || !a.alive() {
			return false
		}
		w.disturb(v1alpha1.CausedByEnvironment, "the disk of "+a.key.Name+" is full", t)
		a.disk.failure = "write the journal: no space left on device"
		a.tell()
		return true
	},
	"agent restarts": func(w *world) bool {
		a, t := w.onePod()
		if a == nil || !a.alive() {
			return false
		}
		w.disturb(v1alpha1.CausedByEnvironment, "the agent of "+a.key.Name+" restarts", t)
		a.restartAgent()
		return true
	},
	"node is lost": func(w *world) bool {
		n := w.oneNode()
		if n == nil {
			return false
		}
		cut, d := w.oneIn(3), w.between(5*time.Second, 15*time.Minute)
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("node %s is lost (cut off: %t) for %v", n.name, cut, d))
		w.lose(n, cut, d)
		return true
	},
	"clock steps": func(w *world) bool {
		on := []string{"a", "b"}[w.rng.IntN(2)]
		by := w.between(-2*time.Hour, 2*time.Hour)
		if w.oneIn(2) {
			by = w.between(-3*time.Second, 3*time.Second)
		}
		w.walls[on] += by
		w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("the clock of host %s steps by %v", on, by))
		return true
	},
	"Secrets cannot be read": func(w *world) bool {
		w.forbid("get", "Secret")
		return true
	},
	"a right is taken away": func(w *world) bool {
		rights := []string{"delete Secret", "delete ConfigMap", "delete Service", "list ConfigMap", "create ConfigMap", "get ConfigMap"}
		right := rights[w.rng.IntN(len(rights))]
		verb, kind, _ := strings.Cut(right, " ")
		w.forbid(verb, kind)
		return true
	},
	"trial is deleted": func(w *world) bool {
		all := w.eachTrial()
		if len(all) == 0 {
			return false
		}
		t := all[w.rng.IntN(len(all))]
		w.disturb(v1alpha1.CausedByEnvironment, "somebody deletes trial "+t.Name)
		w.deleted[t.Spec.Experiment] = true
		_ = w.remove(t, client.DeleteOptions{})
		return true
	},
	"experiment is deleted": func(w *world) bool {
		var can []types.NamespacedName
		for _, key := range w.experiments {
			if e, _ := w.find("Experiment", key).(*v1alpha1.Experiment); e != nil && e.DeletionTimestamp == nil {
				can = append(can, key)
			}
		}
		if len(can) == 0 {
			return false
		}
		key := can[w.rng.IntN(len(can))]
		w.disturb(v1alpha1.CausedByEnvironment, "somebody deletes experiment "+key.Name)
		w.deleted[key.Name] = true
		_ = w.remove(w.find("Experiment", key), client.DeleteOptions{})
		return true
	},
	"files are denied": func(w *world) bool {
		w.denies = func(o client.Object) error {
			if m, is := o.(*corev1.ConfigMap); is && m.Labels[v1alpha1.LabelResults] == v1alpha1.ResultsFiles {
				return apierrors.NewBadRequest(`admission webhook "policy.example" denied the request: no binary data`)
			}
			return nil
		}
		w.disturb(v1alpha1.CausedByEnvironment, "a policy denies ConfigMaps of files")
		return true
	},
	"replica exits": func(w *world) bool {
		a, t := w.onePod()
		if a == nil || a.part != v1alpha1.PodTypeReplica || a.process.state != "Running" {
			return false
		}
		w.disturb(v1alpha1.CausedBySystem, "the process of "+a.key.Name+" exits", t)
		a.dies(1, false)
		a.tell()
		return true
	},
	"client exits": func(w *world) bool {
		a, t := w.onePod()
		if a == nil || a.part != v1alpha1.PodTypeClient || a.process.state != "Running" {
			return false
		}
		w.disturb(v1alpha1.CausedBySystem, "the client of "+a.key.Name+" exits", t)
		a.dies(1, false)
		a.tell()
		a.act()
		return true
	},
}

// forbid takes a right in the namespace of the experiments away from the managers, for good.
func (w *world) forbid(verb, kind string) {
	before := w.forbids
	w.forbids = func(v, k, namespace string) error {
		if v == verb && k == kind && namespace == "lab" {
			return apierrors.NewForbidden(resourceOf(kind), "", errors.New("somebody took the right away"))
		}
		if before != nil {
			return before(v, k, namespace)
		}
		return nil
	}
	w.disturb(v1alpha1.CausedByEnvironment, fmt.Sprintf("no manager may %s any %s any more", verb, kind))
}

func (w *world) deleteOne(kind string) bool {
	var can []client.Object
	for _, o := range w.each(kind) {
		if t := w.trialNamed(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1alpha1.LabelTrial]}); t != nil && o.GetLabels()[v1alpha1.LabelResults] == "" {
			can = append(can, o)
		}
	}
	if len(can) == 0 {
		return false
	}
	o := can[w.rng.IntN(len(can))]
	t := w.trialNamed(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1alpha1.LabelTrial]})
	w.disturb(v1alpha1.CausedByEnvironment, kind+" "+o.GetName()+" is deleted", t.UID)
	_ = w.remove(o, client.DeleteOptions{})
	return true
}

func (w *world) oneActive() *v1alpha1.Trial {
	all := w.active()
	if len(all) == 0 {
		return nil
	}
	return all[w.rng.IntN(len(all))]
}

// onePod of a running trial, and the trial.
func (w *world) onePod() (*agent, types.UID) {
	t := w.oneActive()
	if t == nil {
		return nil, ""
	}
	var can []*agent
	for _, a := range w.factsOf(t.UID).agents {
		if a.part == v1alpha1.PodTypePrepare && a.disk.sent {
			continue // no trial depends on it any more
		}
		if p := w.find("Pod", a.key); !a.over && p != nil && p.GetUID() == a.uid && p.GetDeletionTimestamp() == nil {
			can = append(can, a)
		}
	}
	if len(can) == 0 {
		return nil, ""
	}
	return can[w.rng.IntN(len(can))], t.UID
}

// oneNode whose pool has another working node.
func (w *world) oneNode() *node {
	var can []*node
	for _, n := range w.nodes {
		others := slices.ContainsFunc(w.nodes, func(o *node) bool { return o != n && o.pool == n.pool && o.reachable() })
		if n.reachable() && others {
			can = append(can, n)
		}
	}
	if len(can) == 0 {
		return nil
	}
	return can[w.rng.IntN(len(can))]
}
