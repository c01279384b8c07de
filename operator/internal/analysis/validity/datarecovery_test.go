package validity

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

// A pod that receives 100 bytes a second is away from 6 s to 8.5 s. Then it gets 1000 bytes more in
// each of four seconds.
func TestDataThatAPodGetsWhenItIsBack(t *testing.T) {
	received := []int64{100, 100, 100, 100, 100, 100, 0, 0, 1100, 1100, 1100, 1100, 100, 100, 100, 100, 100, 100, 100, 100}
	written := []int64{0, 0, 0, 0, 0, 0, 0, 0, 500, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	trial := func(received []int64) *results.Trial {
		return &results.Trial{
			MeasureNanos: 20e9,
			Faults: []results.FaultRecord{
				{ID: "crash/1/kill/r", Fault: "crash", Time: 1, Pod: "r", Kind: "Kill", ConfirmedMillis: 6000},
				{ID: "crash/1/revive/r", Fault: "crash", Time: 1, Pod: "r", Kind: "Revive", Ends: "crash/1/kill/r", ConfirmedMillis: 8500},
			},
			Pods: []results.Pod{{Name: "r", Resources: &results.Resources{Series: &results.ResourceSeries{IntervalMillis: 1000, ReceivedBytes: received, DiskWrittenBytes: written}}}},
		}
	}
	unknown := append([]int64{}, received...)
	unknown[12] = -1
	for name, tc := range map[string]struct {
		received []int64
		want     *results.DataRecovery
	}{
		"four seconds of more":   {received, &results.DataRecovery{Pods: 1, BackMillis: 2500, ReceivedBytes: 4000, DiskWrittenBytes: 500, RestoreMillis: 3500}},
		"more after the window":  {append(slices.Clone(received), 9999), &results.DataRecovery{Pods: 1, BackMillis: 2500, ReceivedBytes: 4000, DiskWrittenBytes: 500, RestoreMillis: 3500}},
		"as much as before":      {[]int64{9, 9, 9, 9, 9, 9, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, &results.DataRecovery{Pods: 1, BackMillis: 2500, DiskWrittenBytes: 500}},
		"a second is not known":  {unknown, nil},
		"nothing is known of it": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			of := trial(tc.received)
			all := []results.Recovery{{Fault: "crash", Time: 1, ConfirmedMillis: 6000}}
			addDataRecovery(of, all)
			if diff := cmp.Diff(tc.want, all[0].Data); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
