package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

const (
	manyExperiments = 200
	trialsOfEach    = 50 // 10 points, 5 repetitions
	mostMegabytes   = 200
)

// BenchmarkManagerMemory measures the manager's peak memory (VmHWM) for a namespace of 200
// experiments with 50 trials each. The manager reads all trials, computes the results of every
// experiment, writes these and the verdicts, and keeps all objects in its cache. The trials are
// done, so there are no pods.
//
//	make bench-memory
func BenchmarkManagerMemory(b *testing.B) {
	env := testenv.Get(b)
	binary := managerProgram(b)
	for b.Loop() {
		ns := env.Namespace(b)
		create(b, env, ns)
		m := startManager(b, env, binary)
		waitFor(b, env, ns, v1alpha1.ExperimentAccepted, m)
		m.stop(b)
		addTrials(b, env, ns)
		m = startManager(b, env, binary)
		waitFor(b, env, ns, v1alpha1.ExperimentComplete, m)
		waitFor(b, env, ns, v1alpha1.ExperimentResultsStored, m)
		peak, heap := m.peakMegabytes(b), m.heapMegabytes(b)
		m.stop(b)
		b.ReportMetric(peak, "peak-RSS-MB")
		b.ReportMetric(heap, "heap-MB")
		b.Logf("peak %.0f MB, heap in use at the end %.0f MB, %d experiments of %d trials", peak, heap, manyExperiments, trialsOfEach)
		if peak > mostMegabytes {
			b.Errorf("the manager's peak memory is %.0f MB; at most %d are allowed", peak, mostMegabytes)
		}
	}
}

func create(b *testing.B, env *testenv.Env, ns string) {
	b.Helper()
	system := sample(b, "systems/driver.yaml")
	system.SetNamespace(ns)
	if err := env.Client.Create(b.Context(), system); err != nil {
		b.Fatal(err)
	}
	parallel(b, manyExperiments, func(ctx context.Context, i int) error {
		exp := builders.Experiment(fmt.Sprintf("exp-%d", i)).Namespace(ns).System("kv").Values("clients", 1, 2, 4, 8, 16).
			Points("variant", v1alpha1.AxisPoint{Name: "fast"}, v1alpha1.AxisPoint{Name: "slow", Parameters: map[string]v1alpha1.Value{"fastPath": builders.Value(false)}}).
			Repetitions(5).Set(func(s *v1alpha1.ExperimentSpec) {
			s.Workload.Name, s.Suspend = "read-write", true
			s.Claims = []v1alpha1.Claim{{Name: "faster", Statement: "It is faster.", Expr: "mean_latency(variant='fast', clients=1) < mean_latency(variant='slow', clients=1)"}}
		}).Obj()
		return env.Client.Create(ctx, exp)
	})
}

// addTrials makes the experiments' trials, done and valid, and then lets the experiments continue.
func addTrials(b *testing.B, env *testenv.Env, ns string) {
	b.Helper()
	list := &v1alpha1.ExperimentList{}
	if err := env.Client.List(b.Context(), list, client.InNamespace(ns)); err != nil {
		b.Fatal(err)
	}
	systems := map[string]v1alpha1.SystemSpec{"kv": kv(b)}
	parallel(b, len(list.Items), func(ctx context.Context, i int) error {
		exp := &list.Items[i]
		p, errs := plan.Expand(exp, systems)
		if len(errs) > 0 {
			return errs.ToAggregate()
		}
		number := int32(0)
		for _, round := range plan.Rounds(p, exp.Status.Seed) {
			for _, slot := range round {
				if err := addTrial(ctx, env, exp, p, slot, number); err != nil {
					return err
				}
				number++
			}
		}
		exp.Spec.Suspend = false
		return env.Client.Update(ctx, exp)
	})
}

