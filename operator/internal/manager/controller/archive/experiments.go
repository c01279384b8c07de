package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// Files of an experiment's folder. The folder also has files of the bundle of its results, by their
// names in the bundle.
const (
	experimentFile = "experiment.json"
	resultsFile    = results.ExperimentKey
	// BundleFile has all these files, and the data that the cluster keeps of each trial.
	BundleFile = "bundle.tar.gz"
)

// Experiments stores experiments. It stores them first when they are accepted, which also shows
// whether the store works. It stores them again when they are complete and all of their trials are
// stored. All fields are needed.
type Experiments struct {
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	Stores *store.Registry
	Gates  *Gates
	// Bundle writes the bundle of the results in a ConfigMap.
	Bundle func(ctx context.Context, stored corev1.ConfigMap, w io.Writer) error
	// Clock does not follow steps of the wall clock.
	Clock clock.PassiveClock

	// doubts are when results first differed from the digest in the status.
	doubts looks
}

const (
	// settled is how long results may differ from the digest in the status before they count as
	// changed by another program. A manager writes the results first. If it ends in between, its
	// successor writes both again, a lease later.
	settled = time.Minute
	// settling is how soon to compare them again.
	settling = 2 * time.Second
)

// errUnsettled says that the results and the digest in the status may be from different writes.
var errUnsettled = errors.New("the results are being written")

// Reconcile brings the stored files of one experiment up to date.
func (r *Experiments) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	exp := &v1alpha1.Experiment{}
	if err := r.Client.Get(ctx, req.NamespacedName, exp); err != nil {
		r.doubts.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if exp.Status.Archive == nil || !exp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	due, inStore, err := r.due(ctx, exp)
	var problem *store.Problem
	switch {
	case errors.Is(err, errUnsettled):
		return ctrl.Result{RequeueAfter: settling}, nil
	case errors.As(err, &problem):
		return r.tell(ctx, exp, *exp.Status.Archive, err, retryAlone)
	case err != nil:
		return ctrl.Result{}, err
	case inStore: // an earlier attempt may have reported a problem
		return r.tell(ctx, exp, *exp.Status.Archive, nil, 0)
	case due == nil && exp.Status.Archive.Location != "":
		return ctrl.Result{}, nil
	}
	name := exp.Status.Archive.Store
	if left := r.Gates.closed(name); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	next := *exp.Status.Archive
	err = r.store(ctx, exp, due, &next)
	after := r.Gates.done(name, err)
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	return r.tell(ctx, exp, next, err, after)
}

// tell writes the outcome of storing, if it has changed.
func (r *Experiments) tell(ctx context.Context, exp *v1alpha1.Experiment, next v1alpha1.ResultsArchive, err error, after time.Duration) (ctrl.Result, error) {
	name := next.Store
	next.Reason, next.Message = "", ""
	if err != nil {
		failures.WithLabelValues(name).Inc()
		next.Reason, next.Message = store.Explain(err)
		next.Message = conditions.Truncate(conditions.Sentence(next.Message), conditions.MaxMessage)
		ctrl.LoggerFrom(ctx).V(1).Info("Storing an experiment failed", "store", name, "reason", next.Reason, "cause", err.Error())
	}
	if next != *exp.Status.Archive {
		before := exp.DeepCopy()
		exp.Status.Archive = &next
		err := r.Client.Status().Patch(ctx, exp, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return ctrl.Result{RequeueAfter: after}, retryConflict(err)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// due returns the results of the experiment if they must be stored now: they are final, all trials
// are stored, and the results are not. Otherwise it returns nil. inStore: the store already has
// them.
func (r *Experiments) due(ctx context.Context, exp *v1alpha1.Experiment) (m *corev1.ConfigMap, inStore bool, err error) {
	if !meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) || exp.Status.ResultsConfigMap == "" {
		return nil, false, nil
	}
	trials := &v1alpha1.TrialList{}
	if err := r.Client.List(ctx, trials, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name}); err != nil {
		return nil, false, fmt.Errorf("list the experiment's trials: %w", err)
	}
	if slices.ContainsFunc(trials.Items, func(t v1alpha1.Trial) bool { return metav1.IsControlledBy(&t, exp) && waits(&t) }) {
		return nil, false, nil // the event of the last one continues
	}
	m = &corev1.ConfigMap{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: exp.Namespace, Name: exp.Status.ResultsConfigMap}, m); err != nil {
		return nil, false, client.IgnoreNotFound(err)
	}
	if want := exp.Status.ResultsDigest; want != "" && want != results.Digest(m.Data, m.BinaryData) {
		// The cache may be older than the latest results: their event continues.
		now := &v1alpha1.Experiment{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(exp), now); err != nil {
			return nil, false, client.IgnoreNotFound(err)
		}
		if now.Status.ResultsDigest != want {
			return nil, false, nil
		}
		if r.doubts.since(exp, r.Clock.Now()) < settled {
			return nil, false, errUnsettled
		}
		return nil, false, &store.Problem{Reason: v1alpha1.ReasonStoreCorrupted, Text: fmt.Sprintf("the results in ConfigMap %s are not those that Assay wrote: somebody has changed them", m.Name)}
	}
	r.doubts.forget(client.ObjectKeyFromObject(exp))
	files, err := results.StoredExperiment(m.Data, m.BinaryData)
	if err != nil {
		return nil, false, fmt.Errorf("read the results in ConfigMap %s: %w", m.Name, err)
	}
	m.Data = files
	switch digest := m.Annotations[v1alpha1.AnnotationResultsDigest]; digest {
	case "":
		return nil, false, nil
	case exp.Status.Archive.Digest:
		return nil, true, nil
	}
	return m, false, nil
}

