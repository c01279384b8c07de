package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// experiments validates Experiments.
type experiments struct {
	reader client.Reader
	client client.Client // for what is tried and not kept
	checks plan.Checks
}

var _ admission.Validator[*v1alpha1.Experiment] = (*experiments)(nil)

// ValidateCreate checks a new Experiment.
func (v *experiments) ValidateCreate(ctx context.Context, exp *v1alpha1.Experiment) (admission.Warnings, error) {
	return v.validate(ctx, exp)
}

// ValidateUpdate checks a changed spec, and refuses the change where trials of the old one have
// been planned.
func (v *experiments) ValidateUpdate(ctx context.Context, before, after *v1alpha1.Experiment) (admission.Warnings, error) {
	if !after.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	same, err := sameSpec(before.Spec, after.Spec)
	if err != nil || same {
		return nil, err
	}
	if recurs := before.Spec.Recurrence != nil; recurs != (after.Spec.Recurrence != nil) {
		return nil, invalid("Experiment", after.Name, field.ErrorList{field.Forbidden(field.NewPath("spec", "recurrence"), fmt.Sprintf(
			"Experiment %q recurs all its life or never; apply the change under another name", after.Name))})
	} else if recurs || !started(before) { // what recurs has no trials, and each run has a plan of its own
		return v.validate(ctx, after)
	}
	fixed := before.Spec.DeepCopy()
	fixed.Suspend, fixed.Priority, fixed.Debug = after.Spec.Suspend, after.Spec.Priority, after.Spec.Debug
	if before.Spec.AdditionalRepetitions <= after.Spec.AdditionalRepetitions {
		fixed.AdditionalRepetitions = after.Spec.AdditionalRepetitions
	}
	if same, err := sameSpec(*fixed, after.Spec); err != nil || same {
		if wrong := plan.CheckAdditional(plan.ApplyProfile(after.Spec), int(before.Status.Points)); err == nil && wrong != nil {
			return nil, invalid("Experiment", after.Name, field.ErrorList{wrong})
		}
		return nil, err
	}
	return nil, invalid("Experiment", after.Name, field.ErrorList{field.Forbidden(field.NewPath("spec"), fmt.Sprintf(
		"Experiment %q has been accepted and its trials are planned: only spec.suspend, spec.priority and spec.debug may change, and spec.additionalRepetitions may rise. Delete it (its results stay) or apply the change under another name",
		after.Name))})
}

// ValidateDelete allows every deletion.
func (v *experiments) ValidateDelete(context.Context, *v1alpha1.Experiment) (admission.Warnings, error) {
	return nil, nil
}

func (v *experiments) validate(ctx context.Context, exp *v1alpha1.Experiment) (admission.Warnings, error) {
	systems := map[string]v1alpha1.SystemSpec{}
	for _, ref := range exp.Spec.Systems {
		s := &v1alpha1.System{}
		err := v.reader.Get(ctx, client.ObjectKey{Namespace: exp.Namespace, Name: ref.Name}, s)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read System %q: %w", ref.Name, err)
		}
		systems[ref.Name] = s.Spec
	}
	p, errs := plan.Validate(exp, systems, v.checks)
	warnings, errs := missingSystems(errs)
	if len(errs) > 0 {
		return warnings, invalid("Experiment", exp.Name, errs)
	}
	if p == nil {
		return warnings, nil
	}
	if errs, err := v.checkPodSecurity(ctx, exp, p, systems); err != nil {
		return warnings, err
	} else if len(errs) > 0 {
		return warnings, invalid("Experiment", exp.Name, errs)
	}
	if errs, err := v.checkShared(ctx, exp, systems); err != nil {
		return warnings, err
	} else if len(errs) > 0 {
		return warnings, invalid("Experiment", exp.Name, errs)
	}
	if errs := v.checkChaosMesh(ctx, exp, p, systems); len(errs) > 0 {
		return warnings, invalid("Experiment", exp.Name, errs)
	}
	return append(warnings, p.Warnings...), nil
}

// missingSystems turns the errors about Systems that do not exist into warnings, so that files may
// be applied in any order. The controller makes the remaining checks when they exist.
func missingSystems(errs field.ErrorList) (admission.Warnings, field.ErrorList) {
	var warnings admission.Warnings
	var left field.ErrorList
	for _, err := range errs {
		if err.Type != field.ErrorTypeNotFound {
			left = append(left, err)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: there is no System %q in the namespace; no trial runs until it is applied", err.Field, err.BadValue))
	}
	return warnings, left
}

// started reports whether the plan of the experiment is fixed.
func started(exp *v1alpha1.Experiment) bool {
	return exp.Status.Seed != 0 || meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentAccepted)
}

// sameSpec compares as the API server stores: what is written differently and read the same is the
// same.
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

func invalid(kind, name string, errs field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}
