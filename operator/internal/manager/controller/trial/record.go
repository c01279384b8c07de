package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/manager/controller/snapshot"
)

// record keeps a trial's state in its status. It keeps the addresses and pods that the trial was
// released with in a ConfigMap.
type record struct {
	r *Reconciler

	mu      sync.Mutex
	written map[types.UID]time.Time // time of the last write of each status
}

var _ engine.Record = (*record)(nil)

func (k *record) System(ctx context.Context, trial *v1alpha1.Trial) (*v1alpha1.SystemSpec, error) {
	system, err := snapshot.Read(ctx, k.r.Reader, trial)
	return system, lost(err)
}

// Save writes the status, then sends the events of its changes. Because of the optimistic lock, a
// manager that has lost the lead or read an old trial cannot overwrite an instant or an outcome.
func (k *record) Save(ctx context.Context, before, trial *v1alpha1.Trial, events []engine.Event) (hold time.Duration, err error) {
	if hold := k.hold(before, trial); hold > 0 {
		return hold, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.r.Client.Status().Patch(ctx, trial, patch); err != nil {
		return 0, fmt.Errorf("write the trial's status: %w", conflict(err))
	}
	for _, e := range events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		k.r.Recorder.Eventf(trial, nil, kind, e.Reason, e.Action, "%s", e.Message)
	}
	return 0, nil
}

// hold returns how long to delay a write in which only messages change. A trial that waits for many
// pods has a new message for each of them, and every write wakes all watchers of trials.
func (k *record) hold(before, trial *v1alpha1.Trial) time.Duration {
	if isTrue(trial, v1alpha1.TrialComplete) {
		return 0 // and nothing is kept about it any more
	}
	rest := trial.Status
	rest.Conditions = before.Status.Conditions
	same := conditions.SameButMessages(before.Status.Conditions, trial.Status.Conditions) && equality.Semantic.DeepEqual(before.Status, rest)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.r.Clock.Now()
	if hold := k.written[trial.UID].Add(k.r.MessageSpacing).Sub(now); same && hold > 0 {
		return hold
	}
	if k.written == nil {
		k.written = map[types.UID]time.Time{}
	}
	k.written[trial.UID] = now
	return 0
}

func (k *record) forget(trial types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.written, trial)
}

const (
	// addressesKey of a trial's addresses ConfigMap holds the pods' addresses as JSON. The key
	// incarnationsKey holds the successive pods of each name as JSON.
	addressesKey    = "addresses.json"
	incarnationsKey = "pods.json"
	// incarnationsLimit bounds the size of the incarnations there. Beyond it the tails of the
	// predecessors' output are left out.
	incarnationsLimit = 700 << 10
)

func (k *record) Release(ctx context.Context, s *engine.Subject) (released engine.Release, err error) {
	kept, err := k.addresses(ctx, s)
	if err != nil {
		return released, lost(err)
	}
	if err := json.Unmarshal([]byte(kept.Data[addressesKey]), &released.Addresses); err != nil {
		return released, fmt.Errorf("read the addresses that the trial was released with: %w", err)
	}
	if err := json.Unmarshal([]byte(kept.Data[incarnationsKey]), &released.Incarnations); err != nil {
		return released, fmt.Errorf("read who has replaced whom: %w", err)
	}
	return released, nil
}

func (k *record) CreateRelease(ctx context.Context, s *engine.Subject, released engine.Release) error {
	content, err := json.Marshal(released.Addresses)
	if err != nil {
		return fmt.Errorf("encode the pods' addresses: %w", err)
	}
	incarnations, err := encodeIncarnations(released.Incarnations)
	if err != nil {
		return err
	}
	return k.r.objects().Create(ctx, s.Trial, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: s.Layout.AddressesConfigMap(), Namespace: s.Trial.Namespace,
		Labels: map[string]string{v1alpha1.LabelTrial: s.Trial.Name, v1alpha1.LabelExperiment: s.Trial.Spec.Experiment},
	}, Data: map[string]string{addressesKey: string(content), incarnationsKey: incarnations}})
}

// SaveIncarnations writes the incarnations to the ConfigMap. If another manager has written it
// since, that is an error, and the trial is looked at again.
func (k *record) SaveIncarnations(ctx context.Context, s *engine.Subject, all map[string][]validity.Incarnation) error {
	kept, err := k.addresses(ctx, s)
	if err != nil {
		return lost(err)
	}
	if kept.Data[incarnationsKey], err = encodeIncarnations(all); err != nil {
		return err
	}
	if err := k.r.Client.Update(ctx, kept); err != nil {
		return fmt.Errorf("write down who has replaced whom: %w", lost(err))
	}
	return nil
}

// addresses returns the ConfigMap with the addresses and pods that the trial was released with.
func (k *record) addresses(ctx context.Context, s *engine.Subject) (*corev1.ConfigMap, error) {
	kept := &corev1.ConfigMap{}
	if err := k.r.Reader.Get(ctx, client.ObjectKey{Namespace: s.Trial.Namespace, Name: s.Layout.AddressesConfigMap()}, kept); err != nil {
		return nil, fmt.Errorf("read the addresses that the trial was released with: %w", err)
	}
	return kept, nil
}

// encodeIncarnations leaves out the tails of the predecessors' output if the incarnations would be
// too large.
func encodeIncarnations(all map[string][]validity.Incarnation) (string, error) {
	content, err := json.Marshal(all)
	if err == nil && len(content) > incarnationsLimit {
		for _, of := range all {
			for _, one := range of {
				if one.Last == nil {
					continue
				}
				for i := range one.Last.Containers {
					one.Last.Containers[i].Tail = ""
				}
			}
		}
		content, err = json.Marshal(all)
	}
	if err != nil {
		return "", fmt.Errorf("encode who has replaced whom: %w", err)
	}
	return string(content), nil
}
