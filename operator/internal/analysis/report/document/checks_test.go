package document_test

import (
	"bytes"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
)

// The verdicts of the System's checks are shown for every trial, also for excluded ones.
func TestReportsSayWhatChecksSay(t *testing.T) {
	e := results.Experiment{
		Name: "e", Axes: []results.Axis{{Name: "clients"}},
		Trials: []results.TrialLine{
			{Name: "e-0", Outcome: "Succeeded", Coordinates: map[string]string{"clients": "1"}, Checks: []results.Check{{Name: "linear", Verdict: "Holds"}}},
			{Name: "e-1", Outcome: "Succeeded", Coordinates: map[string]string{"clients": "1"}, Checks: []results.Check{{Name: "linear", Verdict: "Violated", Message: "In e-1-c-0. It printed: key 7"}}},
			{Name: "e-2", Outcome: "Invalid", PointIndex: 1, Coordinates: map[string]string{"clients": "2"}, Checks: []results.Check{{Name: "linear", Verdict: "Unknown", Message: "In e-2-c-0 it has not ended."}}},
		},
	}
	for name, want := range map[string][]string{
		"text":     {"Safety: Violated in 1 trial of 3.", "linear  clients=1       2      1         1        0", "linear  clients=2       1      0         0        1", "e-1    clients=1  Succeeded  linear  Violated  In e-1-c-0. It printed: key 7"},
		"markdown": {"## Safety", "| linear | clients=1 | 2 | 1 | 1 | 0 |", "## Checks that did not hold", "| e-2 | clients=2 | Invalid | linear | Unknown | In e-2-c-0 it has not ended. |"},
		"html":     {">Safety</h2>", "Violated", "It printed: key 7"},
	} {
		var b bytes.Buffer
		if name == "text" {
			if err := format.Text(&b, e, format.TextOptions{Width: 160}); err != nil {
				t.Fatal(err)
			}
		} else if err := format.Forms[name].Write(&b, e); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("the report as %s does not say %q:\n%s", name, w, b.String())
			}
		}
	}
}
