package try

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A try of a script shows its rows. A value that a row lacks is not shown as 0.
func TestRowsOfAScriptAreShown(t *testing.T) {
	var out strings.Builder
	point := func(scheme string) v1alpha1.Point {
		return v1alpha1.Point{Coordinates: map[string]string{"scheme": scheme}}
	}
	writeRows(&out, []v1alpha1.RowStatus{
		{Point: point("a"), Headline: &v1alpha1.Headline{ThroughputMilli: 12500, P99LatencyMicroseconds: 2500}},
		{Point: point("b"), Missing: "the file has no such row"},
	})
	if want := "  scheme=a: 12.5 tx/s, p99 2.50 ms\n  scheme=b: missing: the file has no such row\n"; out.String() != want {
		t.Errorf("it shows\n%swant\n%s", out.String(), want)
	}
}
