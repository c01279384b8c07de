package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// TrialFile in a trial's folder of a store holds a results.Trial.
const TrialFile = "trial.json"

// Results reads the clients' reports, and writes the results of trials.
type Results struct {
	Client client.Client
	// Reader bypasses the cache, which holds no ConfigMaps and nodes.
	Reader client.Reader
	// Software returns the software that carries trials out. Nil: results leave it out.
	Software func(ctx context.Context) *results.Software
}

// Kept returns the files of the trial that wait in the cluster for its store.
func (r Results) Kept(trial *v1alpha1.Trial) *store.Cluster {
	return &store.Cluster{Client: r.Client, Reader: r.Reader, Trial: trial}
}

// OfClients reads the clients' reports. It also returns them as they were sent, by the names of
// files. All of them exist: each agent heard that its report was stored.
func (r Results) OfClients(ctx context.Context, trial *v1alpha1.Trial, layout *placement.Layout) (out []results.Client, reports map[string][]byte, err error) {
	reports = map[string][]byte{}
	for _, c := range layout.Clients {
		packed, err := r.packed(ctx, trial, layout, c)
		if err != nil {
			return nil, nil, err
		}
		reports[c.Name+".json.gz"] = packed
		one, err := results.UnpackClient(packed, runLength(&trial.Spec))
		if err != nil {
			// Merge reports it as a client that failed, since another attempt may succeed.
			one = results.Client{Format: results.ClientFormat, Index: int32(c.Index), Failure: err.Error()}
		}
		out = append(out, one)
	}
	return out, reports, nil
}

// runLength returns how long a trial's run lasts, counted from the release.
func runLength(spec *v1alpha1.TrialSpec) time.Duration {
	w := timeline.FromSchedule(spec.Schedule)
	return w.WarmUp + w.End()
}

// packed returns the packed results of a client. They lie in a ConfigMap of their own, or in parts
// if they are too large for one.
func (r Results) packed(ctx context.Context, trial *v1alpha1.Trial, layout *placement.Layout, c placement.Client) ([]byte, error) {
	cm := &corev1.ConfigMap{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: layout.ClientResultConfigMap(c.Index)}, cm)
	if err == nil {
		return cm.BinaryData[ClientKey], nil
	}
	if !apierrors.IsNotFound(err) || trial.Spec.ResultsStore == "" {
		return nil, fmt.Errorf("read the results of %s: %w", c.Name, err)
	}
	folder, err := store.TrialFolder(trial)
	if err != nil {
		return nil, err
	}
	_, packed, err := store.ReadAll(ctx, r.Kept(trial), folder.PodFile(c.Name, protocol.ClientResultFile), protocol.ClientResultLimit)
	if err != nil {
		return nil, fmt.Errorf("read the results of %s: %w", c.Name, err)
	}
	return packed, nil
}

// keepWhole keeps a trial's whole results until they are in its store, if some of them were left
// out to fit a ConfigMap. If nothing was left out, it deletes whole results that were kept earlier:
// a reader would believe that they are the last ones.
func (r Results) keepWhole(ctx context.Context, trial *v1alpha1.Trial, whole, fitted []byte) error {
	if trial.Spec.ResultsStore == "" {
		return nil
	}
	folder, err := store.TrialFolder(trial)
	if err != nil {
		return err
	}
	kept := r.Kept(trial)
	kept.Current = func(ctx context.Context) error { return r.current(ctx, trial) }
	key := folder.Key(TrialFile)
	if bytes.Equal(whole, fitted) {
		return kept.Remove(ctx, key)
	}
	if err := kept.Put(ctx, store.Describe(key, whole), bytes.NewReader(whole)); err != nil {
		return fmt.Errorf("keep the whole results of the trial: %w", err)
	}
	return nil
}

