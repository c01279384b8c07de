package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
)

// forgetPrepared deletes the outputs of prepare steps that trials have shared, when the last trial
// is over. It asks for each Secret by name, since a manager that could list Secrets could read all
// of them. A trial that is added later runs its own step.
func (r *Reconciler) forgetPrepared(ctx context.Context, s *scope) error {
	if !s.step.Done {
		return nil
	}
	for _, system := range slices.Sorted(maps.Keys(s.revisions)) {
		step := s.systems[system].Prepare
		if step == nil || step.Reuse != v1alpha1.PrepareReuseWithinExperiment {
			continue
		}
		shared := &corev1.Secret{}
		name := render.SharedPrepared(s.revisions[system])
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.exp.Namespace, Name: name}, shared)
		if err == nil && metav1.IsControlledBy(shared, s.exp) {
			uid := shared.UID
			err = r.Client.Delete(ctx, shared, client.Preconditions{UID: &uid})
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %s, which trials have shared: %w", name, err)
		}
	}
	return nil
}
