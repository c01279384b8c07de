package model_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// ownResults makes a trial's own results from the line that the manager makes of its status.
func ownResults(l results.TrialLine) results.Trial {
	t := results.Trial{
		Name: l.Name, Number: l.Number, PointIndex: l.PointIndex, Coordinates: l.Coordinates, Repetition: l.Repetition, Attempt: l.Attempt, Outcome: l.Outcome, Reason: l.Reason, Message: l.Message,
		GapSeconds: l.GapSeconds, CorrectClients: l.CorrectClients, Measurements: l.Measurements, Recovery: l.Recovery,
		Pods: []results.Pod{{Part: "replica"}, {Part: "replica", Resources: &results.Resources{}}, {Part: "client", Resources: &results.Resources{}}},
	}
	t.Summary.Committed, t.Summary.Aborted, t.Summary.Errors, t.Summary.Timeouts = l.Committed, l.Aborted, l.Errors, l.Timeouts
	t.Summary.Throughput, t.Summary.MeanMillis, t.Summary.P50Millis, t.Summary.P90Millis = l.Throughput, l.MeanMillis, l.P50Millis, l.P90Millis
	t.Summary.P99Millis, t.Summary.P999Millis = l.P99Millis, l.P999Millis
	t.Pods[1].Resources.ThrottledShare, t.Pods[2].Resources.Node.StealShare = *l.ThrottledShare, *l.StealShare
	return t
}

// Lines of large experiments do not fit into the results. Once, reports then lacked all about these
// trials, such as faults, recoveries and their table, though their own results were there.
func TestLinesThatDidNotFitAreMadeAgain(t *testing.T) {
	whole := reports.Build()
	for i := range whole.Trials {
		l := &whole.Trials[i]
		throttled, steal := float64(i)/100, 0.25
		l.GapSeconds, l.CorrectClients, l.ThrottledShare, l.StealShare = 1.5, 7, &throttled, &steal
		l.ConfigMap = "" // a trial does not say where it is stored
		l.Recovery = []results.Recovery{{Fault: "crash", Time: 1, Kind: "Kill", Dipped: true, Cautions: []string{"NotRecovered"}}}
	}
	all, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	without := whole
	without.Trials = nil
	least, err := json.Marshal(without)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		limit, unread int
		leftOut       string
	}{
		"none left out":              {len(all) + 100, 0, ""},
		"those of succeeded trials":  {len(all) - 100, 0, ""},
		"all":                        {len(least) + 100, 0, ""},
		"one whose results are gone": {len(least) + 100, 1, "the lines of 1 trial, which did not fit, and whose own results were not read"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := model.Fit(whole, atMost(tc.limit))
			if err != nil {
				t.Fatal(err)
			}
			got, err := results.DecodeExperiment(b)
			if err != nil {
				t.Fatal(err)
			}
			if lacks := tc.limit < len(all); model.LacksLines(got) != lacks || (len(got.Trials) < len(whole.Trials)) != lacks {
				t.Fatalf("%d lines; LacksLines says %t, want %t", len(got.Trials), !lacks, lacks)
			}
			var d model.Details
			for i := len(whole.Trials) - 1; i >= tc.unread; i-- { // in any order
				d.Add(ownResults(whole.Trials[i]))
			}
			d.Into(&got)
			for i := range got.Trials {
				got.Trials[i].Window = nil // of the timeline: see TestWindowsAreCheckedForTransients
			}
			if diff := cmp.Diff(whole.Trials[tc.unread:], got.Trials); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			said := slices.DeleteFunc(got.LeftOut, func(l string) bool { return !strings.Contains(l, "lines") })
			if strings.Join(said, "; ") != tc.leftOut {
				t.Errorf("left out of lines: %q, want %q", said, tc.leftOut)
			}
		})
	}
}
