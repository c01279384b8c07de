package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/suggest"
)

// checkFigures checks that figures are about measurements that there are.
func (e *expansion) checkFigures() {
	for i, f := range e.spec.Figures {
		path := field.NewPath("spec", "figures").Index(i)
		if f.Stack != nil {
			e.checkStack(path.Child("stack", "parts"), f.Stack.Parts)
		}
	}
}

func (e *expansion) checkStack(path *field.Path, parts []string) {
	names := measurementNames(e.spec)
	unit := func(name string) string { return e.spec.Measurements[slices.Index(names, name)].Unit }
	for k, part := range parts {
		switch {
		case !slices.Contains(names, part):
			e.add(field.Invalid(path.Index(k), part, suggest.Unknown("there is no measurement", part, names)))
		case slices.Contains(names, parts[0]) && unit(part) != unit(parts[0]):
			e.add(field.Invalid(path.Index(k), part, fmt.Sprintf("parts of a stack have one unit: %s is in %q, %s in %q", part, unit(part), parts[0], unit(parts[0]))))
		}
	}
}

// checkMeasured checks that a series of a measurement is about one, and in its unit: units of
// measurements are free text, and cannot be converted.
func (e *expansion) checkMeasured(path *field.Path, r v1alpha1.ReportedSeries) {
	names := measurementNames(e.spec)
	i := slices.Index(names, r.Measurement)
	switch {
	case r.Measurement == "":
	case i < 0:
		e.add(field.Invalid(path.Child("measurement"), r.Measurement, suggest.Unknown("there is no measurement", r.Measurement, names)))
	case e.spec.Measurements[i].Unit != r.Unit:
		e.add(field.Invalid(path.Child("unit"), r.Unit, fmt.Sprintf("must be that of the measurement %s, %q", r.Measurement, e.spec.Measurements[i].Unit)))
	}
}
