package document_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// Flame graphs are named with pod, time, tool and samples, and linked in a bundle. Their trials are
// in no other table.
func TestReportsLinkFlameGraphs(t *testing.T) {
	e := results.Experiment{
		Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2"}}},
		Trials:       []results.TrialLine{{Name: "e-0", Outcome: "Succeeded", Coordinates: map[string]string{"clients": "1"}}},
		NotMeasuring: []results.TrialLine{{Name: "e-1", Number: 1, Outcome: "Invalid", Reason: "NotMeasuring"}},
	}
	sample := results.FaultRecord{ID: "cpu/1/sample/e-1-s0-0", Fault: "cpu", Time: 1, Pod: "e-1-s0-0", Kind: "Sample", Profiler: "Pprof", PlannedMillis: 1000, StartedMillis: 1002, ConfirmedMillis: 6100, SampledMillis: 5000, Samples: 321}
	refused, skipped, kill := sample, sample, sample
	refused.Pod, refused.Error, refused.Samples, refused.Profiler = "e-1-s0-1", "Perf: it exited with 255", 0, "Perf"
	skipped.Skipped, kill.Kind = true, "Kill"
	var d model.Details
	d.Add(results.Trial{Name: "e-1", Outcome: "Invalid", NotMeasuring: true, Coordinates: map[string]string{"clients": "2"}, Faults: []results.FaultRecord{refused, sample, skipped, kill}})
	d.AddFiles("e-1", "e-1-s0-0", "trials/e-1/pods", map[string]int64{"out/flamegraphs/cpu-1.svg": 9, "out/flamegraphs/cpu-1.folded": 9})
	d.Into(&e)
	want := []results.FlameGraph{
		{Trial: "e-1", Coordinates: map[string]string{"clients": "2"}, Fault: "cpu", Time: 1, Pod: "e-1-s0-1", Tool: "Perf", FromMillis: 1000, ToMillis: 6000, Error: "Perf: it exited with 255"},
		{Trial: "e-1", Coordinates: map[string]string{"clients": "2"}, Fault: "cpu", Time: 1, Pod: "e-1-s0-0", Tool: "Pprof", FromMillis: 1002, ToMillis: 6002, Samples: 321, File: "out/flamegraphs/cpu-1.svg", In: "trials/e-1/pods"},
	}
	if diff := cmp.Diff(want, e.FlameGraphs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const file = "trials/e-1/pods/e-1-s0-0/out/flamegraphs/cpu-1.svg"
	for name, want := range map[string][]string{
		"text":     {"Flame graphs", "never counts", "none: Perf: it exited with 255"},
		"markdown": {"## Flame graphs", "| clients=2 | e-1-s0-0 | Pprof | 1.002 | 6.002 | 321 | " + file + " |"},
		"html":     {">Flame graphs</h2>", `<a href="` + file + `">`},
	} {
		text := shown(t, name, e)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the report as %s does not say %q:\n%s", name, w, text)
			}
		}
	}
	if text := shown(t, "markdown", e); strings.Contains(text, "## Excluded trials") {
		t.Errorf("a trial that was not made to count is an excluded one:\n%s", text)
	}
	e.FlameGraphs[1].In = "ConfigMap e-1-results-files"
	if text := shown(t, "html", e); strings.Contains(text, "<a href=\"out") || !strings.Contains(text, "kubectl assay logs e-1 --files DIRECTORY") {
		t.Errorf("a file of a cluster is linked, or not named:\n%s", text)
	}
}
