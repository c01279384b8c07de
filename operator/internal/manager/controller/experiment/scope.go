package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// scope has the observations and decisions of one reconcile. Phases after observe read it instead
// of the API.
type scope struct {
	before, exp *v1alpha1.Experiment // before: as last written; exp: as it should become
	now         metav1.Time
	trials      []v1alpha1.Trial
	// systems by name: the snapshots if the plan is fixed, otherwise the present Systems.
	systems map[string]v1alpha1.SystemSpec
	// revisions are the names of the snapshots by System.
	revisions map[string]string
	// sealed is the text of the seal. Nil: there is none.
	sealed json.RawMessage

	plan     *plan.Plan      // nil: not accepted
	errs     field.ErrorList // why it is not accepted
	notFixed error           // why the plan could not be fixed
	step     plan.Step
	again    time.Duration // when to look again at facts that no event reports; 0: never
	built    *results.Experiment
	stored   stored
	recurs   string // progress of an experiment that recurs
}

// stored is the outcome of storing the results.
type stored struct {
	done    bool // some trials were done, so there were results to store
	err     error
	leftOut []string
	digest  string // of the results, see v1alpha1.AnnotationResultsDigest
}

// fixed reports whether the plan is fixed: the snapshots and the seed have been written.
func (s *scope) fixed() bool { return s.exp.Status.Seed != 0 }

// observe reads all objects from which the phases decide.
func (r *Reconciler) observe(ctx context.Context, exp *v1alpha1.Experiment) (*scope, error) {
	s := &scope{before: exp.DeepCopy(), exp: exp, now: metav1.NewTime(r.Clock.Now()),
		systems: map[string]v1alpha1.SystemSpec{}, revisions: map[string]string{}}
	var err error
	if s.trials, err = listTrials(ctx, r.Client, exp); err != nil {
		return nil, err
	}
	if s.fixed() {
		return s, r.observeSnapshots(ctx, s)
	}
	return s, r.observeSystems(ctx, s)
}

func (r *Reconciler) observeSystems(ctx context.Context, s *scope) error {
	for _, ref := range s.exp.Spec.Systems {
		system := &v1alpha1.System{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.exp.Namespace, Name: ref.Name}, system)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read System %s: %w", ref.Name, err)
		}
		s.systems[ref.Name] = system.Spec
	}
	return nil
}

func (r *Reconciler) observeSnapshots(ctx context.Context, s *scope) error {
	snapshots, seals, err := r.listRevisions(ctx, s.exp)
	if err != nil {
		return err
	}
	s.observeSeal(seals)
	for _, snapshot := range snapshots {
		name := snapshot.Labels[v1alpha1.LabelSystem]
		var spec v1alpha1.SystemSpec
		if err := json.Unmarshal(snapshot.Data.Raw, &spec); err != nil {
			return fmt.Errorf("read the snapshot %s: %w", snapshot.Name, err)
		}
		s.systems[name], s.revisions[name] = spec, snapshot.Name
	}
	return nil
}

// listTrials lists the Trials of an experiment, without those of an earlier one with its name.
func listTrials(ctx context.Context, reader client.Reader, exp *v1alpha1.Experiment) ([]v1alpha1.Trial, error) {
	list := &v1alpha1.TrialList{}
	err := reader.List(ctx, list, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name})
	if err != nil {
		return nil, fmt.Errorf("list the Trials of the experiment: %w", err)
	}
	trials := slices.DeleteFunc(list.Items, func(t v1alpha1.Trial) bool { return !metav1.IsControlledBy(&t, exp) })
	slices.SortFunc(trials, func(a, b v1alpha1.Trial) int { return int(a.Spec.Number) - int(b.Spec.Number) })
	return trials, nil
}

// listRevisions lists the snapshots of Systems that an experiment took, and its sealed texts.
func (r *Reconciler) listRevisions(ctx context.Context, exp *v1alpha1.Experiment) (snapshots, seals []appsv1.ControllerRevision, err error) {
	list := &appsv1.ControllerRevisionList{}
	err = r.Reader.List(ctx, list, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name})
	if err != nil {
		return nil, nil, fmt.Errorf("list the snapshots of the experiment: %w", err)
	}
	for _, c := range list.Items {
		switch {
		case !metav1.IsControlledBy(&c, exp):
		case c.Labels[v1alpha1.LabelSystem] != "":
			snapshots = append(snapshots, c)
		case c.Labels[v1alpha1.LabelSeal] != "":
			seals = append(seals, c)
		}
	}
	return snapshots, seals, nil
}

// shortUID distinguishes experiments with the same name in the names of their objects.
func shortUID(exp *v1alpha1.Experiment) string { return hash(string(exp.UID))[:4] }

// trialName is deterministic, so that a new Trial that the cache has not seen yet is not created
// twice.
func trialName(exp *v1alpha1.Experiment, number int32) string {
	return fmt.Sprintf("%s-%s-%d", exp.Name, shortUID(exp), number)
}

// resultsName is the ConfigMap with an experiment's results. A later experiment with the same name
// has another one.
func resultsName(exp *v1alpha1.Experiment) string {
	return fmt.Sprintf("%s-%s-results", exp.Name, shortUID(exp))
}

// snapshotName depends on the content of the System and on the experiment, since the snapshot of a
// deleted experiment may still exist.
func snapshotName(exp *v1alpha1.Experiment, system string, raw []byte) string {
	return fmt.Sprintf("%s-%s-%s", exp.Name, system, hash(string(exp.UID) + "\n" + string(raw))[:10])
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
