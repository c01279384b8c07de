package e2e

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testseries"
)

// one reduces failure-fp to a single point, with two clients so that the machine is not busy. It
// has the variant, with the crash at the instant, and no claims.
func one(variant string, crash v1alpha1.Duration, schedule v1alpha1.Schedule) func(client.Object) {
	return func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		spec.Clients.Count = 2
		spec.Clients.ThinkTime = "20ms"
		spec.Parameters = map[string]v1alpha1.Value{"batchSize": v1alpha1.NewValue("1")}
		spec.Repetitions.Min = 1
		spec.Schedule = schedule
		spec.Claims, spec.Reported, spec.Profiles = nil, nil, nil
		spec.Faults[0].At = crash
		for _, axis := range spec.Sweep {
			for _, p := range axis.Points {
				if p.Name == variant {
					spec.Sweep = []v1alpha1.Axis{{Axis: "variant", Points: []v1alpha1.AxisPoint{p}}}
					return
				}
			}
		}
		panic("no variant " + variant)
	}
}

// A fault needs no manager: agents have the plan before the run starts. This test deletes the
// leading manager after the start. A fault needs no exact clock of a pod either: here a pod's clock
// is two seconds fast, and the fault still acts on time. The clients' latency shows its instant: it
// jumps by the timeout when a replica of the fast path is gone. The timeout is ten times the
// paper's: other programs on these processors can add more than the paper's 4 ms.
func TestManagerDeletedMidTrial(t *testing.T) {
	const crash, end, timeout = 8 * time.Second, 14 * time.Second, 40.0 // the last one in ms
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	single := one("failure-fp", "8s", v1alpha1.Schedule{WarmUp: "2s", Measure: "14s", CoolDown: "1s", Drain: "2s"})
	exp := e.apply(t, failureFile, func(o client.Object) {
		single(o)
		o.(*v1alpha1.Experiment).Spec.Sweep[0].Points[0].Parameters["fastPathTimeout"] = v1alpha1.NewValue(fmt.Sprintf("%vms", timeout))
		o.SetAnnotations(map[string]string{"assay.dev/simulated-clock-offset": "5=2s"})
	})
	e.running(t, exp, 0, 2*time.Second, 2*time.Minute)
	leader := e.leader(t)
	t.Logf("deleting the leader %s", leader)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: leader}}
	if err := e.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	trials := e.complete(t, exp, 3*time.Minute)
	succeeded(t, trials, 1)
	if now := e.leader(t); now == leader {
		t.Errorf("%s still leads; the test deleted nobody", leader)
	}
	r := lastValid(t, trials)
	pods, late := kills(t, r, float64(crash.Milliseconds()))
	if len(pods) != 1 || late > 500 {
		t.Fatalf("%d kills, %.1f ms late, want 1, and not seconds late, as by a clock that is not corrected", len(pods), late)
	}
	for _, p := range r.Pods {
		want := 0.0
		if p.Name == pods[0] {
			want = -2000 // the correction of a clock that is 2 s fast
		}
		if math.Abs(p.ClockOffsetMillis-want) > 500 {
			t.Errorf("%s: clock offset %.1f ms, want about %v", p.Name, p.ClockOffsetMillis, want)
		}
	}
	before, after := testseries.LowLatency(r, 0, crash-500*time.Millisecond), testseries.LowLatency(r, crash+500*time.Millisecond, end)
	t.Logf("latency %.2f ms before the crash, %.2f ms after it (lower quartiles of bins)", before, after)
	if after-before < 0.5*timeout {
		t.Fatalf("latency is %.2f ms before and %.2f ms after the crash: it does not show", before, after)
	}
	jump := testseries.Jump(r, time.Second, end-time.Second, before+1.5*timeout)
	t.Logf("the clients' latency jumps at %s", jump)
	if (jump - crash).Abs() > 1500*time.Millisecond { // a clock that was not corrected would be two seconds off
		t.Errorf("the clients' latency jumps at %s, the crash was planned at %s", jump, crash)
	}
}

// leader is the pod that holds the manager's lease.
func (e *env) leader(t *testing.T) string {
	t.Helper()
	var pod string
	e.eventually(t, time.Minute, "a manager leads", func(ctx context.Context) (bool, error) {
		leases, err := e.clientset.CoordinationV1().Leases(systemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, l := range leases.Items {
			if l.Spec.HolderIdentity != nil && strings.HasPrefix(*l.Spec.HolderIdentity, "assay-manager-") {
				pod, _, _ = strings.Cut(*l.Spec.HolderIdentity, "_")
				// A pod that is ending, or has ended, may hold the lease for some more seconds.
				p, err := e.clientset.CoreV1().Pods(systemNamespace).Get(ctx, pod, metav1.GetOptions{})
				return err == nil && p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready, client.IgnoreNotFound(err)
			}
		}
		return false, nil
	})
	return pod
}

// When an experiment is deleted, the cluster is free again. The measurements until then are kept.
func TestDeleteMidTrial(t *testing.T) {
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	single := one("ideal", "0s", v1alpha1.Schedule{WarmUp: "1s", Measure: "3s", CoolDown: "1s", Drain: "1s"})
	exp := e.apply(t, failureFile, func(o client.Object) {
		single(o)
		o.(*v1alpha1.Experiment).Spec.Repetitions.Min = 2
		o.(*v1alpha1.Experiment).Spec.Faults = nil
	})
	e.eventually(t, 2*time.Minute, "the first trial is complete", func(context.Context) (bool, error) {
		trials := e.trials(t, exp)
		return len(trials) > 0 && meta.IsStatusConditionTrue(trials[0].Status.Conditions, v1alpha1.TrialComplete), nil
	})
	first := e.result(t, &e.trials(t, exp)[0])
	second := e.running(t, exp, 1, time.Second, 2*time.Minute)
	t.Logf("deleting the experiment in the middle of %s", second.Name)
	if err := e.Delete(t.Context(), exp, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var left []string
	e.eventually(t, 30*time.Second, "nothing is left of the experiment", func(ctx context.Context) (bool, error) {
		var err error
		left, err = e.left(ctx, exp)
		if err == nil && len(left) > 0 {
			t.Logf("after %.1f s: %s", time.Since(began).Seconds(), strings.Join(left, ", "))
		}
		return err == nil && len(left) == 0, err
	})
	t.Logf("nothing is left after %.1f s", time.Since(began).Seconds())
	cms := &corev1.ConfigMapList{}
	if err := e.List(t.Context(), cms, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelTrial: first.Name}); err != nil {
		t.Fatal(err)
	}
	if len(cms.Items) != 1 {
		t.Errorf("%d ConfigMaps of trial %s are left, want its results", len(cms.Items), first.Name)
	}
}
