package simulation

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var (
	scaleNamespaces  = flag.Int("scale-namespaces", 2, "how many namespaces TestScale has")
	scaleExperiments = flag.Int("scale-experiments", 4, "how many experiments each namespace of TestScale has")
	scaleTrials      = flag.Int("scale-trials", 4, "how many trials each experiment of TestScale has, an even number")
	scaleNodes       = flag.Int("scale-nodes", 20, "how many nodes TestScale has, in pools of 25 at most")
	scaleDeaths      = flag.Duration("scale-deaths", 20*time.Minute, "virtual time between two deaths of the leading manager of TestScale; the first is after half of it")
)

const (
	// longestIdle bounds the time in which a pool is idle, an experiment waits for it, and a
	// manager leads.
	longestIdle = 10 * time.Second
	// takeOver bounds the time from the death of a manager until the next one leads and has looked
	// at all objects.
	takeOver = leaseTime + 15*time.Second
	// memoryBound is from where on the collector runs.
	memoryBound = 3 << 30
)

// turns records which trials get the pools, and when.
type turns struct {
	of     map[string][]types.NamespacedName // the experiments of each pool, in the order of their creation
	left   map[types.NamespacedName]int      // trials that have not ended
	freed  map[string]time.Time
	last   time.Time // when the latest trial ended
	idle   []time.Duration
	deaths []time.Time // of the manager that led
	// takenOver counts the times that a pool was idle while a manager took over.
	takenOver int
}

// In TestScale experiments of many namespaces share pools of nodes, and the leading manager dies
// now and then. All trials count, but for those at whose release it dies: they are late, and are
// repeated. On each pool the experiment that was created first has all of its trials before the
// next one, and no pool is idle while an experiment waits for it.
//
//	make sim-scale    200 experiments of 50 trials in 20 namespaces on 1,000 nodes
func TestScale(t *testing.T) {
	// One large history: the collector need not run before there is much garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryBound))
	pools := (*scaleNodes + 24) / 25
	w := newWorld(1, false)
	w.faster = 16 // for the one worker instead of 16
	w.earliest = true
	for i := range *scaleNodes {
		w.addNode(fmt.Sprintf("n%04d", i), fmt.Sprintf("pool-%02d", i%pools))
	}
	w.boot("a")
	w.boot("b")
	turn := &turns{of: map[string][]types.NamespacedName{}, left: map[types.NamespacedName]int{}, freed: map[string]time.Time{}}
	w.server.changed = append(w.server.changed, func(kind string, old, now client.Object) { turn.see(w, kind, old, now) })
	for ns := range *scaleNamespaces {
		if err := w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%02d", ns)}}); err != nil {
			t.Fatal(err)
		}
	}
	made := 0
	for i := range *scaleExperiments {
		for ns := range *scaleNamespaces {
			key := types.NamespacedName{Namespace: fmt.Sprintf("team-%02d", ns), Name: fmt.Sprintf("exp%d", i)}
			pool := fmt.Sprintf("pool-%02d", made%pools)
			made++
			turn.of[pool], turn.left[key] = append(turn.of[pool], key), *scaleTrials
			w.experiments = append(w.experiments, key)
			w.after(time.Duration(made)*time.Second, func() { w.applyScale(t, key, pool) }) // the second of creation gives their order
		}
	}
	var dies func()
	dies = func() {
		turn.deaths = append(turn.deaths, w.now)
		kinds["manager dies"](w)
		w.after(*scaleDeaths, dies)
	}
	w.after(*scaleDeaths/2, dies)

	wall := time.Now()
	w.play()
	if len(w.violations) > 0 {
		t.Errorf("violations:\n  %s", strings.Join(w.violations, "\n  "))
	}
	outcomes := map[string]int{}
	for _, trial := range w.eachTrial() {
		outcomes[outcomeOf(trial)]++
		valid := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid)
		if valid == nil || valid.Status == metav1.ConditionTrue {
			continue
		}
		report := t.Errorf
		if valid.Reason == v1alpha1.ReasonStartLate && turn.diedAtRelease(trial) {
			report = t.Logf // it is repeated
		}
		report("%s/%s at %v: %s: %s", trial.Namespace, trial.Name, valid.LastTransitionTime.Sub(began), valid.Reason, valid.Message)
	}
	if all := made * *scaleTrials; outcomes[v1alpha1.ReasonSucceeded] != all {
		t.Errorf("trials ended as %v, want %d as %s", outcomes, all, v1alpha1.ReasonSucceeded)
	}
	if len(turn.idle) == 0 {
		t.Fatal("no pool was given to a second trial")
	}
	slices.Sort(turn.idle)
	t.Logf("%d experiments of %d trials in %d namespaces on %d nodes in %d pools were over within %v of virtual time; the leading manager died %d times; %d reconciles, %v of wall time",
		made, *scaleTrials, *scaleNamespaces, *scaleNodes, pools, turn.last.Sub(began).Round(time.Second), len(turn.deaths), w.reconciles, time.Since(wall).Round(time.Second))
	t.Logf("a pool was idle between two trials for %v at the median, %v at the 99th percentile and %v at most, without %d times in which a manager took over",
		turn.idle[len(turn.idle)/2], turn.idle[len(turn.idle)*99/100], turn.idle[len(turn.idle)-1], turn.takenOver)
}

