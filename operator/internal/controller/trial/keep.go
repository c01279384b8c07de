package trial

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/queue"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// kept is what of the trial waits in the cluster for its store.
func (r *Reconciler) kept(s *scope) *store.Cluster {
	return &store.Cluster{Client: r.Client, Reader: r.Reader, Trial: s.trial}
}

// roomForResults has a trial wait while its store takes nothing and so much of its namespace is kept for it that the cluster has little room left: a trial that is not
// begun loses nothing, one whose results find no room would hold its pools until the store answers.
func (r *Reconciler) roomForResults(ctx context.Context, trial *v1alpha1.Trial) (queue.Room, error) {
	if trial.Spec.ResultsStore == "" {
		return queue.Room{State: queue.Start}, nil
	}
	n, err := (&store.Cluster{Client: r.Client, Reader: r.Reader, Trial: trial}).Waiting(ctx)
	if err != nil || n < store.PauseLimit {
		return queue.Room{State: queue.Start}, err
	}
	return queue.Room{State: queue.NoRoom, Missing: fmt.Sprintf(
		"Waiting for the result store %s: more than %d MiB of this namespace are kept in the cluster until it takes them.", trial.Spec.ResultsStore, store.PauseLimit>>20)}, nil
}

// packedResults of a client: in a ConfigMap of their own, or, where they are too large for one, in parts.
func (r *Reconciler) packedResults(ctx context.Context, s *scope, c render.Client) ([]byte, error) {
	cm := &corev1.ConfigMap{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: s.layout.ClientResultConfigMap(c.Index)}, cm)
	if err == nil {
		return cm.BinaryData[clientKey], nil
	}
	if !apierrors.IsNotFound(err) || s.trial.Spec.ResultsStore == "" {
		return nil, fmt.Errorf("read the results of %s: %w", c.Name, err)
	}
	folder, err := store.TrialFolder(s.trial)
	if err != nil {
		return nil, err
	}
	_, packed, err := store.ReadAll(ctx, r.kept(s), folder.PodFile(c.Name, protocol.ClientResultFile), protocol.ClientResultLimit)
	if err != nil {
		return nil, fmt.Errorf("read the results of %s: %w", c.Name, err)
	}
	return packed, nil
}

// keepWhole keeps a trial's results as they were before something was left out for a ConfigMap's size, until they are in its store.
func (r *Reconciler) keepWhole(ctx context.Context, s *scope, whole results.Trial, fitted []byte) error {
	if s.trial.Spec.ResultsStore == "" {
		return nil
	}
	encoded, err := results.EncodeTrial(whole)
	if err != nil || bytes.Equal(encoded, fitted) {
		return err
	}
	folder, err := store.TrialFolder(s.trial)
	if err != nil {
		return err
	}
	o := store.Describe(folder.Key(trialKey), encoded)
	if err := r.kept(s).Put(ctx, o, bytes.NewReader(encoded)); err != nil {
		return fmt.Errorf("keep the whole results of the trial: %w", err)
	}
	return nil
}
