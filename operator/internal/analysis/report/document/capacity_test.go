package document

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

func TestCapacityTable(t *testing.T) {
	load := func(x float64) *float64 { return &x }
	e := results.Experiment{
		Name: "e", Axes: []results.Axis{{Name: "variant", Values: []string{"a", "b", "c", "d", "e"}}, {Name: "rate", Values: []string{"200", "300", "400"}, Searched: true}},
		Capacities: []results.Capacity{
			{Axis: "rate", At: map[string]string{"variant": "a"}, From: 100, To: 900, Objective: "p99 latency at most 20ms", Outcome: string(v1alpha1.CapacityFound), Trials: 9,
				Capacity: load(312.34), Low: load(304.1), High: load(320.9)},
			{Axis: "rate", At: map[string]string{"variant": "b"}, From: 100, To: 900, Outcome: string(v1alpha1.CapacityAboveHighest), Trials: 4, Low: load(880)},
			{Axis: "rate", At: map[string]string{"variant": "c"}, From: 100, To: 900, Outcome: string(v1alpha1.CapacityBelowLowest), Trials: 4, High: load(101)},
			{Axis: "rate", At: map[string]string{"variant": "d"}, From: 100, To: 900, Outcome: string(v1alpha1.CapacitySearching), Trials: 1, Capacity: load(500), Low: load(290)},
			{Axis: "rate", At: map[string]string{"variant": "e"}, From: 100, To: 900, Outcome: string(v1alpha1.CapacityNotJudged), Trials: 1, Message: "trial 3 cannot be judged"},
		},
	}
	want := [][]string{
		{"a", "312.3 [304.1, 320.9]", "p99 latency at most 20ms", "100 to 900", "9", "Found"},
		{"b", "more than 900", "", "100 to 900", "4", "AboveHighest"},
		{"c", "less than 100", "", "100 to 900", "4", "BelowLowest"},
		{"d", "500 [290, ...]", "", "100 to 900", "1", "Searching"},
		{"e", "-", "", "100 to 900", "1", "NotJudged: trial 3 cannot be judged"},
	}
	got := capacityTable(e)
	for i, row := range want {
		if i >= len(got.Rows) || strings.Join(got.Rows[i], "|") != strings.Join(row, "|") {
			t.Errorf("row %d: %q, want %q", i, got.Rows, row)
		}
	}
	if rows := capacityTable(results.Experiment{Axes: e.Axes}).Rows; rows != nil {
		t.Errorf("without a search there are %d rows", len(rows))
	}
}
