package objects

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Monitor makes the PodMonitor by which Prometheus scrapes the pods of the experiment's trials. The
// experiment owns it, and its controller deletes it after the last trial.
func (m Children) Monitor(ctx context.Context, trial *v1alpha1.Trial, pm client.Object) error {
	exp := &v1alpha1.Experiment{}
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: trial.Spec.Experiment}, exp); err != nil {
		return fmt.Errorf("read the trial's Experiment: %w", err)
	}
	if err := controllerutil.SetControllerReference(exp, pm, m.Client.Scheme()); err != nil {
		return fmt.Errorf("own PodMonitor %s: %w", pm.GetName(), err)
	}
	err := m.Client.Create(ctx, pm)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil // the kind has gone since we saw it, or an earlier trial made the PodMonitor
	}
	if err != nil {
		return fmt.Errorf("create PodMonitor %s: %w", pm.GetName(), err)
	}
	return nil
}
