package experiment

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// accept expands the experiment. The first time that it can, it fixes the plan: it writes snapshots
// of the Systems and the text of the claims, then the seed and the seal.
func (r *Reconciler) accept(ctx context.Context, s *scope) error {
	if s.fixed() {
		// Templates and claims were checked when the plan was fixed, and have not changed since.
		s.plan, s.errs = plan.Expand(s.exp, s.systems)
		return nil
	}
	s.plan, s.errs = plan.Validate(s.exp, s.systems, r.Checks)
	if s.plan == nil {
		return nil
	}
	for _, fix := range []func(context.Context, *scope) error{r.takeSnapshots, r.sealClaims} {
		if err := fix(ctx, s); err != nil {
			s.plan, s.notFixed = nil, err
			return err
		}
	}
	s.exp.Status.Seed = r.seed(s.exp)
	r.chooseStore(s.exp)
	s.plan.At = s.now.Time
	s.step = plan.Next(s.plan, s.exp.Status.Seed, s.trials)
	return r.updateStatus(ctx, s)
}

func (r *Reconciler) seed(exp *v1alpha1.Experiment) int64 {
	if exp.Spec.Seed != nil {
		return *exp.Spec.Seed
	}
	return r.Seed()
}

// takeSnapshots stores the present Systems. It deletes snapshots of an attempt that ended before
// the seed was written.
func (r *Reconciler) takeSnapshots(ctx context.Context, s *scope) error {
	wanted := map[string]bool{}
	for _, ref := range s.exp.Spec.Systems {
		name, err := r.takeSnapshot(ctx, s.exp, ref.Name, s.systems[ref.Name])
		if err != nil {
			return err
		}
		s.revisions[ref.Name] = name
		wanted[name] = true
	}
	existing, _, err := r.listRevisions(ctx, s.exp)
	if err != nil {
		return err
	}
	for i := range existing {
		if wanted[existing[i].Name] {
			continue
		}
		if err := r.Client.Delete(ctx, &existing[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete an outdated snapshot of System %s: %w", existing[i].Labels[v1alpha1.LabelSystem], err)
		}
	}
	return nil
}

func (r *Reconciler) takeSnapshot(ctx context.Context, exp *v1alpha1.Experiment, system string, spec v1alpha1.SystemSpec) (string, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encode System %s: %w", system, err)
	}
	snapshot := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: exp.Namespace,
			Name:      snapshotName(exp, system, raw),
			Labels:    map[string]string{v1alpha1.LabelExperiment: exp.Name, v1alpha1.LabelSystem: system},
		},
		Data:     runtime.RawExtension{Raw: raw},
		Revision: 1,
	}
	if err := controllerutil.SetControllerReference(exp, snapshot, r.Client.Scheme()); err != nil {
		return "", fmt.Errorf("own the snapshot of System %s: %w", system, err)
	}
	if err := r.Client.Create(ctx, snapshot); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create the snapshot of System %s: %w", system, err)
	}
	return snapshot.Name, nil
}

// advance takes the next step of the plan.
func (r *Reconciler) advance(ctx context.Context, s *scope) error {
	if err := r.decide(ctx, s); err != nil {
		return err
	}
	if err := withdraw(ctx, r.Client, s); err != nil {
		return err
	}
	if err := r.puller().hold(ctx, s); err != nil {
		return err
	}
	if err := r.data(ctx, s); err != nil {
		return err
	}
	if s.step.Create != nil {
		if err := r.createTrial(ctx, s); err != nil {
			return s.notCreated(err)
		}
		s.step.Counts.Active++
		if s.exp.Status.StartTime == nil {
			s.exp.Status.StartTime = &s.now
		}
	}
	s.lookAgain(s.step.Budget.Again)
	switch {
	case !s.step.Done:
		s.exp.Status.CompletionTime = nil
	case s.exp.Status.CompletionTime == nil:
		s.exp.Status.CompletionTime = &s.now
	}
	return nil
}

// decide asks the plan until the next trial has an unused number. The remaining trials do not show
// the number of a deleted last trial.
func (r *Reconciler) decide(ctx context.Context, s *scope) error {
	measuring, _ := plan.Split(s.trials)
	s.plan.Open, s.plan.At = model.OpenClaims(s.plan, trialLines(measuring)), s.now.Time
	for first := int32(0); ; {
		s.step = plan.NextFrom(s.plan, s.exp.Status.Seed, s.trials, first)
		if s.step.Create == nil {
			return nil
		}
		taken, err := r.taken(ctx, s, s.step.Create.Number)
		if err != nil {
			return s.notCreated(err)
		}
		if !taken {
			return nil
		}
		first = s.step.Create.Number + 1
	}
}

// notCreated writes to the status why the next trial is not made, if only a user can change that.
// Otherwise the status would say that the trial runs.
func (s *scope) notCreated(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		s.step.Message = fmt.Sprintf("Trial %d cannot be made, and is tried again: %s", s.step.Create.Number, conditions.Sentence(err.Error()))
	}
	return err
}

// taken reports whether a trial of that number was deleted and its results still exist: another
// trial with its name would overwrite them.
func (r *Reconciler) taken(ctx context.Context, s *scope, number int32) (bool, error) {
	layout := placement.Layout{Trial: trialName(s.exp, number)}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(configMapKind)
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.exp.Namespace, Name: layout.ResultsConfigMap()}, found)
	if err != nil {
		return false, wrap("look for results under the next Trial's name", client.IgnoreNotFound(err))
	}
	// The cache may not have seen a trial that was created a while ago and already has results.
	trial := &v1alpha1.Trial{}
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: s.exp.Namespace, Name: layout.Trial}, trial)
	return apierrors.IsNotFound(err), wrap("look for the Trial of results that are there", client.IgnoreNotFound(err))
}

func (r *Reconciler) createTrial(ctx context.Context, s *scope) error {
	spec := s.step.Create
	spec.System.Revision = s.revisions[spec.System.Name]
	if kept := s.exp.Status.Seal; kept != nil {
		spec.Seal = kept.SHA256
	}
	if a := s.exp.Status.Archive; a != nil {
		spec.ResultsStore = a.Store
	}
	trial := &v1alpha1.Trial{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.exp.Namespace,
			Name:      trialName(s.exp, spec.Number),
			Labels: map[string]string{
				v1alpha1.LabelExperiment: s.exp.Name,
				v1alpha1.LabelPoint:      fmt.Sprint(spec.Point.Index),
			},
		},
		Spec: *spec,
	}
	if err := controllerutil.SetControllerReference(s.exp, trial, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own a Trial: %w", err)
	}
	err := r.Client.Create(ctx, trial)
	if apierrors.IsAlreadyExists(err) {
		return r.checkOwned(ctx, s, trial.Name)
	}
	return wrap("create a Trial", err)
}

// checkOwned accepts an existing Trial if this experiment owns it: an earlier reconcile created it,
// and the cache has not seen it.
func (r *Reconciler) checkOwned(ctx context.Context, s *scope, name string) error {
	trial := &v1alpha1.Trial{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.exp.Namespace, Name: name}, trial); err != nil {
		return fmt.Errorf("read the Trial that was created before: %w", err)
	}
	if !metav1.IsControlledBy(trial, s.exp) {
		return fmt.Errorf("the name of the next Trial is taken by an object that this experiment does not own; delete that Trial")
	}
	return nil
}

// missing lists the Systems that were not found, by the errors.
func missing(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		if err.Type == field.ErrorTypeNotFound {
			names = append(names, fmt.Sprint(err.BadValue))
		}
	}
	return names
}
