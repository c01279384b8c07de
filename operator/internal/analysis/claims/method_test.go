package claims

import (
	"testing"

	"assay.dev/assay/operator/internal/results"
)

// An older method does not explain another verdict of a plain mean. Then someone changed the
// verdict.
func TestByOlderMethod(t *testing.T) {
	for name, tc := range map[string]struct {
		method        int
		expr, message string
		want          bool
	}{
		"a plain comparison":   {0, "throughput(x=1) > throughput(x=2)", "", false},
		"a trend":              {0, "increasing(of='throughput', along='x')", "", true},
		"a percentile":         {0, "p99_latency(x=1) < 5ms", "", true},
		"the best of several":  {0, "max_throughput() > 5", "", true},
		"by first attempts":    {0, "throughput(x=1) > throughput(x=2)", unlikeExclusions + ": ...", true},
		"by today's method":    {Method, "max_throughput() > 5", "", false},
		"a rate":               {1, "error_rate(x=1) < 0.1", "", true},
		"a trend of method 1":  {1, "increasing(of='throughput', along='x')", "", false},
		"a search of method 2": {2, "capacity(variant='a') > 5", "", true},
		"adjusted P":           {3, "throughput(x=1) / throughput(x=2) > 2", "contradicted with P 0.02, which may be chance: ...", true},
		"attempts of method 3": {3, "throughput(x=1) > throughput(x=2)", unlikeExclusions + ": ...", true},
		"a rate of method 3":   {3, "error_rate(x=1) < 0.1", "", true},
		"a shape of method 3":  {3, "shape(series='x') < 1", "", true},
		"a search of method 3": {3, "capacity() > 5", "", false},
		"alternatives":         {2, "throughput(x=1) > 5 || throughput(x=2) > 5", "", true},
		"an axis of that name": {0, "throughput(dips=1) > 5", "", false},
	} {
		if got := ByOlderMethod(tc.method, results.ClaimResult{Expr: tc.expr, Message: tc.message}); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
