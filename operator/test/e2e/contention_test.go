package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// quietTrials names the variable for the number of trials of TestQuietTrialsCount:
// ASSAY_QUIET_TRIALS, by default 6.
const quietTrials = "ASSAY_QUIET_TRIALS"

// neighbour applies the small experiment. Its trials run once each, and contention is judged with
// the default limits.
func (e *env) neighbour(t *testing.T, trials int32) *v1alpha1.Experiment {
	t.Helper()
	for _, o := range load(t, filepath.Join("testdata", "awkward.yaml")) {
		if o, ok := o.(*v1alpha1.System); ok {
			o.Namespace = e.namespace
			if err := e.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return e.apply(t, filepath.Join("testdata", "neighbour.yaml"), func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		onceOnly(spec)
		spec.Tolerances.Contention = ""
		spec.Repetitions.Min = trials
	})
}

// Another program uses a node's processors during one of four trials. It spoils that trial, and no
// other.
func TestABusyNodeSpoilsATrial(t *testing.T) {
	e := newEnv(t)
	exp := e.neighbour(t, 4)
	second := e.running(t, exp, 1, -2*time.Second, 3*time.Minute)
	burner := e.burn(t, e.nodeOf(t, second))
	time.Sleep(time.Until(time.Unix(0, second.Status.ZeroUnixNanos).Add(6 * time.Second)))
	if err := e.Delete(t.Context(), burner, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	for i, r := range e.complete(t, exp, 5*time.Minute) {
		showMachines(t, r)
		want := ""
		if i == 1 {
			want = v1alpha1.ReasonProcessorContended
		}
		if r.Reason != want {
			t.Errorf("%s, number %d: %s %q: %s; want reason %q", r.Name, i, r.Outcome, r.Reason, r.Message, want)
		}
	}
}

// If no other program disturbs them, trials count.
func TestQuietTrialsCount(t *testing.T) {
	n := 6
	if text := os.Getenv(quietTrials); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("%s is %q, which is no number of trials", quietTrials, text)
		}
	}
	e := newEnv(t)
	exp := e.neighbour(t, int32(n))
	trials := e.complete(t, exp, time.Minute+time.Duration(n)*time.Minute)
	spoilt := 0
	var shares []float64
	for _, r := range trials {
		for _, m := range r.Machines {
			if m.ContendedShare != nil {
				shares = append(shares, *m.ContendedShare)
			}
		}
		showMachines(t, r)
		if r.Outcome != v1alpha1.ReasonSucceeded {
			t.Logf("%s: %s: %s", r.Name, r.Reason, r.Message)
			spoilt++
		}
	}
	if len(trials) != n || len(shares) < n {
		t.Fatalf("%d trials, and %d shares of contention, want %d", len(trials), len(shares), n)
	}
	slices.Sort(shares)
	t.Logf("contention in %d trials: least %.2f%%, median %.2f%%, 90th percentile %.2f%%, most %.2f%%",
		n, 100*shares[0], 100*shares[len(shares)/2], 100*shares[len(shares)*9/10], 100*shares[len(shares)-1])
	if spoilt > 1 {
		t.Errorf("%d of %d quiet trials do not count, want 1 at most", spoilt, n)
	}
}

// showMachines logs which programs had the processors, and the outcome of the trial.
func showMachines(t *testing.T, r results.Trial) {
	t.Helper()
	for _, m := range r.Machines {
		if m.ContendedShare == nil || m.WaitedShare == nil {
			t.Errorf("%s: it is not known how long the trial waited on %v", r.Name, m.Nodes)
			continue
		}
		t.Logf("%s: machine %.8s: of %d processors the trial had %.2f, others %.2f; waited %.2f%%, late %.2f%%, contended %.2f%%; mean %.2f ms, p99 %.2f ms",
			r.Name, m.Machine, m.CPUs, m.TrialCores, m.OthersCores, 100**m.WaitedShare, 100**m.LateShare, 100**m.ContendedShare, r.Summary.MeanMillis, r.Summary.P99Millis)
	}
}

// nodeOf is the node of one of the trial's replicas.
func (e *env) nodeOf(t *testing.T, trial *v1alpha1.Trial) string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := e.List(t.Context(), pods, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial.Name}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Labels[v1alpha1.LabelPodType] == v1alpha1.PodTypeReplica {
			return p.Spec.NodeName
		}
	}
	t.Fatalf("%s has no replica among %d pods", trial.Name, len(pods.Items))
	return ""
}

// burn makes a foreign pod keep as many processors of a node busy as two, with the weight of a pod
// that requests half of one.
func (e *env) burn(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "burner", Namespace: e.namespace},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "burn", Image: "assay/awkward:dev", ImagePullPolicy: corev1.PullNever, Command: []string{"/awkward", "burn", "2"},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
		}}},
	}
	if err := e.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}
