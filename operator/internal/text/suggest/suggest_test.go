package suggest_test

import (
	"testing"

	"assay.dev/assay/operator/internal/text/suggest"
)

func TestNearest(t *testing.T) {
	known := []string{"mean_latency", "p50_latency", "p99_latency", "throughput"}
	for name, want := range map[string]string{
		"mean_latncy":  "mean_latency",
		"p9_latency":   "p99_latency",
		"Throughput":   "throughput",
		"throughputs":  "throughput",
		"goodput":      "",
		"x":            "",
		"":             "",
		"mean_latency": "mean_latency",
	} {
		if got := suggest.Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
