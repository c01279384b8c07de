package fault

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/text/suggest"
)

// LeastAfterMark is the least time between a mark and a fault that counts from it. The mark goes
// from the machine that finds it to the manager, and from there to the machines that act: see make
// bench-marks.
const LeastAfterMark = 250 * time.Millisecond

// after returns the mark that a fault counts from, or nil.
func after(f *v1alpha1.Fault) *timeline.After {
	if f.Mark == nil {
		return nil
	}
	groups := map[string]string{}
	for name, v := range f.Mark.Groups {
		groups[name] = v.String()
	}
	return &timeline.After{Mark: f.Mark.Name, Groups: groups, Occurrence: max(1, int(f.Mark.Occurrence))}
}

// sameOrigin reports whether both faults count from the same instant, so that their times can be
// compared.
func sameOrigin(a, b v1alpha1.Fault) bool {
	x, y := after(&a), after(&b)
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return x.String() == y.String()
}

// checkMarkTimes refuses faults that cannot count from their mark. It returns false if it found a
// mistake.
func (e *checker) checkMarkTimes(path *field.Path, f v1alpha1.Fault, k kind, at time.Duration) bool {
	if f.Mark == nil {
		return true
	}
	written := path.Child("at")
	path = path.Child("mark")
	killed, isKill := k.(kill)
	switch {
	case !k.dated():
		e.add(field.Forbidden(path, "clients behave that way during the whole trial"))
	case f.ChaosMesh != nil, isKill && killed.machine():
		e.add(field.Forbidden(path, "Assay's own faults on pods alone can count from a mark: nodeKill, pause, partition, degrade and command"))
	case at < LeastAfterMark:
		e.add(field.Invalid(written, string(f.At), fmt.Sprintf("must be at least %v after a mark, since the other machines must hear of it", LeastAfterMark)))
	default:
		return true
	}
	return false
}

// checkMark checks that the System has the mark that a fault counts from.
func (e *checker) checkMark(path *field.Path, f *v1alpha1.Fault) {
	if f.Mark == nil {
		return
	}
	path = path.Child("mark")
	var names []string
	var pattern string
	if e.Spec.Script != nil {
		for _, m := range e.Spec.Script.Marks {
			names = append(names, m.Name)
			if m.Name == f.Mark.Name {
				pattern = m.Pattern
			}
		}
	}
	switch {
	case len(names) == 0:
		e.add(field.Invalid(path.Child("name"), f.Mark.Name, fmt.Sprintf("System %q has no script with marks: declare it in spec.script.marks", e.System)))
		return
	case pattern == "":
		e.add(field.Invalid(path.Child("name"), f.Mark.Name, fmt.Sprintf("System %q ", e.System)+suggest.Unknown("declares no mark", f.Mark.Name, names)))
		return
	}
	known := MarkGroups(pattern)
	for _, g := range slices.Sorted(maps.Keys(f.Mark.Groups)) {
		if !slices.Contains(known, g) {
			e.add(field.Invalid(path.Child("groups"), g, fmt.Sprintf("the pattern of mark %s of System %q ", f.Mark.Name, e.System)+suggest.Unknown("has no group", g, known)))
		}
	}
}

// MarkGroups returns the named groups of a pattern.
func MarkGroups(pattern string) []string {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(compiled.SubexpNames(), func(name string) bool { return name == "" })
}
