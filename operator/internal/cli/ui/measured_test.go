package ui

import (
	"slices"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// The page shows a trial's further measurements beside throughput and latency, each with its unit.
// It also shows which of them are missing.
func TestTrialsShowTheirMeasurements(t *testing.T) {
	asked := []v1alpha1.Measurement{
		{Name: "written", Use: &v1alpha1.MeasuredUse{Resource: results.UseDiskWritten, Over: "Mean"}}, {Name: "joules", Use: &v1alpha1.MeasuredUse{Resource: results.UseEnergy, Over: "Total"}},
		{Name: "fast", Counter: "fastPath"}, {Name: "asked", Query: "up", Unit: "tx"},
	}
	values := []v1alpha1.MeasuredValue{{Name: "written", Value: "1234567.8"}, {Name: "joules", Reason: "there is no RAPL"}, {Name: "fast", Value: "0.25"}}
	want := []string{"written: 1234568 B/s", "joules: not measured", "fast: 0.250", "asked: not measured"}
	if got := measuredOf(asked, values); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