// store puts the experiment into its store, together with its results if they are given.
func (r *Experiments) store(ctx context.Context, exp *v1alpha1.Experiment, stored *corev1.ConfigMap, next *v1alpha1.ResultsArchive) error {
	s, err := r.Stores.Get(next.Store)
	if err != nil {
		return err
	}
	folder := store.ExperimentFolder(exp.Namespace, exp.Name, string(exp.UID))
	about, err := describe(exp)
	if err != nil {
		return err
	}
	written := &written{s: s, folder: folder}
	if err := written.put(ctx, experimentFile, about); err != nil {
		return err
	}
	next.Location = s.Location(string(folder))
	if stored == nil {
		return nil
	}
	e, err := results.DecodeExperiment([]byte(stored.Data[resultsFile]))
	if err != nil {
		return fmt.Errorf("read the results in ConfigMap %s: %w", stored.Name, err)
	}
	for _, key := range slices.Sorted(maps.Keys(stored.Data)) {
		if err := written.put(ctx, key, []byte(stored.Data[key])); err != nil {
			return err
		}
	}
	if err := r.storeBundle(ctx, *stored, written); err != nil {
		return err
	}
	m := store.Manifest{Kind: "Experiment", Namespace: exp.Namespace, Name: exp.Name, UID: string(exp.UID)}
	if exp.Status.CompletionTime != nil {
		m.Completed = exp.Status.CompletionTime.UTC()
	}
	for _, t := range e.Trials {
		_, o, err := store.ReadManifest(ctx, s, folder.Trial(t.Name))
		switch {
		case errors.Is(err, store.ErrNotFound):
			m.Missing = append(m.Missing, t.Name) // the Trial was deleted before it was stored
		case err != nil:
			return err
		default:
			written.objects = append(written.objects, o)
		}
	}
	m.Objects = written.objects
	if err := store.WriteManifest(ctx, s, folder, m); err != nil {
		return err
	}
	next.Digest = stored.Annotations[v1alpha1.AnnotationResultsDigest]
	return nil
}

// describe returns the experiment in a form that can be applied again.
func describe(exp *v1alpha1.Experiment) ([]byte, error) {
	text, err := json.MarshalIndent(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Experiment", "metadata": map[string]string{"namespace": exp.Namespace, "name": exp.Name}, "spec": exp.Spec,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the experiment: %w", err)
	}
	return append(text, '\n'), nil
}

// written has the objects that one attempt has stored.
type written struct {
	s       store.Remote
	folder  store.Folder
	objects []store.Object
}

func (w *written) put(ctx context.Context, name string, data []byte) error {
	o := store.Describe(w.folder.Key(name), data)
	if err := w.s.Put(ctx, o, bytes.NewReader(data)); err != nil {
		return err
	}
	w.objects = append(w.objects, o)
	return nil
}

// storeBundle stores the bundle, and those of its files that are in no folder: the report, the
// tables. It first writes the bundle to a file, since it may be large.
func (r *Experiments) storeBundle(ctx context.Context, stored corev1.ConfigMap, w *written) error {
	file, err := os.CreateTemp("", "bundle-*.tar.gz")
	if err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }() // the file is stored, or made again later
	if err := r.Bundle(ctx, stored, file); err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	rewind := func() error { _, err := file.Seek(0, io.SeekStart); return err }
	if err := rewind(); err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	wanted := func(name string) bool { return !strings.Contains(name, "/") && stored.Data[name] == "" }
	if err := archive.Read(file, wanted, func(name string, data []byte) error { return w.put(ctx, name, data) }); err != nil {
		return err
	}
	if err := rewind(); err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	o, err := store.DescribeStream(w.folder.Key(BundleFile), file)
	if err == nil {
		err = rewind()
	}
	if err == nil {
		err = w.s.Put(ctx, o, file)
	}
	if err != nil {
		return err
	}
	w.objects = append(w.objects, o)
	return nil
}

// SetupWithManager registers the controller.
func (r *Experiments) SetupWithManager(mgr ctrl.Manager) error {
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.Experiment{}, handler.OnlyControllerOwner())
	return wrap("set up the archive of experiments", ctrl.NewControllerManagedBy(mgr).
		Named("archive-experiments").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		For(&v1alpha1.Experiment{}).
		Watches(&v1alpha1.Trial{}, owner, builder.WithPredicates(wasStored)).
		Complete(r))
}

// wasStored selects the changes of trials that may end the wait for them.
var wasStored = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*v1alpha1.Trial)
		after, okAfter := e.ObjectNew.(*v1alpha1.Trial)
		return okBefore && okAfter && waits(before) && !waits(after)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return true },
}
