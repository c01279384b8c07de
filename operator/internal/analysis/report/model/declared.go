package model

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/measured"
	"assay.dev/assay/operator/internal/results"
)

// FiguresOf are the figures that a spec declares, with its profile applied.
func FiguresOf(spec v1alpha1.ExperimentSpec) (figures []results.Figure) {
	for _, f := range spec.Figures {
		out := results.Figure{Name: f.Name, Title: f.Title}
		if f.Stack != nil {
			out.Stack = &results.Stack{Parts: f.Stack.Parts}
		}
		if f.SpeedUp != nil {
			out.SpeedUp = &results.SpeedUp{Of: f.SpeedUp.Of, Over: map[string]string{}}
			for axis, value := range f.SpeedUp.Over {
				out.SpeedUp.Over[axis] = value.String()
			}
		}
		if f.Percentiles != nil {
			for _, p := range f.Percentiles.Of {
				out.Percentiles = append(out.Percentiles, string(p))
			}
		}
		figures = append(figures, out)
	}
	return figures
}

// MeasurementColumn is the column of a measurement in results.
func MeasurementColumn(m v1alpha1.Measurement) results.MeasurementColumn {
	return measured.Column(m)
}
