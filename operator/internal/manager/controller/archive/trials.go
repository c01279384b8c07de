package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// Files of a trial's folder.
const (
	trialFile    = "trial.json"
	timelineFile = "timeline.csv"
	latencyFile  = "latency.hdr.base64"
	faultsFile   = "faults.json"
)

// Trials stores the results of complete trials. All fields are needed.
type Trials struct {
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Clock does not follow steps of the wall clock.
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Stores   *store.Registry
	Gates    *Gates

	// decoding lets only one trial at a time unpack its results, which takes memory.
	decoding sync.Mutex
	looks    looks
}

// looks records when this manager first looked at each object: a trial whose pods may still put
// files, or an experiment whose results are in doubt.
type looks struct {
	mu    sync.Mutex
	first map[types.NamespacedName]look
}

type look struct {
	of types.UID
	at time.Time
}

// since returns the time since the first look at an object.
func (l *looks) since(o client.Object, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = map[types.NamespacedName]look{}
	}
	key := client.ObjectKeyFromObject(o)
	if l.first[key].of != o.GetUID() {
		l.first[key] = look{o.GetUID(), now}
	}
	return now.Sub(l.first[key].at)
}

func (l *looks) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.first, key)
}

// Reconcile stores the results of one trial.
func (r *Trials) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	trial := &v1alpha1.Trial{}
	if err := r.Client.Get(ctx, req.NamespacedName, trial); err != nil {
		if apierrors.IsNotFound(err) {
			r.looks.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	if !waits(trial) || !trial.DeletionTimestamp.IsZero() {
		r.looks.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	name := trial.Spec.ResultsStore
	// Check this before the gate: a worker that passes the gate keeps it until the store has
	// answered.
	if left := r.replaceable(trial); left > 0 {
		err := r.tell(ctx, trial, metav1.ConditionFalse, v1alpha1.ReasonStoring,
			fmt.Sprintf("The results are in the cluster. Store %s checks no checksums, so they are stored once the requests with which pods put files have expired.", name))
		return ctrl.Result{RequeueAfter: left}, retryConflict(err)
	}
	if left := r.Gates.closed(name); left > 0 {
		if meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialResultsStored) == nil {
			err := r.tell(ctx, trial, metav1.ConditionFalse, v1alpha1.ReasonStoring, fmt.Sprintf("The results are in the cluster; store %s failed a moment ago and is tried again.", name))
			return ctrl.Result{RequeueAfter: left}, retryConflict(err)
		}
		return ctrl.Result{RequeueAfter: left}, nil
	}
	location, err := r.store(ctx, trial)
	after := r.Gates.done(name, err)
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	if err != nil {
		failures.WithLabelValues(name).Inc()
		reason, message := store.Explain(err)
		ctrl.LoggerFrom(ctx).V(1).Info("Storing a trial's results failed", "store", name, "reason", reason, "cause", err.Error())
		err := r.tell(ctx, trial, metav1.ConditionFalse, reason, conditions.Sentence(message)+" The results are kept in the cluster."+leftOut(trial))
		return ctrl.Result{RequeueAfter: after}, retryConflict(err)
	}
	reason := v1alpha1.ReasonStored
	if len(store.LeftOut(trial)) > 0 {
		reason = v1alpha1.ReasonPartlyStored
	}
	if err := r.tell(ctx, trial, metav1.ConditionTrue, reason, fmt.Sprintf("The results are at %s.%s", location, leftOut(trial))); err != nil {
		return ctrl.Result{}, retryConflict(err)
	}
	r.looks.forget(req.NamespacedName)
	return ctrl.Result{}, nil
}

// leftOut names, in a sentence, the files of the trial that found no room. It is empty if all did.
func leftOut(trial *v1alpha1.Trial) string {
	const shown = 5
	names := store.LeftOut(trial)
	if len(names) == 0 {
		return ""
	}
	if len(names) > shown {
		names = append(names[:shown:shown], store.AndMore)
	}
	return fmt.Sprintf(" Left out, since the store did not take them and there was no room for them in the cluster either: %s.", strings.Join(names, ", "))
}

// retryConflict ignores a conflict: the cache is only a moment behind.
func retryConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil // the event of the newer trial will come
	}
	return client.IgnoreNotFound(err)
}

// waits reports whether a trial's results must still be stored.
func waits(t *v1alpha1.Trial) bool {
	return t.Spec.ResultsStore != "" && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete) &&
		!meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialResultsStored)
}

