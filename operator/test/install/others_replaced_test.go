package install

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testseries"
)

// Chaos Mesh deletes the pod of a replica, kills its container, or makes the whole pod fail. The
// trial goes on and is valid. Its clients notice the loss of the replica and its return: for the
// fast path, a transaction needs a vote of every replica.
func TestChaosMeshReplacesReplicas(t *testing.T) {
	o := withChaosMesh(t)
	seen := map[string]int{}
	for _, r := range o.replaced(t) {
		logCourse(t, r)
		if !succeeded(t, r) {
			continue
		}
		variant := r.Coordinates["variant"]
		seen[variant]++
		checkReplaced(t, r)
		if problem := feltWrong(t, r); problem != "" {
			t.Errorf("%s: %s", variant, problem)
		}
	}
	for _, fault := range []string{"pod-kill", "container-kill", "pod-failure"} {
		if seen[fault] != 1 {
			t.Errorf("%d trials of %s are valid, want 1", seen[fault], fault)
		}
	}
	o.noTrace(t)
}

// replaced runs the experiment and returns its trials.
func (o *owner) replaced(t *testing.T) []results.Trial {
	t.Helper()
	exp := &v1alpha1.Experiment{}
	read(t, filepath.Join("testdata", "replaced.yaml"), exp)
	exp.Namespace, exp.Spec.Results = othersExperiments, &v1alpha1.Results{Store: v1alpha1.NoStore}
	o.offer(t, exp)
	return o.ended(t, exp)
}

// fastPathTimeout of testdata/replaced.yaml.
const fastPathTimeout = 200.0

// checkReplaced checks the records of the replica's pods in the results.
func checkReplaced(t *testing.T, r results.Trial) {
	t.Helper()
	variant, fault := r.Coordinates["variant"], r.Faults[0]
	for _, p := range r.Pods {
		replaced := p.Name == fault.Pod && variant == "pod-kill"
		if restarted := p.Restarts > 0; restarted != (p.Name == fault.Pod && variant != "pod-kill") {
			t.Errorf("%s: the kubelet restarted containers of %s %d times", variant, p.Name, p.Restarts)
		}
		if replaced != (len(p.Predecessors) == 1) {
			t.Errorf("%s: %s has the predecessors %+v", variant, p.Name, p.Predecessors)
			continue
		}
		if replaced {
			was := p.Predecessors[0]
			t.Logf("pod %s gone at %.0f ms, %s came at %.0f ms and was ready at %.0f ms", was.UID, was.DeletedMillis, p.UID, p.CreatedMillis, p.ReadyMillis)
			if was.UID == p.UID || !was.Reported || was.DeletedMillis < fault.StartedMillis || p.CreatedMillis < was.DeletedMillis || p.ReadyMillis <= p.CreatedMillis {
				t.Errorf("the replaced pod is %+v", p)
			}
			if last := r.Logs[p.Name+"@"+was.UID+"/basil"]; !strings.Contains(last, "ready") {
				t.Errorf("what the first pod printed last is %q", last)
			}
		}
	}
}

// feltWrong says which effect of the fault on the clients is missing. It is empty if none is.
func feltWrong(t *testing.T, r results.Trial) string {
	t.Helper()
	variant, fault := r.Coordinates["variant"], r.Faults[0]
	// The latencies are from before the fault, during it, and in the last seconds of the window. A
	// transaction that waits in vain takes the whole timeout, and then there is at most one for
	// each client. A machine that others share only adds to latencies, so low ones from before and
	// after are compared.
	end := time.Duration(r.MeasureNanos)
	before := testseries.LowLatency(r, -time.Second, time.Duration(fault.StartedMillis-100)*time.Millisecond)
	after := testseries.LowLatency(r, end-4*time.Second, end)
	waited := 0.0
	for from := float64(r.Timeline.FirstMillis); from < 1000*end.Seconds(); from += float64(r.Timeline.IntervalMillis) {
		if testseries.MeanLatency(r, millis(from), millis(from)+results.TimelineInterval) < fastPathTimeout/2 {
			continue
		}
		if from > fault.StartedMillis-fastPathTimeout && from < fault.StartedMillis+15_000 {
			waited += float64(r.Timeline.IntervalMillis)
		}
	}
	t.Logf("%s: latency %.1f ms before, %.1f ms in the end; clients waited for the fast path in vain for %.0f ms", variant, before, after, waited)
	if waited < fastPathTimeout {
		return "clients did not feel that a replica was gone"
	}
	if after == 0 || after > before+fastPathTimeout/4 {
		return "in the end the replica did not take part again"
	}
	// Two clients on a busy machine make few transactions in 100 ms. So the statistics may not
	// detect a dip in the noise. If they do, the dip must be over.
	if len(r.Recovery) != 1 || r.Recovery[0].Error != "" || r.Recovery[0].Dipped && !r.Recovery[0].Recovered {
		return fmt.Sprintf("the recovery is %+v, want none or a dip that is over", r.Recovery)
	}
	return ""
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// logCourse logs throughput and latency by the second.
func logCourse(t *testing.T, r results.Trial) {
	t.Helper()
	if r.Timeline == nil {
		t.Logf("%s has no timeline", r.Name)
		return
	}
	perSecond := int(time.Second.Milliseconds() / r.Timeline.IntervalMillis)
	for i := 0; i+perSecond <= len(r.Timeline.Committed); i += perSecond {
		n := int64(0)
		for _, c := range r.Timeline.Committed[i : i+perSecond] {
			n += c
		}
		at := float64(r.Timeline.FirstMillis + int64(i)*r.Timeline.IntervalMillis)
		t.Logf("%6.0f ms: %3d committed, %6.1f ms", at, n, testseries.MeanLatency(r, millis(at), millis(at)+time.Second))
	}
}
