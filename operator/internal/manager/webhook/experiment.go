package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// experiments validates Experiments.
type experiments struct {
	reader client.Reader
	client client.Client // for dry runs
	checks plan.Checks
}

var _ admission.Validator[*v1alpha1.Experiment] = (*experiments)(nil)

// ValidateCreate checks a new Experiment.
func (v *experiments) ValidateCreate(ctx context.Context, exp *v1alpha1.Experiment) (admission.Warnings, error) {
	return v.validate(ctx, exp)
}

// ValidateUpdate checks a changed spec. It refuses the change if trials of the old spec have been
// planned.
func (v *experiments) ValidateUpdate(ctx context.Context, before, after *v1alpha1.Experiment) (admission.Warnings, error) {
	if !after.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	anew, wrong, err := plan.CheckChange(before, after)
	switch {
	case err != nil:
		return nil, err
	case wrong != nil:
		return nil, invalid("Experiment", after.Name, field.ErrorList{wrong})
	case anew:
		return v.validate(ctx, after)
	}
	return nil, nil
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

// missingSystems turns errors about missing Systems into warnings, so that files may be applied in
// any order. The controller makes the remaining checks once the Systems exist.
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

func invalid(kind, name string, errs field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}
