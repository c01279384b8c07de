package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// A System whose containers have too low a CPU limit is measured and detected, and decides no
// claim. Its results show how the kernel throttles replicas, and not the protocol. A test of the
// controller covers the retry of such a trial.
func TestThrottledTrialsDecideNothing(t *testing.T) {
	e := newEnv(t)
	e.apply(t, basilFile, func(o client.Object) {
		limits := o.(*v1alpha1.System).Spec.Replicas.Containers[0].Resources.Limits
		limits[corev1.ResourceCPU] = resource.MustParse("60m")
	})
	single := one("ideal", "0s", v1alpha1.Schedule{WarmUp: "1s", Measure: "5s", CoolDown: "1s", Drain: "1s"})
	exp := e.apply(t, failureFile, func(o client.Object) {
		single(o)
		spec := &o.(*v1alpha1.Experiment).Spec
		onceOnly(spec)
		spec.Sweep = nil
		spec.Faults = nil
		spec.Claims = []v1alpha1.Claim{{Name: "quick", Statement: "Transactions take less than a minute.", Expr: "mean_latency() < 60000ms"}}
	})
	trials := e.complete(t, exp, 4*time.Minute)
	if len(trials) != 1 {
		t.Errorf("%d trials, want one", len(trials))
	}
	for _, r := range trials {
		if r.Outcome != v1alpha1.ReasonInvalid || r.Reason != v1alpha1.ReasonCPUThrottled || !strings.Contains(r.Message, "limit of 0.06 cores") || !strings.Contains(r.Message, "tolerances.throttling is 1%") {
			t.Errorf("%s: %s %s: %s; want it Invalid, %s", r.Name, r.Outcome, r.Reason, r.Message, v1alpha1.ReasonCPUThrottled)
		}
		checkThrottled(t, r)
	}
	if exp.Status.Trials.Invalid != 1 || exp.Status.Trials.Succeeded != 0 {
		t.Errorf("the experiment counts %+v, want one invalid trial", exp.Status.Trials)
	}
	result := e.experimentResult(t, exp)
	if len(result.Claims) != 1 || result.Claims[0].Verdict != string(v1alpha1.VerdictNotEvaluated) {
		t.Errorf("the verdicts are %+v, want NotEvaluated", result.Claims)
	}
	if p := result.Points[0]; p.Valid != 0 || p.Invalid != 1 || len(p.Metrics) != 0 {
		t.Errorf("the point is %+v, want no number", p)
	}
}

// checkThrottled checks that the replicas reached their limit. Clients have no limit, and must not
// be throttled.
func checkThrottled(t *testing.T, r results.Trial) {
	t.Helper()
	for _, p := range r.Pods {
		u := p.Resources
		// Disks are not tested here. Without io.stat they are known only where /proc/PID/io is
		// readable.
		other := func(why string) bool { return !strings.Contains(why, ": disks: ") }
		if u == nil || slices.ContainsFunc(u.Unmeasured, other) || u.Seconds < 4.5 || u.Series == nil || u.Node.BusyShare <= 0 || u.MemoryMaxBytes <= 0 || u.SentBytes <= 0 {
			t.Errorf("%s: resources of %s are %+v", r.Name, p.Name, u)
			continue
		}
		t.Logf("%s: %s used %.3f cores of %v, throttled in %.1f%% of the window, %d KiB; node busy %.0f%%, steal %.2f%%", r.Name, p.Name, u.CPUMeanCores,
			u.Containers[0].LimitCores, 100*u.ThrottledShare, u.MemoryMaxBytes>>10, 100*u.Node.BusyShare, 100*u.Node.StealShare)
		switch p.Part {
		case v1alpha1.PodTypeReplica:
			if u.Containers[0].LimitCores != 0.06 || u.CPUMeanCores > 0.08 {
				t.Errorf("%s: %s used %v cores of a limit of %v, want at most 0.06", r.Name, p.Name, u.CPUMeanCores, u.Containers[0].LimitCores)
			}
		case v1alpha1.PodTypeClient:
			if u.ThrottledShare != 0 || u.Containers[0].LimitCores != 0 {
				t.Errorf("%s: %s, which has no limit, is said to be throttled: %+v", r.Name, p.Name, u.Containers[0])
			}
		}
	}
}