// replaceable returns how long a pod may still replace its objects. Before that, a manifest could
// list an object that the pod then replaces. The instant in the status may be from another manager,
// whose clock was hours ahead. So a manager waits from its own first look at the complete trial, if
// that is earlier.
func (r *Trials) replaceable(trial *v1alpha1.Trial) time.Duration {
	s, err := r.Stores.Get(trial.Spec.ResultsStore)
	if err != nil || s.BindsContent() {
		return 0
	}
	now := r.Clock.Now()
	passed := max(now.Sub(completed(trial)), r.looks.since(trial, now))
	return time.Second + ticketLasts - passed // conditions have times in whole seconds
}

// tell writes the condition, if it changed.
func (r *Trials) tell(ctx context.Context, trial *v1alpha1.Trial, status metav1.ConditionStatus, reason, message string) error {
	before := trial.DeepCopy()
	changed := meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{
		Type: v1alpha1.TrialResultsStored, Status: status, Reason: reason, Message: conditions.Truncate(message, conditions.MaxMessage), ObservedGeneration: trial.Generation,
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
	if !changed {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, trial, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the trial's status: %w", err)
	}
	if status == metav1.ConditionFalse && reason != v1alpha1.ReasonStoring || reason == v1alpha1.ReasonPartlyStored {
		r.Recorder.Eventf(trial, nil, corev1.EventTypeWarning, reason, v1alpha1.TrialResultsStored, "%s", message)
	}
	return nil
}

// store puts everything of the trial into its store. It confirms an object of an earlier attempt,
// or puts it again. The manifest comes last.
func (r *Trials) store(ctx context.Context, trial *v1alpha1.Trial) (location string, err error) {
	s, err := r.Stores.Get(trial.Spec.ResultsStore)
	if err != nil {
		return "", err
	}
	folder, err := store.TrialFolder(trial)
	if err != nil {
		return "", err
	}
	location = s.Location(folder.Key(store.ManifestName))
	kept := &store.Cluster{Client: r.Client, Reader: r.Reader, Trial: trial}
	switch m, _, err := store.ReadManifest(ctx, s, folder); {
	case err == nil && m.UID == string(trial.UID):
		return location, kept.Clear(ctx) // an earlier manager ended between the manifest and the condition
	case err != nil && !errors.Is(err, store.ErrNotFound) && !store.IsCorrupted(err):
		return "", err
	}
	// There is no manifest, or the store damaged it, or it is that of a deleted trial with this
	// name. It does not show whether this trial's data is stored.
	written, pods, err := r.storeResults(ctx, s, kept, folder, trial)
	if err != nil {
		return "", err
	}
	if err := move(ctx, kept, s, folder); err != nil {
		return "", err
	}
	objects, err := confirm(ctx, s, folder, written)
	if err != nil {
		return "", err
	}
	m := store.Manifest{Kind: "Trial", Namespace: trial.Namespace, Name: trial.Name, UID: string(trial.UID), Experiment: trial.Spec.Experiment,
		Completed: completed(trial), Objects: objects, Missing: missing(folder, pods, objects), LeftOut: store.LeftOut(trial)}
	if err := store.WriteManifest(ctx, s, folder, m); err != nil {
		return "", err
	}
	return location, kept.Clear(ctx)
}

func completed(trial *v1alpha1.Trial) time.Time {
	return meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialComplete).LastTransitionTime.UTC()
}

// storeResults stores the manager's own results of the trial. A trial that never had a pod has no
// results.
func (r *Trials) storeResults(ctx context.Context, s store.Store, kept *store.Cluster, folder store.Folder, trial *v1alpha1.Trial) (written []store.Object, pods []string, err error) {
	r.decoding.Lock()
	defer r.decoding.Unlock()
	raw, err := r.results(ctx, kept, folder, trial)
	if err != nil || raw == nil {
		return nil, nil, err
	}
	t, err := results.DecodeTrial(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("read the results of trial %s: %w", trial.Name, err)
	}
	files, err := files(raw, t)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		o := store.Describe(folder.Key(f.name), f.data)
		if err := s.Put(ctx, o, bytes.NewReader(f.data)); err != nil {
			return nil, nil, err
		}
		written = append(written, o)
	}
	for _, p := range t.Pods {
		pods = append(pods, p.Name)
	}
	return written, pods, nil
}

