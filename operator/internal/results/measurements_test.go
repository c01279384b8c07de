package results_test

import (
	"testing"

	"assay.dev/assay/operator/internal/results"
)

func TestCounted(t *testing.T) {
	driver := map[string]float64{"micros": 900, "operations": 300, "none": 0}
	for name, tc := range map[string]struct {
		counter, per string
		want         float64
		reason       string
	}{
		"a count":             {"micros", "", 900, ""},
		"a count of 0":        {"none", "", 0, ""},
		"a quotient":          {"micros", "operations", 3, ""},
		"an unknown counter":  {"milis", "", 0, "no client reports the counter milis"},
		"per unknown counter": {"micros", "ops", 0, "no client reports the counter ops"},
		"per nothing":         {"micros", "none", 0, "the counter none is 0"},
	} {
		m := results.Counted("m", tc.counter, tc.per, driver)
		if m.Name != "m" || m.Reason != tc.reason || (m.Value == nil) != (tc.reason != "") || m.Value != nil && *m.Value != tc.want {
			t.Errorf("%s: %v %q, want %v %q", name, m.Value, m.Reason, tc.want, tc.reason)
		}
	}
}
