package chaos

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/trial/objects"
)

// recordsKey is the key with the records, as JSON, in a trial's ConfigMap about Chaos Mesh.
const recordsKey = "chaos.json"

// record has the known facts about one time of a fault. Instants are Unix nanoseconds of the
// manager's clock; 0: not yet.
type record struct {
	Created   int64  `json:"created,omitempty"`   // the manager asked for the object's creation
	Confirmed int64  `json:"confirmed,omitempty"` // the fault was seen to be in force
	Ended     int64  `json:"ended,omitempty"`     // the manager asked for the object's deletion
	Gone      int64  `json:"gone,omitempty"`      // the object was seen to be gone
	Error     string `json:"error,omitempty"`     // why it was not confirmed
	EndError  string `json:"endError,omitempty"`  // why its end was not confirmed
}

// records holds a trial's records, by "<fault>/<time>".
type records map[string]*record

// of returns the record of one time of a fault. The caller may change the record.
func (c records) of(id string) *record {
	if c[id] == nil {
		c[id] = &record{}
	}
	return c[id]
}

// values returns the present content of the records.
func (c records) values() map[string]record {
	out := map[string]record{}
	for id, rec := range c {
		out[id] = *rec
	}
	return out
}

// recordsOf returns the records of a trial. A manager that has just taken over reads them first.
func (x *Executor) recordsOf(ctx context.Context, r *Run) (records, error) {
	if r.Memory.records != nil {
		return r.Memory.records, nil
	}
	known := records{}
	kept := &corev1.ConfigMap{}
	err := x.Reader.Get(ctx, client.ObjectKey{Namespace: r.Trial.Namespace, Name: r.Layout.ChaosConfigMap()}, kept)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("read what Chaos Mesh has done: %w", err)
	default:
		if err := json.Unmarshal([]byte(kept.Data[recordsKey]), &known); err != nil {
			return nil, fmt.Errorf("read what Chaos Mesh has done: %w", err)
		}
	}
	r.Memory.records = known
	return known, nil
}

// keep saves the records.
func (x *Executor) keep(ctx context.Context, r *Run, known records) error {
	content, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("encode what Chaos Mesh has done: %w", err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: r.Layout.ChaosConfigMap(), Namespace: r.Trial.Namespace,
		Labels: map[string]string{v1alpha1.LabelTrial: r.Trial.Name, v1alpha1.LabelExperiment: r.Trial.Spec.Experiment},
	}, Data: map[string]string{recordsKey: string(content)}}
	err = x.Client.Update(ctx, cm)
	if apierrors.IsNotFound(err) {
		err = objects.Children{Client: x.Client, Reader: x.Reader}.Create(ctx, r.Trial, cm)
	}
	return wrap("write down what Chaos Mesh has done", err)
}
