package document_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// onTwoSets are four repetitions of two points on the sets fast and slow, which is a fifth slower.
func onTwoSets() results.Experiment {
	done := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	e := results.Experiment{Name: "e", Completed: &done, Planned: 8, Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2"}}}}
	for k := range 4 {
		for p, clients := range e.Axes[0].Values {
			x := float64(1+p) * (1 + 0.002*float64(k)) * []float64{1, 0.8}[k%2]
			e.Trials = append(e.Trials, results.TrialLine{Name: "e-" + string(rune('0'+2*k+p)), Number: int32(2*k + p), PointIndex: int32(p), Coordinates: map[string]string{"clients": clients},
				Repetition: int32(k), NodeSet: []string{"fast", "slow"}[k%2], Outcome: stats.Succeeded, Committed: 1000, Throughput: 100 * x, MeanMillis: 10, P99Millis: 30})
		}
	}
	e.Points = stats.Points(e.Trials)
	return e
}

// A report says on which set of nodes each trial ran, how much the sets differ, and where a point
// lacks one.
func TestSetsOfNodesAreReported(t *testing.T) {
	page := func(e results.Experiment) string {
		var b bytes.Buffer
		if err := format.Markdown(&b, e); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	e := onTwoSets()
	got := page(e)
	for _, want := range []string{"on 2 sets of nodes", "4 on fast, 4 on slow", "| nodes |", "throughput tx/s was, by the mean of each point, +11.0% on fast, -11.0% on slow."} {
		if !strings.Contains(got, want) {
			t.Errorf("the report does not say %q:\n%s", want, got)
		}
	}
	const lacks = "has other shares of the sets"
	if strings.Contains(got, lacks) {
		t.Errorf("points that are alike are said to differ:\n%s", got)
	}
	e.Trials = slices.DeleteFunc(e.Trials, func(l results.TrialLine) bool { return l.PointIndex == 1 && l.NodeSet == "slow" })
	e.Points = stats.Points(e.Trials)
	if got := page(e); !strings.Contains(got, lacks) {
		t.Errorf("a point lacks a set, and the report does not say it:\n%s", got)
	}
	for i := range e.Trials {
		e.Trials[i].NodeSet = ""
	}
	if got := page(e); strings.Contains(got, "nodes |") || strings.Contains(got, "sets of nodes") {
		t.Errorf("there are no sets, and the report has them:\n%s", got)
	}
}