// Put writes the results ConfigMap of a trial, with as many of the files beside it as find room.
// The ConfigMap has no owner: results outlive the trial. The argument before is the trial as read;
// trial is the trial after this reconcile.
//
// The API server cannot write two objects at once, and two managers may store results at the same
// time. So Put first writes the digest of the results into the status, under the version that was
// read. The second of two managers fails there, and reads the trial again. If a manager replaces
// results, it read the old ones before it read its own digest in the status.
func (r Results) Put(ctx context.Context, before, trial *v1alpha1.Trial, layout *placement.Layout, t *results.Trial, beside Attachments) error {
	r.nameMachines(ctx, t)
	if r.Software != nil {
		t.Software = r.Software(ctx)
	}
	whole, limit := *t, render.ConfigMapLimit
	packs, err := beside.pack(t, limit)
	if err != nil {
		return err
	}
	whole.Rendered, whole.Reports = t.Rendered, t.Reports
	for _, packed := range packs {
		limit -= len(packed)
	}
	encoded, err := results.FitTrial(*t, limit)
	if err != nil {
		return fmt.Errorf("fit the results into a ConfigMap: %w", err)
	}
	all := encoded
	if trial.Spec.ResultsStore != "" {
		if all, err = results.FitTrial(whole, results.WholeLimit); err != nil {
			return fmt.Errorf("fit the whole results: %w", err)
		}
	}
	if packs[results.StoredKey], err = results.Pack(encoded); err != nil {
		return fmt.Errorf("pack the results: %w", err)
	}
	if err := r.claim(ctx, before, trial, store.Describe("", all).SHA256); err != nil {
		return fmt.Errorf("store the trial's results: %w", err)
	}
	if err := r.keepWhole(ctx, trial, all, encoded); err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: layout.ResultsConfigMap(), Namespace: trial.Namespace,
		Labels: map[string]string{
			v1alpha1.LabelTrial: trial.Name, v1alpha1.LabelExperiment: t.Experiment, v1alpha1.LabelResults: "trial",
			v1alpha1.LabelPoint: fmt.Sprint(t.PointIndex),
		},
		Annotations: map[string]string{v1alpha1.AnnotationTrialUID: string(trial.UID), v1alpha1.AnnotationOutcome: t.Outcome},
	}, BinaryData: packs}
	err = r.Client.Create(ctx, cm)
	if apierrors.IsAlreadyExists(err) {
		err = r.putAgain(ctx, trial, cm)
	}
	if err != nil {
		return fmt.Errorf("store the trial's results: %w", err)
	}
	return nil
}

// claim writes only the digest of the coming results into the status. It fails if the manager has
// not read the trial's present version, because it no longer leads or because its cache is behind.
// Both arguments get the new version.
func (r Results) claim(ctx context.Context, before, trial *v1alpha1.Trial, digest string) error {
	claimed := before.DeepCopy()
	claimed.Status.ResultsDigest = digest
	if err := r.Client.Status().Patch(ctx, claimed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	for _, t := range []*v1alpha1.Trial{before, trial} {
		t.ResourceVersion, t.Status.ResultsDigest = claimed.ResourceVersion, digest
	}
	return nil
}

// current fails if another manager has written the digest of other results.
func (r Results) current(ctx context.Context, trial *v1alpha1.Trial) error {
	now := &v1alpha1.Trial{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(trial), now); err != nil {
		return err
	}
	if now.UID != trial.UID || now.Status.ResultsDigest != trial.Status.ResultsDigest {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("trials").GroupResource(), trial.Name, errors.New("another manager stores its results"))
	}
	return nil
}

// putAgain replaces results that were stored before their trial's status said so.
func (r Results) putAgain(ctx context.Context, trial *v1alpha1.Trial, cm *corev1.ConfigMap) error {
	stored := &corev1.ConfigMap{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(cm), stored); err != nil {
		return err
	}
	if err := r.current(ctx, trial); err != nil {
		return err
	}
	if before := replaced(stored, trial.UID); before != "" {
		cm.Annotations[v1alpha1.AnnotationReplaced] = before
	}
	cm.ResourceVersion = stored.ResourceVersion
	return r.Client.Update(ctx, cm)
}

// replaced lists the outcomes of all trials whose results a trial replaces. These are the earlier
// trials, and the trial that was stored last, unless it is the same trial.
func replaced(stored *corev1.ConfigMap, by types.UID) string {
	all := stored.Annotations[v1alpha1.AnnotationReplaced]
	if uid := stored.Annotations[v1alpha1.AnnotationTrialUID]; uid == "" || uid == string(by) {
		return all
	}
	if all != "" {
		all += ","
	}
	return all + stored.Annotations[v1alpha1.AnnotationOutcome]
}
