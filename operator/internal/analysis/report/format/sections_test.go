package format_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// A table of package document is in each format.
func TestFormatsShowEachTable(t *testing.T) {
	x := 312.34
	capacity := results.Experiment{
		Name: "e", Axes: []results.Axis{{Name: "rate", Values: []string{"200", "300", "400"}, Searched: true}},
		Capacities: []results.Capacity{{Axis: "rate", From: 100, To: 900, Outcome: string(v1alpha1.CapacityFound), Trials: 9, Capacity: &x, Low: new(304.1), High: new(320.9)}},
	}
	var script results.Experiment
	var d model.Details
	end, code := 105.0, 1
	d.Add(results.Trial{Name: "e-0", Outcome: "Succeeded", Sessions: []results.Session{
		{Kind: "session", Machine: "node-1", From: "node-0", What: "exec", Command: "pkill -f server.py", BeginMillis: 100, EndMillis: &end, ExitCode: &code},
	}})
	d.Into(&script)
	exp := builders.Experiment("exp").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Measurements = []v1alpha1.Measurement{{Name: "cpu", Query: "sum(cpu)", Over: v1alpha1.OverLast, Unit: "s"}}
	}).Obj()
	axes := []results.Axis{{Name: "variant", Values: []string{"some", "none"}}}
	var lines []results.TrialLine
	for i, m := range []results.Measurement{{Name: "cpu", Value: new(10.0)}, {Name: "cpu", Reason: "nothing was scraped"}, {Name: "cpu", Reason: "nothing was scraped"}} {
		lines = append(lines, results.TrialLine{Name: "t", Number: int32(i), PointIndex: int32(i / 2), Coordinates: map[string]string{"variant": axes[0].Values[i/2]},
			Outcome: "Succeeded", Committed: 1, Throughput: 1, MeanMillis: 1, Measurements: []results.Measurement{m}})
	}
	measured := model.Build(exp, nil, axes, lines, time.Unix(0, 0))
	for name, tc := range map[string]struct {
		e    results.Experiment
		want []string
	}{
		"capacity":     {capacity, []string{"312.3 [304.1, 320.9]", "highest rate"}},
		"script":       {script, []string{"pkill -f server.py", "Script"}},
		"measurements": {measured, []string{"sum(cpu)", "nothing was scraped", "NotMeasured", "10.0 (n=1)"}},
	} {
		for form, write := range map[string]func(io.Writer, results.Experiment) error{
			"text": func(w io.Writer, e results.Experiment) error {
				return format.Text(w, e, format.TextOptions{Width: 120})
			}, "Markdown": format.Markdown, "page": format.HTML,
		} {
			var b bytes.Buffer
			if err := write(&b, tc.e); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%s: the %s lacks %q:\n%s", name, form, want, b.String())
				}
			}
		}
	}
}