// results returns the trial's results as JSON: the whole results if they did not fit the ConfigMap,
// otherwise those of the ConfigMap. Nil: there are none. Another manager that stored results at the
// same time may have left its own whole results.
func (r *Trials) results(ctx context.Context, kept *store.Cluster, folder store.Folder, trial *v1alpha1.Trial) ([]byte, error) {
	_, whole, err := store.ReadAll(ctx, kept, folder.Key(trialFile), results.WholeLimit)
	if err == nil {
		err = r.sameAs(trial, whole)
	}
	inConfigMap := trial.Status.ResultsConfigMap != ""
	switch {
	case err == nil:
		return whole, nil
	case errors.Is(err, store.ErrNotFound) && !inConfigMap:
		return nil, nil
	case errors.Is(err, store.ErrNotFound):
	case !store.IsCorrupted(err) || trial.Status.ResultsDigest == "" || !inConfigMap:
		return nil, err
	}
	m := &corev1.ConfigMap{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: trial.Status.ResultsConfigMap}, m); err != nil {
		return nil, fmt.Errorf("read the results of trial %s: %w", trial.Name, err)
	}
	encoded, err := results.StoredTrial(m.Data, m.BinaryData)
	if err != nil {
		return nil, fmt.Errorf("read the results of trial %s, ConfigMap %s: %w", trial.Name, m.Name, err)
	}
	return encoded, r.sameAs(trial, encoded)
}

// sameAs returns an error for results that the manager did not write. Only results that pass are
// decoded. Trials of earlier managers have no digest: for them, only the limits of decoding
// protect.
func (*Trials) sameAs(trial *v1alpha1.Trial, encoded []byte) error {
	if want := trial.Status.ResultsDigest; want == "" || want == store.Describe("", encoded).SHA256 {
		return nil
	}
	return &store.Problem{Reason: v1alpha1.ReasonStoreCorrupted, Text: fmt.Sprintf("the results of trial %s in the cluster are not those that Assay wrote: somebody has changed or deleted them", trial.Name)}
}

type file struct {
	name string
	data []byte
}

// files returns the files of a trial's results. One has all results. The others have parts of them,
// in formats that other programs read more easily.
func files(raw []byte, t results.Trial) ([]file, error) {
	all := []file{{trialFile, raw}}
	if t.Timeline != nil {
		var csv bytes.Buffer
		if err := results.WriteTimelineCSV(&csv, *t.Timeline); err != nil {
			return nil, fmt.Errorf("write the timeline: %w", err)
		}
		all = append(all, file{timelineFile, csv.Bytes()})
	}
	if t.Latency != "" {
		all = append(all, file{latencyFile, []byte(t.Latency + "\n")})
	}
	faults, err := json.MarshalIndent(slices.Concat([]results.FaultRecord{}, t.Faults), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the fault records: %w", err)
	}
	return append(all, file{faultsFile, append(faults, '\n')}), nil
}

// move puts data that waited in the cluster into the store. The trial's own results are already
// there.
func move(ctx context.Context, kept *store.Cluster, s store.Store, folder store.Folder) error {
	waiting, err := kept.List(ctx, folder.PodFiles())
	if err != nil {
		return err
	}
	for _, o := range waiting {
		_, content, err := store.ReadAll(ctx, kept, o.Key, protocol.ClientResultLimit)
		if err != nil {
			return err
		}
		if err := s.Put(ctx, o, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return nil
}

// confirm lists the stored objects of the trial, and confirms those that the pods put there
// themselves. The objects just written are confirmed already.
func confirm(ctx context.Context, s store.Remote, folder store.Folder, written []store.Object) ([]store.Object, error) {
	handed, err := s.List(ctx, folder.PodFiles())
	if err != nil {
		return nil, err
	}
	for _, o := range handed {
		if err := s.Confirm(ctx, o); err != nil {
			return nil, err
		}
	}
	return slices.Concat(written, handed), nil
}

// missing names the pods without stored results.
func missing(folder store.Folder, pods []string, objects []store.Object) []string {
	var none []string
	for _, p := range pods {
		if !slices.ContainsFunc(objects, func(o store.Object) bool { return folder.Pod(o.Key) == p }) {
			none = append(none, p)
		}
	}
	slices.Sort(none)
	return none
}

// SetupWithManager registers the controller.
func (r *Trials) SetupWithManager(mgr ctrl.Manager) error {
	return wrap("set up the archive of trials", ctrl.NewControllerManagedBy(mgr).
		Named("archive-trials").
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		For(&v1alpha1.Trial{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			t, ok := o.(*v1alpha1.Trial)
			return ok && waits(t)
		}))).
		Complete(r))
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
