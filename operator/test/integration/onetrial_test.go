package integration

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// sizes of the trials of BenchmarkOneTrial. Each is a number of replicas and also of clients. The
// clients run in half as many pods, since a trial has at most 256 client pods.
var sizes = []int{62, 125, 250, 500}

// ofShard is the largest number of replicas in a shard of such a trial; 200 are possible.
const ofShard = 125

// oneTrialMegabytes bounds the manager's memory for the largest trial. Half of it is for buffers of
// its 750 connections and for their 561,750 links.
const oneTrialMegabytes = 500

// arrivals are the times at which agents reached a phase.
type arrivals struct {
	mu   sync.Mutex
	last map[string]time.Time
	n    map[string]int
}

func (a *arrivals) note(phase string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[phase], a.n[phase] = time.Now(), a.n[phase]+1
}

// onePhase lasts from the last agent of the previous phase to the last agent of this one.
type onePhase struct{ name, doc string }

var onePhases = []onePhase{
	{"directed", "the manager knows all pods and has told each of its files"},
	{"files", "each agent has its files, which name all pods"},
	{"started", "links were measured, and each process may start"},
	{"released", "all clients stand at the barrier, and each agent has t = 0"},
	{"results", "each client's results are stored, after its run of 6 s"},
	{"ended", "the trial is judged, and each agent ends its processes"},
	{"complete", "results of the trial are stored, and nothing of it is left"},
	{processorRow, "that the manager used for all of it, in seconds of one processor"},
}

const processorRow = "processor"

// BenchmarkOneTrial runs trials of up to 500 replicas and 500 clients with a real manager and a
// real API server. Nodes and agents are played. It prints how long each phase takes, and how that
// grows. Twice the pods should take twice the time, or four times in phases where each pod handles
// all others.
//
//	make bench-scale
func BenchmarkOneTrial(b *testing.B) {
	env := testenv.Get(b)
	binary := managerProgram(b)
	for b.Loop() {
		took := map[string][]time.Duration{}
		for _, size := range sizes {
			phases, processor := oneTrial(b, env, binary, size)
			for phase, d := range phases {
				took[phase] = append(took[phase], d)
			}
			took[processorRow] = append(took[processorRow], time.Duration(processor*float64(time.Second)))
		}
		b.Log(growthTable(sizes, took) + "load of this machine: " + loadAverage(b))
	}
}

// oneTrial runs a trial. It returns how long each phase took, and the manager's processor-seconds.
func oneTrial(b *testing.B, env *testenv.Env, binary string, size int) (took map[string]time.Duration, processor float64) {
	b.Helper()
	m := startManager(b, env, binary)
	ns, pool := env.Namespace(b), fmt.Sprintf("one-%d", size) // no size waits for the remains of another
	schedulable(b, env, pool, pool)
	came := &arrivals{last: map[string]time.Time{}, n: map[string]int{}}
	defer (&cluster{t: b, env: env, manager: m, reached: came.note}).begin(pool, ns)()
	system := builders.System("echo").Namespace(ns).Count(fmt.Sprint(min(size, ofShard))).Obj()
	exp := builders.Experiment("e").Namespace(ns).System("echo").Repetitions(1).Retries(0).Set(pooled(pool)).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Tolerances.StartSpread = "5s" // this machine also plays all agents
		s.Topology.Shards = int32(max(1, size/ofShard))
		s.Clients.Nodes, s.Clients.Count = int32(max(1, size/2)), int32(size)
	}).Obj()
	for _, o := range []client.Object{system, exp} {
		if err := env.Client.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	trials := &v1alpha1.TrialList{}
	awaitScale(b, m, 20*time.Minute, func() bool {
		return env.Client.List(b.Context(), trials, client.InNamespace(ns)) == nil && len(trials.Items) > 0 && meta.IsStatusConditionTrue(trials.Items[0].Status.Conditions, v1alpha1.TrialComplete)
	})
	came.note("complete")
	valid := meta.FindStatusCondition(trials.Items[0].Status.Conditions, v1alpha1.TrialValid)
	peak := m.peakMegabytes(b)
	processor = m.processorSeconds(b)
	b.Logf("%d replicas, %d clients on %d pods: %s after %v, the manager took %.0f MB at most and %.1f processor-seconds: %s", size, size, size/2, valid.Reason, time.Since(began).Round(time.Second), peak, processor, valid.Message)
	b.Logf("beside it took, at most until now: %s", m.beside(b))
	if peak > oneTrialMegabytes {
		b.Errorf("the manager took %.0f MB at most; %d are allowed", peak, oneTrialMegabytes)
	}
	if valid.Reason != v1alpha1.ReasonSucceeded {
		b.Errorf("the trial of %d replicas does not count", size)
	}
	took = map[string]time.Duration{}
	before := began
	came.mu.Lock()
	for _, p := range onePhases {
		if at, any := came.last[p.name]; any {
			took[p.name], before = at.Sub(before), at
		}
	}
	came.mu.Unlock()
	m.stop(b)
	return took, processor
}

