// Package objects makes and deletes a trial's objects, and finds out why the cluster refuses them.
package objects

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/instants"
	"assay.dev/assay/operator/internal/experiment/render"
)

// Children makes and deletes the objects of trials.
type Children struct {
	Client client.Client
	// Reader bypasses the cache. It reads Secrets and ConfigMaps, which are not cached, and objects
	// that must not be stale.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Deletions holds the deletions that the API server has dated.
	Deletions *instants.Seen
	// AtOnce is how many of a trial's objects are deleted at the same time. 0: one.
	AtOnce int
}

// Create makes an object that the trial owns. An existing object is right if the trial owns it,
// since these objects never change.
func (m Children) Create(ctx context.Context, trial *v1alpha1.Trial, obj client.Object) error {
	kind := fmt.Sprintf("%T", obj)
	kind = kind[strings.LastIndex(kind, ".")+1:]
	if err := controllerutil.SetControllerReference(trial, obj, m.Client.Scheme()); err != nil {
		return fmt.Errorf("own %s %s: %w", kind, obj.GetName(), err)
	}
	err := m.Client.Create(ctx, obj)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %s: %w", kind, obj.GetName(), err)
	}
	found := obj.DeepCopyObject().(client.Object)
	if err := m.Reader.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
		return fmt.Errorf("read %s %s: %w", kind, obj.GetName(), err)
	}
	if !metav1.IsControlledBy(found, trial) {
		return fmt.Errorf("%s %s exists and belongs to something else: delete it", kind, obj.GetName())
	}
	return nil
}

// CreateAll makes the objects that a trial consists of.
func (m Children) CreateAll(ctx context.Context, trial *v1alpha1.Trial, o *render.Objects) error {
	all := []client.Object{o.Service}
	if o.Prepare != nil {
		all = append(all, o.Prepare)
	}
	for _, set := range o.Servers {
		all = append(all, set)
	}
	for _, job := range o.Clients {
		all = append(all, job)
	}
	for _, obj := range all {
		if err := m.Create(ctx, trial, obj); err != nil {
			return err
		}
	}
	return nil
}
