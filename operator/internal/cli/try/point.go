package try

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/suggest"
)

// parsePoint reads AXIS=VALUE pairs, several in one text with commas between them.
func parsePoint(texts []string) (map[string]string, error) {
	point := map[string]string{}
	for _, text := range texts {
		for _, pair := range strings.Split(text, ",") {
			axis, value, found := strings.Cut(strings.TrimSpace(pair), "=")
			if !found || axis == "" || value == "" {
				return nil, fmt.Errorf("--point %s is not AXIS=VALUE, such as clients=10,variant=ideal", text)
			}
			if _, twice := point[axis]; twice {
				return nil, fmt.Errorf("--point %s: axis %s has two values", text, axis)
			}
			point[axis] = value
		}
	}
	return point, nil
}

// every stands for all values of an axis.
const every = -1

// choose returns the index of the chosen value of each axis. An axis with one value needs no name
// in point. Nor does an axis that tells the rows of a script apart: one trial gives every row.
func choose(axes []results.Axis, ofRows []string, point map[string]string) ([]int, error) {
	names := make([]string, len(axes))
	chosen := make([]int, len(axes))
	var open []string
	for i, axis := range axes {
		names[i] = axis.Name
		value, named := point[axis.Name]
		switch at := slices.Index(axis.Values, value); {
		case named && at >= 0:
			chosen[i] = at
		case named:
			return nil, fmt.Errorf("--point: axis %s has no value %s; it has %s%s", axis.Name, value, strings.Join(axis.Values, ", "), didYouMean(value, axis.Values))
		case slices.Contains(ofRows, axis.Name):
			chosen[i] = every
		case len(axis.Values) > 1:
			open = append(open, fmt.Sprintf("%s (%s)", axis.Name, strings.Join(axis.Values, ", ")))
		}
	}
	for name := range point {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--point: there is no axis %s; there is %s%s", name, orNone(names), didYouMean(name, names))
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("--point: say which value of %s", strings.Join(open, " and of "))
	}
	return chosen, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none: the experiment has one point"
	}
	return strings.Join(names, ", ")
}

func didYouMean(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// mostPriority is the highest priority of an experiment.
const mostPriority = 1000

// onePoint returns the spec that runs one point of a plan once. It has the plan's profile applied.
// It has no claims, since one trial proves none.
func onePoint(p *plan.Plan, chosen []int) v1alpha1.ExperimentSpec {
	spec := *p.Spec.DeepCopy()
	spec.Profile, spec.Profiles, spec.Claims = "", nil, nil
	if len(spec.Systems) > 1 { // the systems are then the first axis
		spec.Systems = spec.Systems[chosen[0] : chosen[0]+1]
		spec.Reported = nil // a series may be about one of the systems
		chosen = chosen[1:]
	}
	for i := range spec.Sweep {
		axis, at := &spec.Sweep[i], chosen[i]
		switch {
		case at == every:
		case axis.Search != nil:
			load := p.Axes[len(p.Axes)-len(spec.Sweep)+i].Values[at]
			axis.Search, axis.Values = nil, []v1alpha1.Value{v1alpha1.NewValue(load)}
		case len(axis.Values) > 0:
			axis.Values = axis.Values[at : at+1]
		default:
			axis.Points = axis.Points[at : at+1]
		}
	}
	spec.Repetitions = v1alpha1.Repetitions{Min: 1}
	spec.Retries = new(int32)
	spec.Disturbances.RetryFor = "0s" // a disturbance causes no second trial
	spec.Suspend, spec.Recurrence = false, nil
	// A person waits for this trial, so it goes before the trials of the tried experiment.
	spec.Priority = min(spec.Priority+1, mostPriority)
	return spec
}
