package plan

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/measured"
	"assay.dev/assay/operator/internal/text/suggest"
)

// checkFigures checks that figures name existing measurements and points. A figure may name a value
// of another profile: with this profile it then has nothing to draw.
func (e *fieldChecker) checkFigures(written *v1alpha1.ExperimentSpec) {
	values := axisValues(written)
	for i, f := range e.spec.Figures {
		path := field.NewPath("spec", "figures").Index(i)
		if f.Stack != nil {
			e.checkStack(path.Child("stack", "parts"), f.Stack.Parts)
		}
		if f.SpeedUp == nil {
			continue
		}
		over := path.Child("speedUp", "over")
		for _, axis := range sortedKeys(f.SpeedUp.Over) {
			value := f.SpeedUp.Over[axis].String()
			known, ok := values[axis]
			switch {
			case !ok:
				e.add(field.Invalid(over.Key(axis), value, suggest.Unknown("the sweep has no axis", axis, slices.Sorted(maps.Keys(values)))))
			case known != nil && !slices.Contains(known, value):
				e.add(field.Invalid(over.Key(axis), value, suggest.Unknown(fmt.Sprintf("axis %s has no value", axis), value, known)))
			}
		}
	}
}

func (e *fieldChecker) checkStack(path *field.Path, parts []string) {
	names := measurementNames(e.spec)
	unit := func(name string) string {
		return measured.Column(e.spec.Measurements[slices.Index(names, name)]).Unit
	}
	for k, part := range parts {
		switch {
		case !slices.Contains(names, part):
			e.add(field.Invalid(path.Index(k), part, suggest.Unknown("there is no measurement", part, names)))
		case slices.Contains(names, parts[0]) && unit(part) != unit(parts[0]):
			e.add(field.Invalid(path.Index(k), part, fmt.Sprintf("parts of a stack have one unit: %s is in %q, %s in %q", part, unit(part), parts[0], unit(parts[0]))))
		}
	}
}

// axisValues returns the values of each axis, also those that profiles replace. Nil: a search finds
// the values.
func axisValues(written *v1alpha1.ExperimentSpec) map[string][]string {
	values := map[string][]string{}
	if len(written.Systems) > 1 {
		for _, s := range written.Systems {
			values[systemAxis] = append(values[systemAxis], s.Name)
		}
	}
	sweeps := [][]v1alpha1.Axis{written.Sweep}
	for _, p := range written.Profiles {
		sweeps = append(sweeps, p.Sweep)
	}
	searched := map[string]bool{}
	for _, a := range slices.Concat(sweeps...) {
		searched[a.Axis] = searched[a.Axis] || a.Search != nil
		for _, v := range a.Values {
			values[a.Axis] = append(values[a.Axis], v.String())
		}
		for _, p := range a.Points {
			values[a.Axis] = append(values[a.Axis], p.Name)
		}
	}
	for axis := range searched {
		if searched[axis] {
			values[axis] = nil
		}
	}
	return values
}

// checkMeasured checks that a series of a measurement names an existing one, and has its unit:
// units of measurements are free text, and cannot be converted.
func (e *fieldChecker) checkMeasured(path *field.Path, r v1alpha1.ReportedSeries) {
	names := measurementNames(e.spec)
	i := slices.Index(names, r.Measurement)
	switch {
	case r.Measurement == "":
	case i < 0:
		e.add(field.Invalid(path.Child("measurement"), r.Measurement, suggest.Unknown("there is no measurement", r.Measurement, names)))
	case measured.Column(e.spec.Measurements[i]).Unit != r.Unit:
		e.add(field.Invalid(path.Child("unit"), r.Unit, fmt.Sprintf("must be that of the measurement %s, %q", r.Measurement, measured.Column(e.spec.Measurements[i]).Unit)))
	}
}
