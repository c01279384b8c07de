package webhook

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// systems validates Systems. A System may change at any time: accepted experiments run the snapshot
// that they took.
type systems struct {
	parse func(name, text string) error
}

var _ admission.Validator[*v1alpha1.System] = (*systems)(nil)

// ValidateCreate checks a new System.
func (v *systems) ValidateCreate(_ context.Context, s *v1alpha1.System) (admission.Warnings, error) {
	if errs := plan.ValidateSystem(&s.Spec, v.parse); len(errs) > 0 {
		return nil, invalid("System", s.Name, errs)
	}
	return nil, nil
}

// ValidateUpdate checks a changed System.
func (v *systems) ValidateUpdate(ctx context.Context, _, after *v1alpha1.System) (admission.Warnings, error) {
	if !after.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return v.ValidateCreate(ctx, after)
}

// ValidateDelete allows every deletion.
func (v *systems) ValidateDelete(context.Context, *v1alpha1.System) (admission.Warnings, error) {
	return nil, nil
}