// diedAtRelease reports whether the leading manager died after it had agreed the trial's t = 0, and
// before the load began. The next manager can send the run to the agents only when it leads.
func (s *turns) diedAtRelease(t *v1alpha1.Trial) bool {
	if t.Status.Times.Released == nil {
		return false
	}
	loads := time.Unix(0, t.Status.ZeroUnixNanos).Add(-timeline.FromSchedule(t.Spec.Schedule).WarmUp)
	return slices.ContainsFunc(s.deaths, func(died time.Time) bool {
		return !died.Before(t.Status.Times.Released.Time) && died.Before(loads)
	})
}

// applyScale makes an experiment of two points on one pool.
func (w *world) applyScale(t *testing.T, key types.NamespacedName, pool string) {
	t.Helper()
	system := builders.System(key.Name).Namespace(key.Namespace).Count("2*f+1").Set(func(s *v1alpha1.SystemSpec) { s.Replicas.ReadyTimeout = "60s" }).Obj()
	exp := builders.Experiment(key.Name).Namespace(key.Namespace).System(key.Name).Values("batch", 1, 2).Repetitions(int32(*scaleTrials / 2)).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Schedule = v1alpha1.Schedule{WarmUp: "2s", Measure: "10s", CoolDown: "1s", Drain: "3s"}
		s.Clients.Nodes, s.Clients.Count = 2, 4
		s.Placement.Replicas, s.Placement.Clients = pool, pool
	}).Obj()
	for _, err := range []error{w.create(system), w.create(exp)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// see notes when trials get their pools and give them back.
func (s *turns) see(w *world, kind string, old, now client.Object) {
	before, _ := old.(*v1alpha1.Trial)
	after, _ := now.(*v1alpha1.Trial)
	if kind != "Trial" || after == nil {
		return
	}
	became := func(condition string) bool {
		return isTrue(after, condition) && (before == nil || !isTrue(before, condition))
	}
	key, pool := types.NamespacedName{Namespace: after.Namespace, Name: after.Spec.Experiment}, after.Spec.Placement.Replicas
	if became(v1alpha1.TrialAdmitted) {
		s.admitted(w, key, pool)
	}
	if became(v1alpha1.TrialComplete) {
		s.left[key]--
		s.freed[pool], s.last = w.now, w.now
	}
}

// admitted checks that a trial starts only when its experiment has the turn.
func (s *turns) admitted(w *world, key types.NamespacedName, pool string) {
	for _, earlier := range s.of[pool] {
		if earlier == key {
			break
		}
		if n := s.left[earlier]; n > 0 {
			w.violated("a trial of %s got pool %s before %d trials of %s, which is older", key, pool, n, earlier)
		}
	}
	freed, known := s.freed[pool]
	if !known {
		return
	}
	idle := w.now.Sub(freed)
	if slices.ContainsFunc(s.deaths, func(at time.Time) bool { return !at.After(w.now) && at.Add(takeOver).After(freed) }) {
		s.takenOver++
		return
	}
	s.idle = append(s.idle, idle)
	if idle > longestIdle {
		w.violated("pool %s was idle for %v before a trial of %s, which waited for it", pool, idle, key)
	}
}
