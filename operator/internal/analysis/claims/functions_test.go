package claims_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results/stats"
)

func TestFunctionsOf(t *testing.T) {
	for expr, want := range map[string]map[string][]string{
		"p50_latency() < 5ms": {"": {"p50_latency"}},
		"throughput(system='a', clients=1) > 2 * throughput(system='b', clients=1) && abort_rate() < 0.1": {"a": {"throughput"}, "b": {"throughput"}, "": {"abort_rate"}},
		"increasing(of='p99_latency', along='clients')":                                                   {"": {"p99_latency"}},
		"p50_latency(": nil,
	} {
		if diff := cmp.Diff(want, claims.FunctionsOf(expr)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expr, diff)
		}
	}
}

func TestPointMetric(t *testing.T) {
	for name, want := range map[string]string{
		"p50_latency": stats.P50Latency, "throughput": stats.Throughput,
		"max_throughput": "", "time_to_detect": "", "measurement": "", "ratio": "", "capacity": "", "unknown": "",
	} {
		if got := claims.PointMetric(name); got != want {
			t.Errorf("%s reads %q at one point, want %q", name, got, want)
		}
	}
}
