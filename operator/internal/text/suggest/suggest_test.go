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

// Each letter that is missing, wrong or too many counts as wrong, also at either end. At most a
// third of the name's letters may be wrong, and at most three.
func TestHowNearANameMayBe(t *testing.T) {
	for _, tc := range []struct{ name, known, want string }{
		{"bandwidth", "andwidth", "andwidth"}, {"xandwidth", "bandwidth", "bandwidth"}, {"bandwidt", "bandwidth", "bandwidth"}, {"bandwidths", "bandwidth", "bandwidth"},
		{"xxndwidth", "bandwidth", "bandwidth"}, {"bandwixxx", "bandwidth", "bandwidth"}, {"xxxdwidth", "bandwidth", "bandwidth"},
		{"xxxxwidth", "bandwidth", ""}, {"bandwxxxx", "bandwidth", ""}, {"xxxxwidth_of_links", "bandwidth_of_links", ""},
		{"fx", "f", ""}, {"fox", "f", ""}, {"fox", "fo", "fo"}, {"fox", "fxo", ""}, {"abc", "abcd", "abcd"}, {"abc", "xabcd", ""}, {"abcdef", "badcef", ""}, {"abcdef", "bacdef", "bacdef"},
	} {
		if got := suggest.Nearest(tc.name, []string{tc.known}); got != tc.want {
			t.Errorf("Nearest(%q) of %q = %q, want %q", tc.name, tc.known, got, tc.want)
		}
	}
	if got := suggest.Nearest("p9_latency", []string{"p90_latency", "p95_latency", "p99_latency"}); got != "p90_latency" {
		t.Errorf("of several that are as near, %q is suggested, want the first", got)
	}
}

func TestUnknown(t *testing.T) {
	known := []string{"throughput", "latency"}
	for _, tc := range []struct {
		name  string
		known []string
		want  string
	}{
		{"latncy", known, `metric "latncy"; did you mean "latency"?; there are: latency, throughput`},
		{"goodput", known, `metric "goodput"; there are: latency, throughput`},
		{"latency", nil, `metric "latency"; there are none`},
	} {
		if got := suggest.Unknown("metric", tc.name, tc.known); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	if known[0] != "throughput" {
		t.Errorf("the caller's names are %q now", known)
	}
}