func addTrial(ctx context.Context, env *testenv.Env, exp *v1alpha1.Experiment, p *plan.Plan, slot plan.Slot, number int32) error {
	spec := *p.Points[slot.Point].Template.DeepCopy()
	spec.Number, spec.Repetition, spec.System.Revision = number, slot.Repetition, exp.Name+"-kv-0123456789"
	spec.Seed = plan.TrialSeed(exp.Status.Seed, slot.Point, slot.Repetition, 0)
	trial := builders.Trial(fmt.Sprintf("%s-0000-%d", exp.Name, number)).Spec(spec).Obj()
	trial.Namespace, trial.UID = exp.Namespace, ""
	trial.Labels = map[string]string{v1alpha1.LabelExperiment: exp.Name, v1alpha1.LabelPoint: fmt.Sprint(slot.Point)}
	trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1alpha1.GroupVersion.WithKind("Experiment"))}
	if err := env.Client.Create(ctx, trial); err != nil {
		return err
	}
	now := metav1.NowMicro()
	trial.Status = v1alpha1.TrialStatus{
		Times:         v1alpha1.TrialTimes{Admitted: &now, Deployed: &now, Started: &now, Loaded: &now, Released: &now, Drained: &now, Collected: &now, Done: &now},
		ZeroUnixNanos: now.UnixNano(), ResultsConfigMap: trial.Name + "-results",
		Headline: &v1alpha1.Headline{Committed: 2000, ThroughputMilli: 100000 + int64(number), MeanLatencyMicroseconds: 1000 + 10*int64(slot.Point), P50LatencyMicroseconds: 900, P99LatencyMicroseconds: 5000},
	}
	for _, c := range []string{v1alpha1.TrialAdmitted, v1alpha1.TrialDeployed, v1alpha1.TrialNetworkVerified, v1alpha1.TrialStarted, v1alpha1.TrialLoaded, v1alpha1.TrialRunning,
		v1alpha1.TrialCollected, v1alpha1.TrialValid, v1alpha1.TrialCleanedUp, v1alpha1.TrialComplete} {
		meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded,
			Message: "The trial ran and its results can be trusted."})
	}
	return env.Client.Status().Update(ctx, trial)
}

// parallel calls do n times, sixteen at a time.
func parallel(b *testing.B, n int, do func(ctx context.Context, i int) error) {
	b.Helper()
	var wg sync.WaitGroup
	work := make(chan int)
	failures := make(chan error, 16)
	for range 16 {
		wg.Go(func() {
			var first error
			for i := range work {
				if first == nil {
					first = do(b.Context(), i)
				}
			}
			failures <- first
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		b.Fatal(err)
	}
}

// manager is a running manager process.
type manager struct {
	cmd     *exec.Cmd
	metrics string
	// coordinator is the port that agents dial.
	coordinator string
	log         string
	ended       chan error
}

// startManager starts the manager; under another command, if one is given.
func startManager(b testing.TB, env *testenv.Env, binary string, under ...string) *manager {
	b.Helper()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), env.Kubeconfig(), 0o600); err != nil {
		b.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "assay-certificates"}} // the chart makes this Secret
	if err := env.Client.Create(b.Context(), secret); client.IgnoreAlreadyExists(err) != nil {
		b.Fatal(err)
	}
	m := &manager{metrics: freeAddress(b), log: filepath.Join(dir, "log"), ended: make(chan error, 1)}
	_, coordinator, _ := net.SplitHostPort(freeAddress(b))
	output, err := os.Create(m.log)
	if err != nil {
		b.Fatal(err)
	}
	m.coordinator = coordinator
	args := slices.Concat(under, []string{binary, "--agent-image=none", "--coordinator-address=localhost:1", "--coordinator-port=" + coordinator, "--certificate-names=localhost",
		"--namespace=default", "--webhook-port=0", "--metrics-bind-address=" + m.metrics, "--metrics-open", "--health-probe-bind-address=0", "--kube-api-qps=1000"})
	m.cmd = exec.Command(args[0], args[1:]...)
	m.cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
	m.cmd.Stdout, m.cmd.Stderr = output, output
	if err := m.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() { m.ended <- errors.Join(m.cmd.Wait(), output.Close()) }()
	b.Cleanup(func() { _ = m.cmd.Process.Kill() })
	return m
}

