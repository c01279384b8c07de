package plan

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Reopen lists the trials without which repetitions that are given up would be tried again: of each
// such repetition that wanted takes, the fewest latest attempts, at least one. The other
// repetitions keep their trials. The list is in the order of points, repetitions and attempts; it
// is empty when none is given up.
func Reopen(spec v1alpha1.ExperimentSpec, trials []v1alpha1.Trial, wanted func(Slot) bool) []v1alpha1.Trial {
	p := &Plan{Spec: ApplyProfile(spec)}
	left, _ := Split(trials)
	var dropped []v1alpha1.Trial
	for _, slot := range givenUpSlots(p, left) {
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

// givenUpSlots are the repetitions that have neither a valid trial, nor one running, nor a budget
// for another, in order.
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
