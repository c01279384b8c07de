package results_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// A counter that a client leaves out of its report is unknown, and not 0. It is then unknown for
// the whole trial.
func TestCountersThatAreLeftOut(t *testing.T) {
	const report = `{"format": "assay.dev/client-result/v1", "clients": 1, "index": INDEX, "measureNanos": 1000000000, "counters": {COUNTERS}, "timeline": {}, "unreported": UNREPORTED}`
	client := func(index, counters, unreported string) (results.Client, error) {
		return results.DecodeClient([]byte(strings.NewReplacer("INDEX", index, "COUNTERS", counters, "UNREPORTED", unreported).Replace(report)))
	}
	const rest = `"offered": 0, "committed": 0, "givenUp": 0, "retries": 0, "lateSends": 0, "unsent": 0`
	all, err := client("0", rest+`, "aborted": 0, "errors": 0, "timeouts": 0`, "null")
	if err != nil || len(all.Unreported) > 0 {
		t.Fatalf("a report with all counters: unreported %v, %v", all.Unreported, err)
	}
	some, err := client("1", rest+`, "errors": 0, "timeouts": 0`, `["timeouts"]`)
	if err != nil || !slices.Equal(some.Unreported, []string{"aborted", "timeouts"}) {
		t.Fatalf("a report without aborts that names timeouts: unreported %v, %v", some.Unreported, err)
	}
	b, err := results.EncodeClient(some)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := results.DecodeClient(b); err != nil || !slices.Equal(back.Unreported, some.Unreported) {
		t.Errorf("written and read: unreported %v, %v", back.Unreported, err)
	}
	m, err := results.Merge([]results.Client{all, some})
	if err != nil || !slices.Equal(m.Summary.Unreported, some.Unreported) {
		t.Errorf("merged: unreported %v, %v", m.Summary.Unreported, err)
	}
	if m.MeasureNanos != int64(time.Second) {
		t.Errorf("a window of %d ns", m.MeasureNanos)
	}
	for counters, unreported := range map[string]string{rest: `["tried"]`, rest + `, "aborted": 3`: `["aborted"]`} {
		if c, err := client("0", counters, unreported); err == nil {
			t.Errorf("unreported %s with %s: %v, want an error", unreported, counters, c.Unreported)
		}
	}
}