func freeAddress(b testing.TB) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (m *manager) stop(b testing.TB) {
	b.Helper()
	if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
		b.Fatal(err)
	}
	if err := <-m.ended; err != nil {
		b.Fatalf("the manager ended with %v\n%s", err, m.tail())
	}
}

func (m *manager) tail() string {
	text, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// peakMegabytes is the largest memory that the process has had.
func (m *manager) peakMegabytes(b testing.TB) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	return number(b, status, highWater) / 1024
}

// highWater is the largest memory of a process, in its status file.
const highWater = `VmHWM:\s+(\d+) kB`

// beside is the peak memory of the other processes: this test, which plays nodes, pods and agents,
// and the API server. The manager's memory is not in it.
func (m *manager) beside(b testing.TB) string {
	b.Helper()
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	all := []string{fmt.Sprintf("the played world %.0f MB", number(b, own, highWater)/1024)}
	found, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range found {
		status, err := os.ReadFile(path)
		if err != nil || !regexp.MustCompile(fmt.Sprintf(`(?m)^PPid:\s+%d$`, os.Getpid())).Match(status) {
			continue // it has ended, or does not belong to this test
		}
		if name := regexp.MustCompile(`Name:\s+(\S+)`).FindSubmatch(status); name != nil && filepath.Base(filepath.Dir(path)) != strconv.Itoa(m.cmd.Process.Pid) {
			all = append(all, fmt.Sprintf("%s %.0f MB", name[1], number(b, status, highWater)/1024))
		}
	}
	return strings.Join(all, ", ")
}

// processorSeconds is the manager's processor time. Unlike elapsed time, it also shows the cost of
// a trial on a busy machine.
func (m *manager) processorSeconds(b testing.TB) float64 {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	const ticks = 100 // a second, in the unit of Linux's interfaces
	return (number(b, stat, `^\d+ \(.*\) \S(?: \S+){10} (\d+)`) + number(b, stat, `^\d+ \(.*\) \S(?: \S+){11} (\d+)`)) / ticks
}

// heapMegabytes is the live data in the heap now.
func (m *manager) heapMegabytes(b *testing.B) float64 {
	b.Helper()
	answer, err := http.Get("http://" + m.metrics + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text := make([]byte, 1<<20)
	n := 0
	for err == nil && n < len(text) {
		var more int
		more, err = answer.Body.Read(text[n:])
		n += more
	}
	return number(b, text[:n], `(?m)^go_memstats_heap_inuse_bytes (\S+)$`) / (1 << 20)
}

func number(b testing.TB, text []byte, pattern string) float64 {
	b.Helper()
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		b.Fatalf("no %s in the answer", pattern)
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// waitFor waits until every experiment has the condition True.
func waitFor(b *testing.B, env *testenv.Env, ns, condition string, m *manager) {
	b.Helper()
	deadline := time.After(10 * time.Minute)
	for {
		list := &v1alpha1.ExperimentList{}
		if err := env.Client.List(b.Context(), list, client.InNamespace(ns)); err != nil {
			b.Fatal(err)
		}
		have := 0
		for _, exp := range list.Items {
			if meta.IsStatusConditionTrue(exp.Status.Conditions, condition) {
				have++
			}
		}
		if have == manyExperiments {
			return
		}
		select {
		case err := <-m.ended:
			b.Fatalf("the manager ended early: %v\n%s", err, m.tail())
		case <-deadline:
			b.Fatalf("%d of %d experiments are %s after ten minutes\n%s", have, manyExperiments, condition, m.tail())
		case <-time.After(500 * time.Millisecond):
		}
	}
}
