package results_test

import (
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/results"
)

func wholeClient(index int32, committed int64, throughput float64, mean, p99 *float64) results.Client {
	return results.Client{Index: index, Clients: 1, MeasureNanos: 1e9, NothingSent: true, Timeline: results.NewTimeline(0, 0),
		Counters: results.Counters{Committed: committed}, RunSummary: &results.RunSummary{Throughput: throughput, MeanMillis: mean, P99Millis: p99, MaxMillis: p99}}
}

func TestSummariesOfWholeRunsAreMergedAsFarAsTheyCan(t *testing.T) {
	one, two, three, nine := 1.0, 2.0, 3.0, 9.0
	for name, tc := range map[string]struct {
		clients          []results.Client
		throughput       float64
		mean, p99, worst float64
	}{
		"one client":                       {[]results.Client{wholeClient(0, 100, 10, &two, &nine)}, 10, 2, 9, 9},
		"two clients":                      {[]results.Client{wholeClient(0, 100, 10, &one, &nine), wholeClient(1, 300, 30, &three, &two)}, 40, 2.5, 0, 9},
		"one does not know its mean":       {[]results.Client{wholeClient(0, 100, 10, &one, nil), wholeClient(1, 300, 30, nil, &two)}, 40, 0, 0, 0},
		"one committed nothing, no mean":   {[]results.Client{wholeClient(0, 100, 10, &one, &nine), wholeClient(1, 0, 0, nil, &two)}, 10, 1, 0, 9},
		"one client that knows no latency": {[]results.Client{wholeClient(0, 100, 10, nil, nil)}, 10, 0, 0, 0},
	} {
		m, err := results.Merge(tc.clients)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := m.Summary
		if !s.RunSummary || s.Throughput != tc.throughput || s.MeanMillis != tc.mean || s.P99Millis != tc.p99 || s.MaxMillis != tc.worst {
			t.Errorf("%s: %+v; want throughput %g, mean %g, p99 %g, longest %g", name, s, tc.throughput, tc.mean, tc.p99, tc.worst)
		}
	}
}

func TestAWholeRunAndAWindowAreNotMerged(t *testing.T) {
	of := results.Client{Index: 1, Clients: 1, MeasureNanos: 1e9, Timeline: results.NewTimeline(0, 0)}
	if _, err := results.Merge([]results.Client{wholeClient(0, 1, 1, nil, nil), of}); err == nil || !strings.Contains(err.Error(), "of its whole run") {
		t.Errorf("merged: %v", err)
	}
	negative, both := wholeClient(0, 1, -1, nil, nil), wholeClient(0, 1, 1, nil, nil)
	both.Latency = "HISTF"
	noNumber, endless := wholeClient(0, 1, 1, nil, nil), wholeClient(0, 1, 1, nil, nil)
	noNumber.RunSummary.SetNumber("x", math.NaN())
	endless.RunSummary.SetNumber("x", math.Inf(1))
	for name, tc := range map[string]struct {
		client results.Client
		want   string
	}{
		"negative":        {negative, "must be 0 or more"},
		"and a histogram": {both, "either a summary of the whole run"},
		"no number":       {noNumber, "which is no number"},
		"without end":     {endless, "which is no number"},
	} {
		if _, err := results.EncodeClient(tc.client); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
