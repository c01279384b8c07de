package model

import (
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Redeclare gives results the figures of another spec, with its profile applied: figures change no
// trial, and so may be declared when all trials are over. Measurements that the figures stack are
// taken over with them. They are those of counters that these results lack, from drivers, the
// counters of each trial's clients, and the paper's series of measurements.
func Redeclare(e *results.Experiment, spec v1alpha1.ExperimentSpec, drivers map[string]map[string]float64) {
	e.Figures = FiguresOf(spec)
	e.Measurements, e.Trials = slices.Clone(e.Measurements), slices.Clone(e.Trials)
	for _, m := range spec.Measurements {
		if m.Counter == "" || slices.ContainsFunc(e.Measurements, func(has results.MeasurementColumn) bool { return has.Name == m.Name }) {
			continue
		}
		e.Measurements = append(e.Measurements, MeasurementColumn(m))
		samples := map[int32][]float64{}
		for i, l := range e.Trials {
			counted := results.Counted(m.Name, m.Counter, m.Per, drivers[l.Name])
			e.Trials[i].Measurements = append(slices.Clone(l.Measurements), counted)
			if counted.Value != nil && l.Outcome == stats.Succeeded {
				samples[l.PointIndex] = append(samples[l.PointIndex], *counted.Value)
			}
		}
		for _, p := range e.Points {
			if xs := samples[p.Index]; len(xs) > 0 {
				p.Metrics[m.Name] = stats.Aggregate(xs)
			}
		}
	}
	of := slices.DeleteFunc(slices.Clone(spec.Reported), func(s v1alpha1.ReportedSeries) bool {
		return s.Metric != measurementSeries || slices.ContainsFunc(e.Reported, func(has results.ReportedSeries) bool { return has.Name == s.Name })
	})
	series, leftOut := reported(of)
	e.Reported, e.LeftOut = slices.Concat(e.Reported, series), slices.Concat(e.LeftOut, leftOut)
}
