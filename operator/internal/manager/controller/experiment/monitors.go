package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/experiment/monitoring"
)

// Monitors is the part of package monitoring that the controller uses.
type Monitors interface {
	// HasPodMonitors reports whether Trials make PodMonitors.
	HasPodMonitors() (bool, error)
}

// unmonitor deletes the PodMonitors of an experiment whose Trials are over. The first Trial with a
// System made one, with the name of the System's snapshot. Later Trials would make it again. If the
// experiment is deleted, the garbage collector deletes them.
func (r *Reconciler) unmonitor(ctx context.Context, s *scope) error {
	if !s.step.Done || r.Monitors == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.revisions)) {
		system := s.systems[name]
		if !monitoring.Serves(&system) {
			continue
		}
		if has, err := r.Monitors.HasPodMonitors(); err != nil || !has {
			return err
		}
		pm := &metav1.PartialObjectMetadata{}
		pm.SetGroupVersionKind(monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind))
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.exp.Namespace, Name: s.revisions[name]}, pm)
		if err == nil && metav1.IsControlledBy(pm, s.exp) {
			err = r.Client.Delete(ctx, pm)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PodMonitor %s: %w", s.revisions[name], err)
		}
	}
	return nil
}
