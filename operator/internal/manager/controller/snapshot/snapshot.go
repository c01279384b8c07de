// Package snapshot reads a System in the state in which an experiment was accepted.
package snapshot

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Read returns the System of a trial in its deployed form. If the snapshot was deleted, the error
// is a NotFound of the API server.
func Read(ctx context.Context, reader client.Reader, trial *v1alpha1.Trial) (*v1alpha1.SystemSpec, error) {
	revision := &appsv1.ControllerRevision{}
	key := client.ObjectKey{Namespace: trial.Namespace, Name: trial.Spec.System.Revision}
	if err := reader.Get(ctx, key, revision); err != nil {
		return nil, fmt.Errorf("read the System's snapshot %s: %w", key.Name, err)
	}
	return Of(revision)
}

// Of returns the System of a snapshot in its deployed form.
func Of(revision *appsv1.ControllerRevision) (*v1alpha1.SystemSpec, error) {
	spec := &v1alpha1.SystemSpec{}
	if err := json.Unmarshal(revision.Data.Raw, spec); err != nil {
		return nil, fmt.Errorf("decode the System's snapshot %s: %w", revision.Name, err)
	}
	return spec.Deployed(), nil
}
