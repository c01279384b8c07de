package try

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The output has no 0 for a number that clients do not print. It has a measured latency of 0.
func TestUnknownNumbersAreNoZeros(t *testing.T) {
	for name, tc := range map[string]struct {
		h    v1alpha1.Headline
		want string
	}{
		"of a summary": {v1alpha1.Headline{RunSummary: true, ThroughputMilli: 1500, P99LatencyMicroseconds: 2500, Unreported: []string{"aborted", "errors"}},
			"  throughput    1.5 tx/s\n  latency       mean not known, p50 not known, p99 2.50 ms\n" +
				"  transactions  an unknown number of committed, an unknown number of attempts aborted, an unknown number of errors, 0 timeouts\n"},
		"without a throughput": {v1alpha1.Headline{RunSummary: true, Committed: 7, MeanLatencyMicroseconds: 10},
			"  throughput    not known\n  latency       mean 0.01 ms, p50 not known, p99 not known\n  transactions  7 committed, 0 attempts aborted, 0 errors, 0 timeouts\n"},
		"of requests": {v1alpha1.Headline{Committed: 7, ThroughputMilli: 700},
			"  throughput    0.7 tx/s\n  latency       mean 0.00 ms, p50 0.00 ms, p99 0.00 ms\n  transactions  7 committed, 0 attempts aborted, 0 errors, 0 timeouts\n"},
	} {
		var out strings.Builder
		if writeHeadline(&out, &tc.h); out.String() != tc.want {
			t.Errorf("%s: it shows\n%swant\n%s", name, out.String(), tc.want)
		}
	}
}

// A try of a script shows the rows of the script. The output has no 0 for a value that a row lacks.
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
