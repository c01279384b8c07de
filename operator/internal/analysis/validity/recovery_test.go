package validity

import (
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// The recovery from a fault counts from its first confirmation. A fault before or after the window
// has none.
func TestRecoveries(t *testing.T) {
	line := results.NewTimeline(-5000, 270)
	for i := range line.Committed {
		line.Committed[i] = 100
		if at := line.FirstMillis + int64(i)*line.IntervalMillis; at >= 5000 && at < 8000 {
			line.Committed[i] = 0
		}
	}
	trial := &results.Trial{MeasureNanos: (20 * time.Second).Nanoseconds(), Timeline: &line, Faults: []results.FaultRecord{
		{ID: "early/1/kill/a", Time: 1, Fault: "early", Kind: "Kill", ConfirmedMillis: -1000},
		{ID: "crash/1/kill/b", Time: 1, Fault: "crash", Kind: "Kill", ConfirmedMillis: 5002},
		{ID: "crash/1/kill/a", Time: 1, Fault: "crash", Kind: "Kill", ConfirmedMillis: 5001},
		{ID: "crash/1/kill/c", Time: 1, Fault: "crash", Kind: "Kill", Skipped: true},
		{ID: "late/1/kill/a", Time: 1, Fault: "late", Kind: "Kill", ConfirmedMillis: 20_000},
		{ID: "crash/1/revive/a", Time: 1, Fault: "crash", Kind: "Revive", ConfirmedMillis: 8000},
	}}
	got := Recoveries(trial)
	if len(got) != 1 {
		t.Fatalf("recoveries are %+v, want one, of the crash", got)
	}
	r := got[0]
	if r.Fault != "crash" || r.Time != 1 || r.ConfirmedMillis != 5001 || r.ThroughputBefore != 1000 || !r.Dipped || !r.Recovered || r.RecoverMillis != 2999 || r.Depth != 1 || r.LostTransactions != 3000 {
		t.Errorf("the recovery is %+v", r)
	}
}
