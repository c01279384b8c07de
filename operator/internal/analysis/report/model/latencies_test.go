package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// Once, a trial whose histogram did not fit into its results was missing from the distributions
// without a note.
func TestTrialsWithoutAHistogramAreNamed(t *testing.T) {
	trial := func(name string, change func(*results.Trial)) results.Trial {
		one := results.NewHistogram()
		one.Record(time.Millisecond)
		text, err := one.Encode()
		if err != nil {
			t.Fatal(err)
		}
		r := results.Trial{Name: name, Outcome: "Succeeded", Latency: text, Summary: results.Summary{Counters: results.Counters{Committed: 1}}}
		change(&r)
		return r
	}
	var d model.Details
	d.Add(trial("t-0", func(*results.Trial) {}))
	d.Add(trial("t-1", func(r *results.Trial) { r.Latency, r.LeftOut = "", []string{"logs", "latency"} }))
	d.Add(trial("t-2", func(r *results.Trial) { r.Latency = "damaged" }))
	d.Add(trial("t-3", func(r *results.Trial) { r.Latency, r.LeftOut, r.Outcome = "", []string{"latency"}, "Invalid" }))
	e := results.Experiment{Name: "e", LeftOut: []string{"something else"}}
	d.Into(&e)
	want := []string{"something else", "the latencies of 2 trials from the distributions, since their histograms are not in their results: t-1 (it did not fit), t-2 (it cannot be read)"}
	if diff := cmp.Diff(want, e.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if len(e.Latencies) != 1 || e.Latencies[0].Trials != 1 {
		t.Errorf("latencies are %+v", e.Latencies)
	}
}
