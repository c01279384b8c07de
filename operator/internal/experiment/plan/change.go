package plan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
)

// CheckChange refuses a change of an Experiment's spec after trials have been planned. If anew is
// true, no plan is fixed: the new spec must be checked like that of a new Experiment.
func CheckChange(before, after *v1alpha1.Experiment) (anew bool, wrong *field.Error, err error) {
	same, err := sameSpec(before.Spec, after.Spec)
	if err != nil || same {
		return false, nil, err
	}
	if recurs := before.Spec.Recurrence != nil; recurs != (after.Spec.Recurrence != nil) {
		return false, field.Forbidden(field.NewPath("spec", "recurrence"), fmt.Sprintf(
			"Experiment %q recurs all its life or never; apply the change under another name", after.Name)), nil
	} else if recurs || !started(before) { // an experiment that recurs has no trials; each of its runs has a plan of its own
		return true, nil, nil
	}
	fixed := before.Spec.DeepCopy()
	fixed.Suspend, fixed.Priority, fixed.Budget, fixed.Debug = after.Spec.Suspend, after.Spec.Priority, after.Spec.Budget, after.Spec.Debug
	if before.Spec.AdditionalRepetitions <= after.Spec.AdditionalRepetitions {
		fixed.AdditionalRepetitions = after.Spec.AdditionalRepetitions
	}
	// Trials for flame graphs never count, and come after all other trials.
	graphs := !equality.Semantic.DeepEqual(fixed.Faults, after.Spec.Faults) &&
		equality.Semantic.DeepEqual(fault.WithoutFlameGraphs(fixed.Faults), fault.WithoutFlameGraphs(after.Spec.Faults))
	if graphs {
		fixed.Faults = after.Spec.Faults
	}
	same, err = sameSpec(*fixed, after.Spec)
	switch {
	case err != nil:
		return false, nil, err
	case same:
		if errs := checkBudget(after.Spec.Budget); len(errs) > 0 {
			return false, errs[0], nil
		}
		return graphs, CheckAdditional(ApplyProfile(after.Spec), int(before.Status.Points)), nil
	}
	return false, field.Forbidden(field.NewPath("spec"), fmt.Sprintf(
		"Experiment %q has been accepted and its trials are planned: only spec.suspend, spec.priority, spec.budget and spec.debug may change, faults with a flameGraph may come and go, and spec.additionalRepetitions may rise. Delete it (its results stay) or apply the change under another name",
		after.Name)), nil
}

// started reports whether the plan of the experiment is fixed.
func started(exp *v1alpha1.Experiment) bool {
	return exp.Status.Seed != 0 || meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentAccepted)
}

// sameSpec compares two specs in the form that the API server stores, so that the spelling of
// values does not matter.
func sameSpec(a, b v1alpha1.ExperimentSpec) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode spec: %w", err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode spec: %w", err)
	}
	return bytes.Equal(x, y), nil
}
