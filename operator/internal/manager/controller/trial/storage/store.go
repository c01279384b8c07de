// Package storage keeps agents' deliveries and trials' results in objects of the cluster. It keeps
// them until they are merged, until the store has them, or for good.
package storage

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/results"
)

// ClientKey of a client's ConfigMap holds a gzipped results.Client.
const ClientKey = "client.json.gz"

// Store keeps agents' deliveries in objects that the trial owns, and that go with it.
type Store struct {
	Client client.Client
	// Reader bypasses the cache, which holds no Secrets and ConfigMaps.
	Reader client.Reader
}

var _ coordinator.Store = (*Store)(nil)

// StorePrepared keeps the prepare step's output in a Secret, since it may hold keys. It rejects a
// file that cannot be unpacked at once, while the agent can still report that.
func (st *Store) StorePrepared(ctx context.Context, pod coordinator.Pod, packed []byte, read func()) error {
	if _, err := render.UnpackOutput("/", packed); err != nil {
		return &coordinator.RejectedError{Reason: "the prepare step's output cannot be unpacked: " + err.Error()}
	}
	read()
	l := placement.Layout{Trial: pod.Trial.Name}
	return st.create(ctx, pod, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: l.PreparedSecret()}, Data: map[string][]byte{placement.PreparedKey: packed}})
}

// StoreResults keeps one client's results until they are merged. It rejects a report that cannot be
// read at once, while the agent can still report that.
func (st *Store) StoreResults(ctx context.Context, pod coordinator.Pod, packed []byte, read func()) error {
	trial := &v1alpha1.Trial{}
	if err := st.Client.Get(ctx, pod.Trial, trial); err != nil {
		return fmt.Errorf("read trial %s: %w", pod.Trial, err)
	}
	if _, err := results.UnpackClient(packed, runLength(&trial.Spec)); err != nil {
		return &coordinator.RejectedError{Reason: err.Error()}
	}
	read()
	l := placement.Layout{Trial: pod.Trial.Name}
	return st.create(ctx, pod, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: l.ClientResultConfigMap(pod.Index)}, BinaryData: map[string][]byte{ClientKey: packed},
	})
}

// create makes the object once. If an acknowledgement was lost, the agent sends the same content
// again. An object of that name with another owner or other content is an error.
func (st *Store) create(ctx context.Context, pod coordinator.Pod, obj client.Object) error {
	trial := &v1alpha1.Trial{}
	if err := st.Client.Get(ctx, pod.Trial, trial); err != nil {
		return fmt.Errorf("read trial %s: %w", pod.Trial, err)
	}
	obj.SetNamespace(trial.Namespace)
	obj.SetLabels(map[string]string{v1alpha1.LabelTrial: trial.Name, v1alpha1.LabelExperiment: trial.Spec.Experiment})
	if err := controllerutil.SetControllerReference(trial, obj, st.Client.Scheme()); err != nil {
		return fmt.Errorf("own %s: %w", obj.GetName(), err)
	}
	err := st.Client.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return st.same(ctx, trial, obj)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", obj.GetName(), err)
	}
	return nil
}

// same checks that the existing object equals the wanted one.
func (st *Store) same(ctx context.Context, trial *v1alpha1.Trial, obj client.Object) error {
	there := obj.DeepCopyObject().(client.Object)
	if err := st.Reader.Get(ctx, client.ObjectKeyFromObject(obj), there); err != nil {
		return fmt.Errorf("read %s: %w", obj.GetName(), err)
	}
	if !metav1.IsControlledBy(there, trial) {
		return fmt.Errorf("%s is there and belongs to something else", obj.GetName()) // perhaps an earlier trial's, which is in deletion
	}
	if !maps.EqualFunc(contentOf(there), contentOf(obj), bytes.Equal) {
		return &coordinator.RejectedError{Reason: "other content has been stored for this pod before"}
	}
	return nil
}

func contentOf(obj client.Object) map[string][]byte {
	switch o := obj.(type) {
	case *corev1.Secret:
		return o.Data
	case *corev1.ConfigMap:
		return o.BinaryData
	}
	return nil
}
