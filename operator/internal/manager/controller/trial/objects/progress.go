package objects

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// PublishProgress writes the clients' progress to an annotation of the trial. The argument before
// is the trial as read; trial is the trial after this reconcile. Both get the new resource version.
// The result conflict reports whether the trial has changed since it was read. Nothing is written
// then.
func (m Children) PublishProgress(ctx context.Context, before, trial *v1alpha1.Trial, sum protocol.TrialProgress) (conflict bool, err error) {
	value, err := json.Marshal(sum)
	if err != nil {
		return false, fmt.Errorf("encode the progress: %w", err)
	}
	// Without the resource version, a manager that has lost the lead would learn the trial's newest
	// one here. It would then overwrite its successor's decisions with its own old state.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": before.ResourceVersion, "annotations": map[string]string{v1alpha1.AnnotationProgress: string(value)},
	}})
	if err != nil {
		return false, fmt.Errorf("encode the progress: %w", err)
	}
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Trial"))
	target.SetNamespace(before.Namespace)
	target.SetName(before.Name)
	if err := m.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		if apierrors.IsConflict(err) {
			return true, nil
		}
		return false, client.IgnoreNotFound(err)
	}
	// The patch has changed the trial's resource version. The status patch of this reconcile must
	// not fail because of that.
	before.SetResourceVersion(target.GetResourceVersion())
	trial.SetResourceVersion(target.GetResourceVersion())
	return false, nil
}
