package testcluster

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/local/folder"
)

var (
	inProcessMu sync.Mutex
	inProcess   = map[testing.TB]*Env{}
)

// InProcess returns the API of a test in this process: that of kubectl assay --local, over a folder
// of the test's own. It needs no server, and tests do not see each other's objects. It has
// versions, conflicts, finalizers, owners, and Assay's own defaults and bounds. It has no quotas,
// webhooks, policies or managed fields, no kinds of other programs, and only the subresources
// status and binding. A test about these takes testenv.Get.
//
// A deleted pod without a node disappears at once. A deleted pod on a node disappears when the
// test, which plays the kubelet, deletes it with a grace of 0.
func InProcess(t testing.TB) *Env {
	t.Helper()
	inProcessMu.Lock()
	defer inProcessMu.Unlock()
	if e := inProcess[t]; e != nil {
		return e
	}
	e, err := newInProcess(t)
	if err != nil {
		t.Fatalf("make an API in this process: %v", err)
	}
	inProcess[t] = e
	t.Cleanup(func() {
		inProcessMu.Lock()
		defer inProcessMu.Unlock()
		delete(inProcess, t)
	})
	return e
}

func newInProcess(t testing.TB) (*Env, error) {
	store, err := folder.Open(t.TempDir(), "objects", clock.RealClock{})
	if err != nil {
		return nil, err
	}
	store.WithoutWebhooks = true
	e := &Env{Scheme: runtime.NewScheme(), Config: folder.Config(&folder.Server{Store: store})}
	if err := errors.Join(clientgoscheme.AddToScheme(e.Scheme), v1alpha1.AddToScheme(e.Scheme)); err != nil {
		return nil, err
	}
	plain, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		return nil, err
	}
	e.Client = interceptor.NewClient(plain, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			err := c.Delete(ctx, o, options...)
			return errors.Join(err, endPods(store, o, options))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			err := c.Update(ctx, o, options...) // the update may have removed the last finalizer
			return errors.Join(err, endPods(store, nil, nil))
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, o, sub client.Object, options ...client.SubResourceCreateOption) error {
			binding, is := sub.(*corev1.Binding)
			if !is {
				return c.SubResource(name).Create(ctx, o, sub, options...)
			}
			pod := &corev1.Pod{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), pod); err != nil {
				return err
			}
			pod.Spec.NodeName = binding.Target.Name
			return c.Update(ctx, pod)
		},
	})
	return e, e.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}})
}

// endPods removes the deleted pods that no kubelet has to end, like an API server. deleted is the
// object just deleted.
func endPods(store *folder.Store, deleted client.Object, options []client.DeleteOption) error {
	asked := client.DeleteOptions{}
	asked.ApplyOptions(options)
	pods, _ := store.List(folder.Pods, "", func(o *unstructured.Unstructured) bool {
		if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 {
			return false
		}
		node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
		ended := deleted != nil && asked.GracePeriodSeconds != nil && *asked.GracePeriodSeconds == 0 &&
			deleted.GetName() == o.GetName() && deleted.GetNamespace() == o.GetNamespace()
		return ended || node == "" || *o.GetDeletionGracePeriodSeconds() == 0
	})
	for _, p := range pods {
		if err := store.Delete(folder.Pods, p.GetNamespace(), p.GetName(), folder.DeleteOptions{Now: true}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
