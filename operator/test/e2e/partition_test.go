package e2e

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testseries"
)

// brokenPlan are the faults of one trial of Basil, one after the other. Its replicas do not talk to
// each other, so only their links with the clients count. The clients are on the first side of the
// partition, so that they notice it.
func brokenPlan() []v1alpha1.Fault {
	length := func(d v1alpha1.Duration) *v1alpha1.Duration { return &d }
	one := intstr.FromInt32(1)
	return []v1alpha1.Fault{
		{Name: "stop", At: "1500ms", For: length("1s"), EveryPoint: true, Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Pick: &one}}},
		{Name: "slow", At: "4s", For: length("2s"), EveryPoint: true,
			Degrade: &v1alpha1.Degrade{Target: &v1alpha1.Target{Replicas: []int32{2}}, LinkEffect: v1alpha1.LinkEffect{Delay: length("20ms")}}},
		{Name: "split", At: "8s", For: length("5s"), EveryPoint: true, Partition: &v1alpha1.Partition{
			Groups:  []v1alpha1.Target{{Replicas: []int32{0, 1, 2}}, {Replicas: []int32{3, 4, 5}}},
			Clients: "FirstGroup",
		}},
	}
}

// Faults change the clients' numbers while they last, and not before and after. The faults are a
// replica that stands still, slow links, and a partition of three against three. All three are in
// one trial, since a trial takes long to set up.
func TestFaultsShow(t *testing.T) {
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	single := one("ideal", "0s", v1alpha1.Schedule{WarmUp: "2s", Measure: "18s", CoolDown: "1s", Drain: "2s"})
	exp := e.apply(t, failureFile, func(o client.Object) {
		single(o)
		spec := &o.(*v1alpha1.Experiment).Spec
		spec.Clients.Count = 4
		spec.Clients.Timeout = "10s"
		// The fast path needs every replica, so the loss of any replica is visible: it costs the
		// timeout.
		spec.Sweep = nil
		spec.Parameters["fastPathTimeout"] = v1alpha1.NewValue("150ms")
		spec.Faults = brokenPlan()
	})
	trials := e.complete(t, exp, 8*time.Minute)
	r := lastValid(t, trials)
	t.Run("Pause", func(t *testing.T) { latencyRises(t, r, "stop", "Pause", "Resume", 1, 100) })
	t.Run("Degrade", func(t *testing.T) { latencyRises(t, r, "slow", "Degrade", "Restore", 8, 30) })
	t.Run("Partition", func(t *testing.T) { partitioned(t, r) })
}

// instants of a fault, in ms: when it began in its first pod and was confirmed in its last one, and
// the same for its end.
type instants struct{ began, held, endBegan, over float64 }

