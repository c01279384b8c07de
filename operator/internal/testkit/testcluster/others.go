package testcluster

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// WithOthers returns the same API with all kinds of a group outside of Kubernetes and Assay. Their
// objects are in memory, and have versions, labels and finalizers. They have no schema: a test
// about the values that a kind rejects or sets takes testenv.Get. Objects that are not unstructured
// need types, which register themselves.
func (e *Env) WithOthers(t testing.TB, group string, types ...func(*runtime.Scheme) error) *Env {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, register := range types {
		if err := errors.Join(register(scheme), register(e.Scheme)); err != nil {
			t.Fatal(err)
		}
	}
	kept := fake.NewClientBuilder().WithScheme(scheme).Build()
	of := func(all client.WithWatch, o runtime.Object) client.WithWatch {
		if gvk, err := apiutil.GVKForObject(o, e.Scheme); err == nil && gvk.Group == group {
			return kept
		}
		return all
	}
	with := *e
	with.Client = interceptor.NewClient(e.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			return of(c, o).Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return of(c, list).List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if of(c, o) == kept {
				o.SetUID(uuid.NewUUID())
				o.SetCreationTimestamp(metav1.Now())
			}
			return of(c, o).Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return of(c, o).Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return of(c, o).Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return of(c, o).Delete(ctx, o, options...)
		},
	})
	return &with
}
