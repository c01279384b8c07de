package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// collectedSuffix follows a pod's name in the name of the ConfigMap with its files.
	collectedSuffix = "-collected"
	// leftOutKey of the ConfigMap with all files names the pods whose files found no room.
	leftOutKey = "left-out"
)

// StoreCollected keeps one pod's files until the trial's pods are gone.
func (st *Store) StoreCollected(ctx context.Context, pod coordinator.Pod, packed []byte, read func()) error {
	read() // the manager does not unpack it
	return st.create(ctx, pod, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name + collectedSuffix}, BinaryData: map[string][]byte{protocol.CollectedFile: packed},
	})
}

// KeepFiles puts the files of all pods into one ConfigMap, which lives as long as the trial's
// results. If the files cannot be kept, the trial still ends.
func (r Results) KeepFiles(ctx context.Context, trial *v1alpha1.Trial, layout *placement.Layout) error {
	if layout == nil || trial.Status.ResultsConfigMap == "" {
		return nil
	}
	kept, err := r.collected(ctx, trial)
	if err != nil || len(kept.BinaryData) == 0 {
		return err
	}
	of := &corev1.ConfigMap{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: trial.Status.ResultsConfigMap}, of); err != nil {
		return client.IgnoreNotFound(err)
	}
	kept.ObjectMeta = metav1.ObjectMeta{
		Namespace: trial.Namespace, Name: layout.CollectedConfigMap(),
		Labels:          map[string]string{v1alpha1.LabelTrial: trial.Name, v1alpha1.LabelExperiment: trial.Spec.Experiment, v1alpha1.LabelResults: v1alpha1.ResultsFiles},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: of.Name, UID: of.UID}},
	}
	err = r.Client.Create(ctx, kept)
	if apierrors.IsAlreadyExists(err) {
		err = r.Client.Update(ctx, kept)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		log.FromContext(ctx).Info("The files of a trial's pods cannot be kept", "trial", trial.Name, "err", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep the files of the trial's pods: %w", err)
	}
	return nil
}

// collected reads the files that a trial's pods sent, in the order of the pods' names, until one
// ConfigMap is full.
func (r Results) collected(ctx context.Context, trial *v1alpha1.Trial) (*corev1.ConfigMap, error) {
	sent := &metav1.PartialObjectMetadataList{}
	sent.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := r.Reader.List(ctx, sent, client.InNamespace(trial.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial.Name}); err != nil {
		return nil, fmt.Errorf("list the files of the trial's pods: %w", err)
	}
	all := &corev1.ConfigMap{BinaryData: map[string][]byte{}, Data: map[string]string{}}
	room := protocol.CollectedLimit
	slices.SortFunc(sent.Items, func(a, b metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
	for i := range sent.Items {
		m := &sent.Items[i]
		pod, isOne := strings.CutSuffix(m.Name, collectedSuffix)
		if !isOne || !metav1.IsControlledBy(m, trial) {
			continue
		}
		one := &corev1.ConfigMap{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(m), one); err != nil {
			return nil, fmt.Errorf("read the files of pod %s: %w", pod, err)
		}
		packed := one.BinaryData[protocol.CollectedFile]
		if len(packed) > room {
			all.Data[leftOutKey] += pod + "\n"
			continue
		}
		room -= len(packed)
		all.BinaryData[pod+".tar.gz"] = packed
	}
	return all, nil
}
