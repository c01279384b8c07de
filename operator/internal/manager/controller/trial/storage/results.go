package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
// earlier results of the trial: a reader would believe that they are the last ones. The digest is
// that of what is to be in the store.
func (r Results) keepWhole(ctx context.Context, trial *v1alpha1.Trial, whole results.Trial, fitted []byte) (digest string, err error) {
	o := store.Describe("", fitted)
	if trial.Spec.ResultsStore == "" {
		return o.SHA256, nil
	}
	encoded, err := results.FitTrial(whole, results.WholeLimit)
	if err != nil {
		return "", err
	}
	folder, err := store.TrialFolder(trial)
	if err != nil {
		return "", err
	}
	if bytes.Equal(encoded, fitted) {
		return o.SHA256, r.Kept(trial).Remove(ctx, folder.Key(TrialFile))
	}
	o = store.Describe(folder.Key(TrialFile), encoded)
	if err := r.Kept(trial).Put(ctx, o, bytes.NewReader(encoded)); err != nil {
		return "", fmt.Errorf("keep the whole results of the trial: %w", err)
	}
	return o.SHA256, nil
}

// Put writes the results ConfigMap of a trial, with the files beside it as far as there is room. It
// has no owner: results outlive the trial. judged: the trial's outcome was known when it was read.
// It returns the digest of the results.
func (r Results) Put(ctx context.Context, trial *v1alpha1.Trial, judged bool, layout *placement.Layout, t *results.Trial, beside Attachments) (digest string, err error) {
	r.nameMachines(ctx, t)
	if r.Software != nil {
		t.Software = r.Software(ctx)
	}
	whole, limit := *t, render.ConfigMapLimit
	packs, err := beside.pack(t, limit)
	if err != nil {
		return "", err
	}
	whole.Rendered, whole.Reports = t.Rendered, t.Reports
	for _, packed := range packs {
		limit -= len(packed)
	}
	encoded, err := results.FitTrial(*t, limit)
	if err != nil {
		return "", fmt.Errorf("fit the results into a ConfigMap: %w", err)
	}
	if err := r.current(ctx, trial, judged); err != nil { // before what is kept is replaced
		return "", fmt.Errorf("store the trial's results: %w", err)
	}
	if digest, err = r.keepWhole(ctx, trial, whole, encoded); err != nil {
		return "", err
	}
	if packs[results.StoredKey], err = results.Pack(encoded); err != nil {
		return "", fmt.Errorf("pack the results: %w", err)
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
		err = r.putAgain(ctx, trial, judged, cm)
	}
	if err != nil {
		return "", fmt.Errorf("store the trial's results: %w", err)
	}
	return digest, nil
}

// current fails for a manager that has not read the trial as it is now. One that does not lead any
// more has read it before its successor judged it. One whose cache is behind has read it before it
// wrote the digest of these results into the status itself. It could not write that of others any
// more, and the status would name results that are not there.
func (r Results) current(ctx context.Context, trial *v1alpha1.Trial, judged bool) error {
	now := &v1alpha1.Trial{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(trial), now); err != nil {
		return err
	}
	if now.UID != trial.UID || known(now) && !judged || now.Status.ResultsDigest != trial.Status.ResultsDigest {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("trials").GroupResource(), trial.Name, errors.New("another manager has judged it"))
	}
	return nil
}

// putAgain replaces results that were stored before their trial's status said so.
func (r Results) putAgain(ctx context.Context, trial *v1alpha1.Trial, judged bool, cm *corev1.ConfigMap) error {
	stored := &corev1.ConfigMap{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(cm), stored); err != nil {
		return err
	}
	if err := r.current(ctx, trial, judged); err != nil {
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

// known reports whether a trial has an outcome.
func known(t *v1alpha1.Trial) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	return c != nil && c.Status != metav1.ConditionUnknown
}
