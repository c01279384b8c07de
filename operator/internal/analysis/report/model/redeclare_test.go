package model_test

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// Figures that are declared afterwards may be about the pods' use of resources, or about counters.
// A trial whose results were not read has a reason instead. A trial that does not count is in no
// mean.
func TestFiguresDeclaredLaterReadUses(t *testing.T) {
	spec := v1alpha1.ExperimentSpec{Measurements: []v1alpha1.Measurement{
		{Name: "written", Use: &v1alpha1.MeasuredUse{Resource: results.UseDiskWritten, Part: "replica", Over: "Mean"}, Unit: "MB/s"},
		{Name: "fast", Counter: "fastPath"}, {Name: "asked", Query: "up", Over: "Last"}, {Name: "known", Counter: "fastPath"},
	}}
	trial := func(name string, written float64) *results.Trial {
		return &results.Trial{Name: name, MeasureNanos: 1e9, Driver: map[string]int64{"fastPath": int64(written / 1e6)},
			Use: []results.PartUse{{Part: "replica", OverTime: []results.ResourceOverTime{{Resource: results.UseDiskWritten, Mean: written}}}}}
	}
	read := map[string][]results.Measurement{}
	for name, written := range map[string]float64{"e-0": 2e6, "e-1": 4e6, "e-2": 99e6} {
		read[name] = model.ReadOff(spec, trial(name, written))
	}
	e := results.Experiment{
		Measurements: []results.MeasurementColumn{{Name: "known", Counter: "fastPath"}}, Points: []results.PointResult{{Metrics: map[string]results.Aggregate{}}},
		Trials: []results.TrialLine{{Name: "e-0", Outcome: "Succeeded"}, {Name: "e-1", Outcome: "Succeeded"}, {Name: "e-2", Outcome: "Invalid"}, {Name: "e-3", Outcome: "Succeeded"}},
	}
	model.Redeclare(&e, spec, read)
	if n := len(e.Measurements); n != 3 || e.Measurements[1].Name != "written" || e.Measurements[1].Unit != "MB/s" || e.Measurements[2].Name != "fast" {
		t.Fatalf("the columns are %+v", e.Measurements)
	}
	for name, mean := range map[string]float64{"written": 3, "fast": 3} {
		if a := e.Points[0].Metrics[name]; a.N != 2 || a.Mean != mean {
			t.Errorf("%s is %+v, want the mean of 2 and 4", name, a)
		}
	}
	if m := e.Trials[3].Measurements; len(m) != 2 || m[0].Value != nil || m[0].Reason == "" {
		t.Errorf("a trial whose results were not read measured %+v", m)
	}
}
