package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantile(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for q, want := range map[float64]float64{0.01: 1, 0.5: 5, 0.9: 9, 0.99: 10, 1: 10} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

// Targets belong together by trial, fault and planned instant; other kinds of actions are left out.
func TestSpreads(t *testing.T) {
	of := func(trial, kind string, planned, confirmed float64) record {
		return record{trial: trial, Fault: "f", Kind: kind, PlannedMillis: planned, StartedMillis: planned, ConfirmedMillis: planned + confirmed}
	}
	shots := shotsOf([]record{
		of("a", "Kill", 1000, 3), of("a", "Kill", 1000, 1), of("a", "Kill", 2000, 8), of("a", "Kill", 2000, 7), of("b", "Kill", 1000, 20),
		of("b", "Kill", 1000, 15), of("a", "Revive", 1000, 99),
	}, "Kill")
	if diff := cmp.Diff([]float64{1, 2, 5}, spreads(shots, confirmed)); diff != "" {
		t.Errorf("spreads (-want +got):\n%s", diff)
	}
}
