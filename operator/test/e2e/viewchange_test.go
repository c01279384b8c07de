package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testseries"
)

// The leader of seven replicas is killed. Exactly one replica finds that it is the leader. No
// transaction is committed until the others have elected a new leader, and then the throughput
// returns.
func TestViewChange(t *testing.T) {
	const electionTimeout = 2 * time.Second // of the profile smoke
	e := newEnv(t)
	e.apply(t, filepath.Join(root, "experiments", "systems", "etcd.yaml"), nil)
	exp := e.apply(t, filepath.Join(root, "experiments", "hotstuff", "view-change-etcd.yaml"), func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		spec.Profile = "smoke"
		spec.Claims, profile(spec, "smoke").Claims = nil, nil
		spec.Sweep[0].Points = spec.Sweep[0].Points[2:]
		if spec.Sweep[0].Points[0].Name != "leader-killed" {
			t.Fatalf("the third variant is %q", spec.Sweep[0].Points[0].Name)
		}
		profile(spec, "smoke").Repetitions = &v1alpha1.Repetitions{Min: 1}
		// Candidates may split the votes once, and then wait for another timeout, which is up to
		// twice electionTimeout.
		profile(spec, "smoke").Schedule.Measure = "15s"
		// The other fault is of another variant.
		spec.Faults = spec.Faults[1:]
	})
	trials := e.complete(t, exp, 6*time.Minute)
	r := lastValid(t, trials, elected...)
	killed, skipped, dead := "", 0, 0.0
	for _, f := range r.Faults {
		switch {
		case f.Fault != "leader-crash" || f.Kind != "Kill" || f.Role != "leader" || f.Error != "":
			t.Errorf("record %+v, want a Kill of the leader", f)
		case f.Skipped:
			skipped++
		case killed != "":
			t.Errorf("%s and %s were killed, want one leader", killed, f.Pod)
		default:
			killed, dead = f.Pod, f.ConfirmedMillis
			t.Logf("%s led: planned %.0f ms, silent %+.2f ms, dead %+.2f ms later", f.Pod, f.PlannedMillis, f.StartedMillis-f.PlannedMillis, dead-f.PlannedMillis)
		}
	}
	if killed == "" || skipped != 6 {
		t.Fatalf("killed %q, %d skipped; want one of 7 killed", killed, skipped)
	}

	// Followers wait at least for a timeout, and the last heartbeat may be a tenth of a timeout
	// old. Each client that stood still counts one answer that it had got before.
	least := electionTimeout*9/10 - 200*time.Millisecond
	if n := testseries.Committed(r, millis(dead)+200*time.Millisecond, millis(dead)+least); n > int64(r.Clients) {
		t.Errorf("%d committed while nobody can have led", n)
	}
	before, after := testseries.UsuallyCommitted(r, 2*time.Second, 5*time.Second), testseries.UsuallyCommitted(r, 13*time.Second, 16*time.Second)
	t.Logf("%.0f committed in most bins before, %.0f in those of the end", before, after)
	if after < before/3 || before == 0 {
		t.Errorf("%.0f committed in most bins from 13 s, want a third at least of the %.0f before the crash", after, before)
	}
	if len(r.Recovery) != 1 {
		t.Errorf("recovery %+v, want one", r.Recovery)
	}
	t.Logf("recovery: %+v", r.Recovery)
}
