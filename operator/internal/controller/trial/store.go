package trial

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/coordinator"
	"assay.dev/assay/operator/internal/render"
)

const (
	// preparedKey of the prepared Secret holds a gzipped tar.
	preparedKey = "output.tar.gz"
	// clientKey of a client's ConfigMap holds a gzipped results.Client.
	clientKey = "client.json.gz"
)

// Store keeps what agents send in objects of the trial, which go with it.
type Store struct {
	Client client.Client
}

var _ coordinator.Store = (*Store)(nil)

// StorePrepared keeps the prepare step's output in a Secret, since it may hold keys.
func (st *Store) StorePrepared(ctx context.Context, pod coordinator.Pod, packed []byte) error {
	l := render.Layout{Trial: pod.Trial.Name}
	return st.create(ctx, pod, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: l.PreparedSecret()}, Data: map[string][]byte{preparedKey: packed}})
}

// StoreResults keeps one client's results until they are merged.
func (st *Store) StoreResults(ctx context.Context, pod coordinator.Pod, packed []byte) error {
	l := render.Layout{Trial: pod.Trial.Name}
	return st.create(ctx, pod, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: l.ClientResultConfigMap(pod.Index)}, BinaryData: map[string][]byte{clientKey: packed},
	})
}

// create makes the object once: what is sent again, because an acknowledgement was lost, is the same.
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
	if err := st.Client.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", obj.GetName(), err)
	}
	return nil
}
