package trial

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// chaosKey of a trial's ConfigMap of what Chaos Mesh did holds chaosRecords as JSON.
const chaosKey = "chaos.json"

// chaosRecord is what is known of one time of a fault. Instants are Unix nanoseconds of the manager's clock; 0: it has not come to that.
type chaosRecord struct {
	Created   int64  `json:"created,omitempty"`   // its object's creation was asked for
	Confirmed int64  `json:"confirmed,omitempty"` // it was seen to be in force
	Ended     int64  `json:"ended,omitempty"`     // the object's deletion was asked for
	Gone      int64  `json:"gone,omitempty"`      // the object was seen to be gone
	Error     string `json:"error,omitempty"`     // why it was not confirmed
	EndError  string `json:"endError,omitempty"`  // why it is not known to have ended
}

// chaosRecords of a trial, by "<fault>/<time>".
type chaosRecords map[string]*chaosRecord

// of returns the record of one time of a fault, which may change it.
func (c chaosRecords) of(id string) *chaosRecord {
	if c[id] == nil {
		c[id] = &chaosRecord{}
	}
	return c[id]
}

// values are what the records say now.
func (c chaosRecords) values() map[string]chaosRecord {
	out := map[string]chaosRecord{}
	for id, rec := range c {
		out[id] = *rec
	}
	return out
}

// chaosRecordsOf returns what is known of a trial, which a manager that has just taken over reads first.
func (r *Reconciler) chaosRecordsOf(ctx context.Context, s *scope) (chaosRecords, error) {
	if s.chaosRecords != nil {
		return s.chaosRecords, nil
	}
	records := chaosRecords{}
	kept := &corev1.ConfigMap{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: s.layout.ChaosConfigMap()}, kept)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("read what Chaos Mesh has done: %w", err)
	default:
		if err := json.Unmarshal([]byte(kept.Data[chaosKey]), &records); err != nil {
			return nil, fmt.Errorf("read what Chaos Mesh has done: %w", err)
		}
	}
	r.remember(s.trial, func(m *memo) { m.chaosRecords = records })
	s.chaosRecords = records
	return records, nil
}

// keepChaosRecords writes them down.
func (r *Reconciler) keepChaosRecords(ctx context.Context, s *scope, records chaosRecords) error {
	content, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode what Chaos Mesh has done: %w", err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: s.layout.ChaosConfigMap(), Namespace: s.key.Namespace,
		Labels: map[string]string{v1alpha1.LabelTrial: s.key.Name, v1alpha1.LabelExperiment: s.trial.Spec.Experiment},
	}, Data: map[string]string{chaosKey: string(content)}}
	err = r.Client.Update(ctx, cm)
	if apierrors.IsNotFound(err) {
		err = r.createOne(ctx, s, cm)
	}
	return wrap("write down what Chaos Mesh has done", err)
}
