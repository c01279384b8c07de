package validity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// A measured delay may be below the asked one by the jitter and by early. It may be above by the
// jitter, the undelayed path and the tolerance.
func TestDelaysThatFit(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		measured time.Duration
		want     bool
	}{
		"as asked": {10 * ms, true}, "as late as may be": {16 * ms, true}, "later": {16*ms + 1, false}, "as early as may be": {8*ms - early, true}, "earlier": {8*ms - early - 1, false}, "nothing": {0, false},
	} {
		if got := (way{asked: 10 * ms, jitter: 2 * ms, path: 3 * ms, measured: tc.measured}).fits(ms); got != tc.want {
			t.Errorf("%s: %v fits: %v, want %v", name, tc.measured, got, tc.want)
		}
	}
}

func TestDatasetsInResults(t *testing.T) {
	got := Datasets(&v1alpha1.Trial{
		Spec: v1alpha1.TrialSpec{Datasets: []v1alpha1.TrialDataset{
			{Name: "a", Dataset: "big", Digest: "d", Bytes: 7, Files: 2, PreparedNodes: 3, PrepareMilliseconds: 2500}, {Name: "b", Dataset: "small"},
		}},
		Status: v1alpha1.TrialStatus{Datasets: []v1alpha1.DatasetCopies{
			{Name: "a", Copies: 4, Method: "Copy", Check: "Content", FastestMilliseconds: 250, SlowestMilliseconds: 4000}, {Name: "c", Copies: 9},
		}},
	})
	want := []results.Dataset{
		{Name: "a", Object: "big", Digest: "d", Bytes: 7, Files: 2, PreparedNodes: 3, PrepareSeconds: 2.5, Copies: 4, Method: "Copy", Check: "Content", FastestSeconds: 0.25, SlowestSeconds: 4},
		{Name: "b", Object: "small"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
