package results

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A pod whose probes were all lost has no least round trip; it must not make that of the others 0.
func TestCanariesAddUp(t *testing.T) {
	lost := Canary{CanarySent: 5, CanaryLost: 5}
	some := Canary{CanarySent: 4, CanaryLost: 1, CanaryMinMillis: 2, CanaryMedianMillis: 3, CanaryMaxMillis: 9}
	other := Canary{CanarySent: 2, CanaryMinMillis: 1, CanaryMedianMillis: 4, CanaryMaxMillis: 5}
	var sum Canary
	for _, c := range []Canary{lost, some, {}, lost, other} {
		sum.Add(c)
	}
	if diff := cmp.Diff(Canary{CanarySent: 16, CanaryLost: 11, CanaryMinMillis: 1, CanaryMedianMillis: 4, CanaryMaxMillis: 9}, sum); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
}
