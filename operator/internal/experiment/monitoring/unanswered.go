package monitoring

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Unanswered returns measurements without numbers, all with one reason.
func Unanswered(measurements []v1alpha1.Measurement, why string) []results.Measurement {
	out := make([]results.Measurement, len(measurements))
	for i, m := range measurements {
		out[i] = results.Measurement{Name: m.Name, Reason: why}
	}
	return out
}
