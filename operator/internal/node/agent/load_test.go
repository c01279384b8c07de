package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

func TestLoadBetween(t *testing.T) {
	at := func(seconds float64, busy, steal, total int64, own map[string]time.Duration) loadReading {
		return loadReading{at: int64(seconds * 1e9), node: results.PodReading{CPUs: 2, Busy: busy, Steal: steal, Total: total}, own: own}
	}
	before := at(10, 1000, 100, 10000, map[string]time.Duration{"replica": 5 * time.Second, "gone": time.Second})
	for name, tc := range map[string]struct {
		from, to loadReading
		want     protocol.Load
	}{
		"half busy, a tenth stolen": {before, at(11, 1100, 120, 10200, map[string]time.Duration{"replica": 5250 * time.Millisecond}),
			protocol.Load{CPUs: 2, Seconds: 1, BusyCores: 1, StolenCores: 0.2, OwnCores: 0.25}},
		"a container that was not read before": {before, at(12, 1000, 100, 10400, map[string]time.Duration{"replica": 5 * time.Second, "new": time.Hour}),
			protocol.Load{CPUs: 2, Seconds: 2}},
		"a launcher that began anew":   {before, at(11, 1000, 100, 10200, map[string]time.Duration{"replica": time.Millisecond}), protocol.Load{CPUs: 2, Seconds: 1}},
		"no tick between two readings": {before, before, protocol.Load{CPUs: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, loadBetween(tc.from, tc.to), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("load (-want +got):\n%s", diff)
			}
		})
	}
}
