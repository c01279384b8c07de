package plan

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Reopen lists the trials to delete so that repetitions which are given up are tried again. wanted
// chooses the repetitions. It lists the fewest latest attempts of each chosen one, at least one.
// Other repetitions keep their trials. The list is in the order of points, repetitions and
// attempts. It is empty if no repetition is given up.
func Reopen(spec v1alpha1.ExperimentSpec, trials []v1alpha1.Trial, wanted func(Slot) bool) []v1alpha1.Trial {
	p := &Plan{Spec: ApplyProfile(spec)}
	measuring, _ := Split(trials)
	left := slices.Clone(measuring)
	var dropped []v1alpha1.Trial
	for _, slot := range givenUpSlots(p, measuring) {
		if !wanted(slot) {
			continue
		}
		for {
			o := observe(left)
			last := o.latest[slot]
			if last == nil || o.givenUp(p, slot) == "" {
				break
			}
			dropped = append(dropped, *last)
			left = slices.DeleteFunc(left, func(t v1alpha1.Trial) bool { return t.Name == dropped[len(dropped)-1].Name })
		}
	}
	slices.SortFunc(dropped, func(a, b v1alpha1.Trial) int {
		return cmp.Or(cmp.Compare(a.Spec.Point.Index, b.Spec.Point.Index), cmp.Compare(a.Spec.Repetition, b.Spec.Repetition), cmp.Compare(a.Spec.Attempt, b.Spec.Attempt))
	})
	return dropped
}

// givenUpSlots returns, in order, the repetitions without a valid trial, a running trial, and a
// budget for another.
func givenUpSlots(p *Plan, trials []v1alpha1.Trial) []Slot {
	o := observe(trials)
	var slots []Slot
	for slot, last := range o.latest {
		if o.valid[slot] == nil && Outcome(last) != v1alpha1.ReasonInProgress && o.givenUp(p, slot) != "" {
			slots = append(slots, slot)
		}
	}
	slices.SortFunc(slots, func(a, b Slot) int {
		return cmp.Or(cmp.Compare(a.Point, b.Point), cmp.Compare(a.Repetition, b.Repetition))
	})
	return slots
}
