package model

import (
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Redeclare gives results the figures of another spec, with its profile applied: figures change no
// trial, and so may be declared when all trials are over. Redeclare also takes over measurements
// that the figures stack, if these results lack them. They are of counters and of resources. The
// argument read has them by the trial's name, as ReadOff returns them. It also takes over the
// paper's series of measurements.
func Redeclare(e *results.Experiment, spec v1alpha1.ExperimentSpec, read map[string][]results.Measurement) {
	e.Figures = FiguresOf(spec)
	e.Measurements, e.Trials = slices.Clone(e.Measurements), slices.Clone(e.Trials)
	for _, m := range spec.Measurements {
		if m.Query != "" || slices.ContainsFunc(e.Measurements, func(has results.MeasurementColumn) bool { return has.Name == m.Name }) {
			continue
		}
		e.Measurements = append(e.Measurements, MeasurementColumn(m))
		samples := map[int32][]float64{}
		for i, l := range e.Trials {
			number := results.Measurement{Name: m.Name, Reason: "the trial's own results were not read"}
			if k := slices.IndexFunc(read[l.Name], func(r results.Measurement) bool { return r.Name == m.Name }); k >= 0 {
				number = read[l.Name][k]
			}
			e.Trials[i].Measurements = append(slices.Clone(l.Measurements), number)
			if number.Value != nil && l.Outcome == stats.Succeeded {
				samples[l.PointIndex] = append(samples[l.PointIndex], *number.Value)
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

// ReadOff returns the measurements of a spec that a trial's own results give: those of counters and
// of resources.
func ReadOff(spec v1alpha1.ExperimentSpec, t *results.Trial) (read []results.Measurement) {
	for _, m := range spec.Measurements {
		if number, of := MeasurementColumn(m).Read(t); of {
			read = append(read, number)
		}
	}
	return read
}
