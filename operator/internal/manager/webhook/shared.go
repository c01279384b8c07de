package webhook

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// checkShared refuses an experiment whose machines share directories if the namespace lacks the
// claim for them. Its pods would wait for a volume until the trial is given up.
func (v *experiments) checkShared(ctx context.Context, exp *v1alpha1.Experiment, systems map[string]v1alpha1.SystemSpec) (field.ErrorList, error) {
	for i, ref := range exp.Spec.Systems {
		if len(systems[ref.Name].Shared) == 0 {
			continue
		}
		claim, why := &corev1.PersistentVolumeClaim{}, ""
		err := v.reader.Get(ctx, client.ObjectKey{Namespace: exp.Namespace, Name: v1alpha1.SharedClaim}, claim)
		switch {
		case apierrors.IsNotFound(err):
			why = fmt.Sprintf("the namespace %s has no PersistentVolumeClaim %s", exp.Namespace, v1alpha1.SharedClaim)
		case err != nil:
			return nil, fmt.Errorf("read PersistentVolumeClaim %s: %w", v1alpha1.SharedClaim, err)
		case !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany):
			why = fmt.Sprintf("the PersistentVolumeClaim %s of the namespace %s is %v", v1alpha1.SharedClaim, exp.Namespace, claim.Spec.AccessModes)
		default:
			return nil, nil // one claim holds the shared directories of all Systems
		}
		return field.ErrorList{field.Invalid(field.NewPath("spec", "systems").Index(i).Child("name"), ref.Name,
			fmt.Sprintf("its machines share directories, and %s: ask the owner of the cluster for one that is ReadWriteMany, as docs/guide/ssh-artifacts.md says", why))}, nil
	}
	return nil, nil
}
