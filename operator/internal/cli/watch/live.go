package watch

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Phase names the phase of a trial that is not over and, where known, its progress in that phase.
func Phase(t *v1alpha1.Trial, now time.Time) (phase, detail string) { return phaseOf(t, now) }

// Point returns the coordinates of a trial's point, in the order of the axes' names.
func Point(t *v1alpha1.Trial) string { return point(t) }