// instantsOf finds the records of a fault, which that many pods carried out, and checks them.
func instantsOf(t *testing.T, r results.Trial, fault, kind, end string, pods int) instants {
	t.Helper()
	var starts, ends []results.FaultRecord
	for _, f := range r.Faults {
		switch {
		case f.Fault != fault:
			continue
		case f.Error != "" || f.Skipped || f.ConfirmedMillis < f.StartedMillis || f.StartedMillis < f.PlannedMillis-1:
			t.Errorf("%s: record %+v, want that it was done, after it was planned", r.Name, f)
		case f.Kind == kind:
			starts = append(starts, f)
		case f.Kind == end:
			ends = append(ends, f)
		default:
			t.Errorf("%s: record %+v, want %s or %s", r.Name, f, kind, end)
		}
	}
	if len(starts) != pods || len(ends) != pods {
		t.Fatalf("%s: %d records of %s and %d of %s, want %d each: %+v", fault, len(starts), kind, len(ends), end, pods, r.Faults)
	}
	began := func(a, b results.FaultRecord) int { return int(1000 * (a.StartedMillis - b.StartedMillis)) }
	confirmed := func(a, b results.FaultRecord) int { return int(1000 * (a.ConfirmedMillis - b.ConfirmedMillis)) }
	i := instants{
		slices.MinFunc(starts, began).StartedMillis, slices.MaxFunc(starts, confirmed).ConfirmedMillis,
		slices.MinFunc(ends, began).StartedMillis, slices.MaxFunc(ends, confirmed).ConfirmedMillis,
	}
	t.Logf("%s: planned %.0f to %.0f ms; began %.2f, confirmed %.2f; ended %.2f, confirmed %.2f, in %d pods", fault, starts[0].PlannedMillis,
		ends[0].PlannedMillis, i.began, i.held, i.endBegan, i.over, pods)
	return i
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// latencyRises checks that the mean latency rises by that many ms while a fault lasts. It compares
// with the second before the fault and the second after it. A request that began before the fault's
// end ends after it, so half a second is left out. A machine that others share only adds to
// latencies, so low latencies from before and after are used.
func latencyRises(t *testing.T, r results.Trial, fault, kind, end string, pods int, by float64) {
	t.Helper()
	i := instantsOf(t, r, fault, kind, end, pods)
	before := testseries.LowLatency(r, millis(i.began)-time.Second, millis(i.began)-results.TimelineInterval)
	during := testseries.MeanLatency(r, millis(i.held)+results.TimelineInterval, millis(i.endBegan)-results.TimelineInterval)
	after := testseries.LowLatency(r, millis(i.over)+500*time.Millisecond, millis(i.over)+1500*time.Millisecond)
	t.Logf("latency %.1f ms before, %.1f ms during, %.1f ms after", before, during, after)
	if before == 0 || after == 0 || during < before+by || during < after+by {
		t.Errorf("latency %.1f ms before, %.1f ms during and %.1f ms after; want at least %.0f ms more during it", before, during, after, by)
	}
}

// partitioned checks a partition of three against three for 5 s, with the clients on one side. A
// decision needs votes of at least 3f+1 = 4 of 6 replicas. Neither side has four, so no transaction
// may be committed.
func partitioned(t *testing.T, r results.Trial) {
	t.Helper()
	// Every pod loses a peer, except replicas within a group: six replicas and two client pods.
	i := instantsOf(t, r, "split", "Cut", "Heal", 8)
	t.Logf("the partition lasted from %.2f to %.2f ms", i.began, i.over)
	if lasted := i.endBegan - i.held; lasted < 3500 || i.over-i.began > 7500 {
		t.Errorf("the partition lasted from %.2f to %.2f ms, want about 5 s", i.began, i.over)
	}
	var last, first float64 // begin of the last bin with a commit before the outage, and of the first one after it
	during := int64(0)
	first = -1
	for n, committed := range r.Timeline.Committed {
		at := float64(r.Timeline.FirstMillis + int64(n)*r.Timeline.IntervalMillis)
		switch {
		case committed == 0:
		case at < i.held:
			last = at
		case at >= i.held+100 && at+100 <= i.endBegan:
			during += committed
		case at+100 > i.endBegan && first < 0:
			first = at
		}
	}
	before := testseries.MeanLatency(r, millis(i.began)-time.Second, millis(i.began))
	t.Logf("the last commit is in the 100 ms from %.0f ms, the first one again in those from %.0f ms, %.0f ms after the end; mean latency before %.1f ms",
		last, first, first-i.over, before)
	for _, rec := range r.Recovery {
		if rec.Fault == "split" {
			t.Logf("recovery: %+v", rec)
			if !rec.Dipped || !rec.Recovered || rec.Depth < 0.9 {
				t.Errorf("recovery %+v, want a dip to nearly nothing and a recovery", rec)
			}
		}
	}
	if during > 4 { // each of the four clients may count an answer that it got before it stood still
		t.Errorf("%d transactions were committed from 100 ms after the cut was confirmed to its end, want none", during)
	}
	if first < 0 {
		t.Errorf("nothing is committed again after the end at %.0f ms", i.over)
	}
	// TCP retransmits packets of the partition when its timer expires, and doubles the timer each
	// time: 0.2, 0.6, 1.4, 3.0, 6.2 s after the cut. The medians are compared, since a moment
	// without a processor is no outage.
	if now, usual := testseries.UsuallyCommitted(r, 16*time.Second, 18*time.Second), testseries.UsuallyCommitted(r, 6*time.Second, 8*time.Second); now < usual/3 || usual == 0 {
		t.Errorf("%v committed in half a second at the end (median), want at least a third of the %v before", now, usual)
	}
	cuts := 0
	for _, f := range r.Faults {
		if f.Kind != "Cut" {
			continue
		}
		if cuts++; f.Peers == 0 {
			t.Errorf("record %+v: cut from nobody", f)
		}
	}
	if cuts == 0 {
		t.Error("no record of a cut")
	}
}