// loadAverage is how many programs of this machine needed a processor in the last minutes.
func loadAverage(b *testing.B) string {
	b.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// growthTable has a row for each phase: its time for each size, and the growth from the second
// largest size, which is half as large, to the largest. A single size has no growth.
func growthTable(sizes []int, took map[string][]time.Duration) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%-10s", "phase")
	for _, size := range sizes {
		fmt.Fprintf(&t, " %8d", size)
	}
	if n := len(sizes); n > 1 {
		fmt.Fprintf(&t, "  growth from %d to %d", sizes[n-2], sizes[n-1])
	}
	t.WriteByte('\n')
	for _, p := range onePhases {
		fmt.Fprintf(&t, "%-10s", p.name)
		all := took[p.name]
		for _, d := range all {
			fmt.Fprintf(&t, " %7.2fs", d.Seconds())
		}
		if n := len(all); n > 1 && all[n-2] > 0 {
			fmt.Fprintf(&t, "  x %.1f  %s", float64(all[n-1])/float64(all[n-2]), p.doc)
		}
		t.WriteByte('\n')
	}
	return t.String()
}

// Someone may shorten the list to one size. The table of that run ended in a panic.
func TestOneSizeHasNoGrowth(t *testing.T) {
	took := map[string][]time.Duration{"files": {time.Second, 2 * time.Second}}
	if got := growthTable([]int{62, 125}, took); !strings.Contains(got, "125  growth from 62 to 125\n") || !strings.Contains(got, "files         1.00s    2.00s  x 2.0  ") {
		t.Errorf("the table of two sizes:\n%s", got)
	}
	took["files"] = took["files"][:1]
	if got := growthTable([]int{62}, took); strings.Contains(got, "growth") || !strings.Contains(got, "phase            62\n") || !strings.Contains(got, "files         1.00s\n") {
		t.Errorf("the table of one size:\n%s", got)
	}
}

// leastAdmitted is how many trials a second a pass must admit at least.
const leastAdmitted = 100

