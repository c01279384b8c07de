package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testuntil"
)

// Chaos Mesh deletes the pod of a replica, kills its container, or lets the whole pod fail. The trial goes on and is valid, its clients feel that the replica is gone, and
// feel that it is back: a transaction needs a vote of every replica for the fast path. What clients feel is the machine's doing, too: where it is not what it should
// be, the fault is done twice more, and they must feel it right both times.
func (o *owner) testReplacedReplicas(t *testing.T) {
	testuntil.Needs(t, 5*time.Minute)
	wrong := map[string]int{}
	faults := []string{"pod-kill", "container-kill", "pod-failure"}
	for attempt := 1; attempt <= 3 && len(faults) > 0; attempt++ {
		seen := map[string]bool{}
		for _, r := range o.replaced(t, attempt, faults) {
			variant := r.Coordinates["variant"]
			logCourse(t, r)
			if !succeeded(t, r) {
				continue
			}
			seen[variant] = true
			checkReplaced(t, r)
			if problem := feltWrong(t, r); problem != "" {
				t.Logf("%s: %s", variant, problem)
				if wrong[variant]++; wrong[variant] == 2 {
					t.Errorf("%s: %s, and not for the first time", variant, problem)
				}
			}
		}
		for _, fault := range faults {
			if !seen[fault] {
				t.Errorf("no trial of %s is valid", fault)
			}
		}
		faults = slices.DeleteFunc(faults, func(fault string) bool { return wrong[fault] == 0 || wrong[fault] == 2 })
	}
	o.noTrace(t)
}

// replaced runs the experiment with some of its faults and returns its trials.
func (o *owner) replaced(t *testing.T, attempt int, faults []string) []results.Trial {
	t.Helper()
	exp := &v1alpha1.Experiment{}
	read(t, filepath.Join("testdata", "replaced.yaml"), exp)
	exp.Namespace, exp.Name = chaosExperiments, fmt.Sprintf("%s-%d", exp.Name, attempt)
	variants := &exp.Spec.Sweep[0]
	variants.Points = slices.DeleteFunc(variants.Points, func(p v1alpha1.AxisPoint) bool { return !slices.Contains(faults, p.Name) })
	o.offer(t, exp)
	return o.ended(t, exp)
}

// fastPathTimeout of testdata/replaced.yaml.
const fastPathTimeout = 200.0

// checkReplaced checks what the results say of the replica's pods.
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
			t.Logf("pod %s gone at %.0f ms, %s came at %.0f ms and was ready at %.0f ms", was.UID, was.GoneMillis, p.UID, p.CameMillis, p.ReadyMillis)
			if was.UID == p.UID || !was.Heard || was.GoneMillis < fault.StartedMillis || p.CameMillis < was.GoneMillis || p.ReadyMillis <= p.CameMillis {
				t.Errorf("the replaced pod is %+v", p)
			}
			if last := r.Logs[p.Name+"@"+was.UID+"/basil"]; !strings.Contains(last, "ready") {
				t.Errorf("what the first pod printed last is %q", last)
			}
		}
	}
}

// feltWrong says what is wrong with what the clients felt, or nothing.
func feltWrong(t *testing.T, r results.Trial) string {
	t.Helper()
	variant, fault := r.Coordinates["variant"], r.Faults[0]
	// Before, while it was gone, and in the last seconds of the window. A transaction that waits in vain takes the whole timeout, and there is at most one for each client then.
	// The median over time: while the machine stands still a few transactions take seconds, and nothing else is late.
	end := float64(r.MeasureNanos) / 1e6
	before, after := usualBetween(r, 1000, fault.StartedMillis-100), usualBetween(r, end-6000, end)
	waited := 0.0
	for from := float64(r.Timeline.FirstMillis); from < end; from += float64(r.Timeline.IntervalMillis) {
		if meanBetween(r, from, from+float64(r.Timeline.IntervalMillis)) < fastPathTimeout/2 {
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
	// Two clients on a busy machine make so few transactions in 100 ms that the statistics may not tell a dip from noise; where they do, it must be over.
	if len(r.Recovery) != 1 || r.Recovery[0].Error != "" || r.Recovery[0].Dipped && !r.Recovery[0].Recovered {
		return fmt.Sprintf("the recovery is %+v, want none or a dip that is over", r.Recovery)
	}
	return ""
}

// usualBetween is the median over the intervals of a part of the run of the mean latency, in milliseconds, of the transactions that were committed in each. 0: there were none.
func usualBetween(r results.Trial, from, to float64) float64 {
	var means []float64
	for at := float64(r.Timeline.FirstMillis); at < to; at += float64(r.Timeline.IntervalMillis) {
		if mean := meanBetween(r, at, at+float64(r.Timeline.IntervalMillis)); at >= from && mean > 0 {
			means = append(means, mean)
		}
	}
	if len(means) == 0 {
		return 0
	}
	return median(means)
}

// meanBetween is the mean latency, in milliseconds, of the transactions that were committed in a part of the run.
func meanBetween(r results.Trial, from, to float64) float64 {
	var n, sum int64
	for i, committed := range r.Timeline.Committed {
		if at := float64(r.Timeline.FirstMillis + int64(i)*r.Timeline.IntervalMillis); at >= from && at < to {
			n, sum = n+committed, sum+r.Timeline.LatencySumMicros[i]
		}
	}
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n) / 1000
}

// logCourse logs throughput and latency by the second.
func logCourse(t *testing.T, r results.Trial) {
	t.Helper()
	if r.Timeline == nil {
		return
	}
	perSecond := int(time.Second.Milliseconds() / r.Timeline.IntervalMillis)
	for i := 0; i+perSecond <= len(r.Timeline.Committed); i += perSecond {
		n := int64(0)
		for _, c := range r.Timeline.Committed[i : i+perSecond] {
			n += c
		}
		at := float64(r.Timeline.FirstMillis + int64(i)*r.Timeline.IntervalMillis)
		t.Logf("%6.0f ms: %3d committed, %6.1f ms", at, n, meanBetween(r, at, at+1000))
	}
}
