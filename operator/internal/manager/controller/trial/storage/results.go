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

// TrialFile of a trial's folder in a store holds a results.Trial.
const TrialFile = "trial.json"

// Results reads what clients sent, and writes what trials come to.
type Results struct {
	Client client.Client
	// Reader reads past the cache: ConfigMaps and nodes are not cached.
	Reader client.Reader
	// Software is what carries trials out. Nil: results do not say.
	Software func(ctx context.Context) *results.Software
}

// Kept is what of the trial waits in the cluster for its store.
func (r Results) Kept(trial *v1alpha1.Trial) *store.Cluster {
	return &store.Cluster{Client: r.Client, Reader: r.Reader, Trial: trial}
}

// OfClients reads what the clients sent, and gives it as it was sent, too, by the names of files.
// All are there: each agent was told so after its results were stored.
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
			// Told by Merge as a client that failed, since another attempt may do better.
			one = results.Client{Format: results.ClientFormat, Index: int32(c.Index), Failure: err.Error()}
		}
		out = append(out, one)
	}
	return out, reports, nil
}

// runLength is how long the run of a trial lasts, from the release on.
func runLength(spec *v1alpha1.TrialSpec) time.Duration {
	w := timeline.FromSchedule(spec.Schedule)
	return w.WarmUp + w.End()
}

// packed results of a client: in a ConfigMap of their own, or, where they are too large for one, in
// parts.
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

// keepWhole keeps a trial's results as they were before something was left out for a ConfigMap's
// size, until they are in its store. Where nothing was left out, it deletes what was kept of
// earlier results of the trial: a reader would believe that they are the last ones.
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

// Put writes the results ConfigMap of a trial, with the files beside it as far as there is room. It
// has no owner: results outlive the trial. The argument before is the trial as read, trial what
// becomes of it.
//
// The API server writes no two objects at once, and two managers may store results at a time. So
// the digest of the results is written into the status first, under the version that was read. The
// second of two managers fails there, and reads the trial again. A manager that replaces results
// has read them before it has read its own digest in the status.
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

// claim writes the digest of the results that come into the status, and nothing else of it. It
// fails for a manager that has not read the trial as it is now: one that does not lead any more, or
// whose cache is behind. Both get the new version.
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

// current fails where other results of the trial come: another manager has written their digest.
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

// replaced says how the trials ended whose results are replaced by those of a trial. They are the
// earlier trials, and the trial that was stored last, unless it is the same.
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