// BenchmarkAdmission lets one pass admit 200 trials, each into its own pool of five nodes. The API
// server, the trials and the controller's cache are real.
//
//	make bench-scale
func BenchmarkAdmission(b *testing.B) {
	env := testenv.Get(b)
	binary := managerProgram(b)
	const all = scaleNamespaces * scaleExperiments
	for round := 0; b.Loop(); round++ {
		m := startManager(b, env, binary)
		ns := env.Namespace(b)
		if err := env.Client.Create(b.Context(), builders.System("echo").Namespace(ns).Obj()); err != nil {
			b.Fatal(err)
		}
		for i := range all {
			exp := builders.Experiment(fmt.Sprintf("e-%d", i)).Namespace(ns).System("echo").Repetitions(1).Set(pooled(fmt.Sprintf("admit-%d-%d", round, i))).Obj()
			if err := env.Client.Create(b.Context(), exp); err != nil {
				b.Fatal(err)
			}
		}
		trials := &v1alpha1.TrialList{}
		awaitScale(b, m, 10*time.Minute, func() bool { // each waits for a node of its pool
			waiting := 0
			if env.Client.List(b.Context(), trials, client.InNamespace(ns)) != nil {
				return false
			}
			for i := range trials.Items {
				if meta.IsStatusConditionFalse(trials.Items[i].Status.Conditions, v1alpha1.TrialAdmitted) {
					waiting++
				}
			}
			return waiting == all
		})
		m.stop(b)
		for i := range scaleNodes {
			schedulable(b, env, fmt.Sprintf("admit-%d-%d", round, i), fmt.Sprintf("admit-%d-%d", round, i%all))
		}
		took, calls := admitAll(b, env, ns)
		rate := all / took.Seconds()
		b.Logf("%d trials were admitted in %v, %.0f a second, at a load of %s; etcd writes without fsync, as envtest starts it", all, took.Round(time.Millisecond), rate, loadAverage(b))
		b.Logf("that took these calls, events included: %s", calls)
		b.ReportMetric(rate, "admitted/s")
		if rate < leastAdmitted {
			b.Errorf("%.0f trials are admitted a second; %d are wanted", rate, leastAdmitted)
		}
	}
}

// calls counts requests to the API server by verb and resource.
type calls struct {
	mu sync.Mutex
	of map[string]int
}

// counted is a transport that counts its requests.
type counted struct {
	*calls
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	_, resource, namespaced := strings.Cut(r.URL.Path, "/namespaces/")
	if namespaced {
		_, resource, _ = strings.Cut(resource, "/")
	} else {
		resource = path.Base(r.URL.Path)
	}
	resource, _, _ = strings.Cut(resource, "/")
	c.mu.Lock()
	c.of[r.Method+" "+resource]++
	c.mu.Unlock()
	return c.next.RoundTrip(r)
}

func (c *calls) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.of)) {
		all = append(all, fmt.Sprintf("%d %s", c.of[name], name))
	}
	return strings.Join(all, ", ")
}

// admitAll makes passes until every trial of the namespace is admitted.
func admitAll(b *testing.B, env *testenv.Env, ns string) (took time.Duration, made string) {
	b.Helper()
	counting, config := &calls{of: map[string]int{}}, rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{counting, next} })
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range []client.Object{&v1alpha1.Trial{}, &v1alpha1.Experiment{}} {
		if _, err := mgr.GetCache().GetInformer(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	go func() { _ = mgr.GetCache().Start(b.Context()) }()
	mgr.GetCache().WaitForCacheSync(b.Context())
	r := &admission.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("bench"),
		Environment: render.Environment{AgentImage: "none", Namespace: "default"}, Grants: types.NamespacedName{Namespace: "default", Name: "bench-" + admission.GrantsName},
		AtOnce: admission.CallsAtOnce,
	}
	began := time.Now()
	for {
		if _, err := r.Reconcile(b.Context(), ctrl.Request{}); err != nil {
			b.Fatal(err)
		}
		took, made = time.Since(began), counting.String()
		trials := &v1alpha1.TrialList{}
		if err := env.Client.List(b.Context(), trials, client.InNamespace(ns)); err != nil {
			b.Fatal(err)
		}
		admitted := 0
		for i := range trials.Items {
			if meta.IsStatusConditionTrue(trials.Items[i].Status.Conditions, v1alpha1.TrialAdmitted) {
				admitted++
			}
		}
		switch {
		case admitted == len(trials.Items):
			return took, made
		case took > time.Minute:
			b.Fatalf("%d of %d trials are admitted after %v", admitted, len(trials.Items), took)
		}
	}
}
