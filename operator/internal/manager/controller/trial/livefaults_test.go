package trial

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/node/protocol"
)

// While the clients run, the trial reports their progress and the faults that took effect.
func TestARunningTrialReportsItsClientsAndFaults(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	p.agents.obey() // carries out the experiment's crash, planned for 1 s before t = 0
	for _, c := range p.layout().Clients {
		p.agents.reports[c.Name].Progress = &protocol.Progress{Committed: 500, PerSecond: 50, LatencySumMicros: 2_000_000}
	}
	p.clock.Step(engine.ProgressInterval + 8*time.Second)
	p.reconcile()
	trial := p.trial()
	var got protocol.TrialProgress
	if err := json.Unmarshal([]byte(trial.Annotations[v1alpha1.AnnotationProgress]), &got); err != nil {
		t.Fatalf("the annotation is %q: %v", trial.Annotations[v1alpha1.AnnotationProgress], err)
	}
	clients := int64(len(p.layout().Clients))
	want := protocol.TrialProgress{
		Progress: protocol.Progress{Committed: 500 * clients, PerSecond: 50 * clients, LatencySumMicros: 2_000_000 * clients},
		AtMillis: (p.clock.Now().UnixNano() - trial.Status.ZeroUnixNanos) / 1e6,
		Clients:  int(clients),
		Faults:   []protocol.LiveFault{{Fault: "crash", Time: 1, Kind: "Kill", Millis: -999}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
