package objects

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// DeleteAll deletes every object of a trial except its results, and the pods that reset machines
// for it. It returns a description of what is still there. Pods that have ended do not count.
// Kubernetes takes a moment to remove them, and the pods of the next trial can start meanwhile. An
// engine.LeftError means that nothing runs any more, but something else cannot be deleted.
func (m Children) DeleteAll(ctx context.Context, key types.NamespacedName, machines *corev1.PodList) (string, error) {
	left, dead, err := m.deleteRunning(ctx, key, machines)
	if err != nil {
		return "", err
	}
	rest, err := m.deleteRest(ctx, key, dead)
	switch {
	case left != "":
		return left, nil // the next call tries again what failed
	case err != nil:
		return "", &engine.LeftError{Err: err}
	}
	return rest, nil
}

// deleteRunning deletes pods and their owners. The result left describes what is still there; dead
// reports whether some pods are on nodes that do not answer.
func (m Children) deleteRunning(ctx context.Context, key types.NamespacedName, machines *corev1.PodList) (left string, dead bool, err error) {
	in := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: key.Name}}
	for _, kind := range []struct {
		what string
		list client.ObjectList
	}{
		// The owners come first, or they would replace their pods.
		{"StatefulSet", &appsv1.StatefulSetList{}},
		{"Job", &batchv1.JobList{}},
		{"Pod", &corev1.PodList{}},
	} {
		n, err := m.deleteKind(ctx, kind.what, kind.list, in)
		if err != nil {
			return "", false, err
		}
		if l, pods := kind.list.(*corev1.PodList); pods {
			stranded, err := m.Stranded(ctx, l.Items)
			if err != nil {
				return "", false, err
			}
			for i := range l.Items {
				if validity.PodEnded(&l.Items[i]) {
					n--
				}
			}
			n, dead = n-len(stranded), len(stranded) > 0
		}
		if n > 0 && left == "" {
			left = fmt.Sprintf("%d of kind %s", n, kind.what)
		}
	}
	n, err := m.deleteItems(ctx, machines)
	if err != nil {
		return "", false, fmt.Errorf("delete each pod that resets a machine: %w", err)
	}
	if n > 0 && left == "" {
		left = fmt.Sprintf("%d pods that reset machines", n)
	}
	return left, dead, nil
}

// deleteRest deletes the objects that run nothing. If one kind cannot be deleted, it still deletes
// the others.
func (m Children) deleteRest(ctx context.Context, key types.NamespacedName, dead bool) (left string, err error) {
	in := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: key.Name}}
	var failed []error
	for _, kind := range []struct {
		what string
		list client.ObjectList
	}{
		{"Service", &corev1.ServiceList{}},
		{"ConfigMap", configMaps()},
		{"PersistentVolumeClaim", &corev1.PersistentVolumeClaimList{}},
	} {
		n, err := m.deleteKind(ctx, kind.what, kind.list, in)
		if _, claims := kind.list.(*corev1.PersistentVolumeClaimList); claims && dead { // the claims of such a pod go with it
			n = 0
		}
		if failed = append(failed, err); n > 0 && left == "" {
			left = fmt.Sprintf("%d of kind %s", n, kind.what)
		}
	}
	had, err := m.deleteSecret(ctx, key)
	if err != nil {
		failed = append(failed, fmt.Errorf("delete the prepare step's Secret: %w", err))
	}
	if had && left == "" {
		left = "the prepare step's Secret"
	}
	return left, errors.Join(failed...)
}

// deleteKind deletes the trial's objects of a kind, and returns how many it found.
func (m Children) deleteKind(ctx context.Context, what string, list client.ObjectList, in []client.ListOption) (int, error) {
	if err := m.Reader.List(ctx, list, in...); err != nil {
		return 0, fmt.Errorf("list each %s of the trial: %w", what, err)
	}
	n, err := m.deleteItems(ctx, list)
	if err != nil {
		return n, fmt.Errorf("delete each %s of the trial: %w", what, err)
	}
	return n, nil
}

// deleteSecret deletes the one Secret that a trial may have, and reports whether it was there. It
// asks for the Secret by name, since a manager that could list Secrets could read all of them.
func (m Children) deleteSecret(ctx context.Context, key types.NamespacedName) (bool, error) {
	secret := &corev1.Secret{}
	name := (&placement.Layout{Trial: key.Name}).PreparedSecret()
	if err := m.Reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if secret.Labels[v1alpha1.LabelTrial] != key.Name {
		return false, nil // it belongs to another
	}
	return true, client.IgnoreNotFound(m.Client.Delete(ctx, secret))
}

func (m Children) deleteItems(ctx context.Context, list client.ObjectList) (int, error) {
	n := 0
	var here []client.Object
	for _, o := range itemsOf(list) {
		if o.GetLabels()[v1alpha1.LabelResults] != "" {
			continue
		}
		if n++; o.GetDeletionTimestamp().IsZero() {
			here = append(here, o)
		}
	}
	return n, m.each(len(here), func(i int) error {
		return client.IgnoreNotFound(m.Client.Delete(ctx, here[i], client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
}

// each calls do with 0 to n-1, at most AtOnce calls at the same time, and returns the first error.
// If AtOnce is 1 or less, it makes the calls in this goroutine and in order.
func (m Children) each(n int, do func(i int) error) error {
	if m.AtOnce <= 1 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	var all errgroup.Group
	all.SetLimit(m.AtOnce)
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	return all.Wait()
}

// configMaps lists ConfigMaps without their contents: these are the clients' results, and files
// that wait for a store.
func configMaps() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	return list
}

func itemsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	switch l := list.(type) {
	case *appsv1.StatefulSetList:
		out = pointers(l.Items, func(o *appsv1.StatefulSet) client.Object { return o })
	case *batchv1.JobList:
		out = pointers(l.Items, func(o *batchv1.Job) client.Object { return o })
	case *corev1.PodList:
		out = pointers(l.Items, func(o *corev1.Pod) client.Object { return o })
	case *corev1.ServiceList:
		out = pointers(l.Items, func(o *corev1.Service) client.Object { return o })
	case *metav1.PartialObjectMetadataList: // of ConfigMaps
		out = pointers(l.Items, func(o *metav1.PartialObjectMetadata) client.Object {
			o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			return o
		})
	case *corev1.PersistentVolumeClaimList:
		out = pointers(l.Items, func(o *corev1.PersistentVolumeClaim) client.Object { return o })
	}
	return out
}

func pointers[T any](items []T, f func(*T) client.Object) []client.Object {
	out := make([]client.Object, 0, len(items))
	for i := range items {
		out = append(out, f(&items[i]))
	}
	return out
}
