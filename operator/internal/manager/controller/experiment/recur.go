package experiment

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/recurrence"
)

const (
	// lookAgain is the longest wait for a due time, since clocks are set, and zones change.
	lookAgain = 15 * time.Minute
	// maxSkipped is the longest message of status.recurrence.lastSkipped.
	maxSkipped = 1024
)

// runChanged selects the changes of a run on which the next run depends.
var runChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*v1alpha1.Experiment)
		after, okAfter := e.ObjectNew.(*v1alpha1.Experiment)
		return !okBefore || !okAfter || asRun(before) != asRun(after)
	},
}

// runsMaker is the part of a Reconciler that makes the runs of experiments that recur.
type runsMaker struct{ *Reconciler }

// recur is the only phase of an experiment that recurs. At a due time it makes a run, or says why
// not. It deletes runs beyond the number to keep.
func (r runsMaker) recur(ctx context.Context, s *scope) (ctrl.Result, error) {
	s.plan, s.errs = plan.Validate(s.exp, s.systems, r.Checks)
	schedule, errs := recurrence.New(field.NewPath("spec", "recurrence"), s.exp.Spec.Recurrence)
	if len(errs) > 0 {
		return ctrl.Result{}, nil // s.errs has the reasons; a change of the spec causes the next event
	}
	s.recurs = "The runs are being looked at." // for an early return
	runs, err := r.runsOf(ctx, s.exp)
	if err != nil {
		return ctrl.Result{}, err
	}
	status := s.exp.Status.Recurrence
	if status == nil {
		status = &v1alpha1.RecurrenceStatus{}
	}
	state := recurrence.State{Name: s.exp.Name, Now: s.now.Time, Since: s.exp.CreationTimestamp.Time, Suspended: s.exp.Spec.Suspend}
	if status.LastDueTime != nil {
		state.Since = status.LastDueTime.Time
	}
	if s.plan == nil {
		state.Refused = "The experiment is not accepted: " + conditions.Truncate(conditions.Sentence(s.errs.ToAggregate().Error()), maxSkipped/2)
	}
	for i := range runs {
		state.Runs = append(state.Runs, asRun(&runs[i]))
	}
	step := schedule.Next(state)
	if err := r.makeRun(ctx, s, &step); err != nil {
		return ctrl.Result{}, err
	}
	s.exp.Status.Recurrence = after(status, step)
	s.recurs = tellRuns(s.exp)
	if err := r.updateStatus(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	r.tellSkipped(s.exp, step)
	for _, name := range step.Delete { // last, so that a failure loses no due time
		if err := r.deleteRun(ctx, s.exp, name); err != nil {
			return ctrl.Result{}, err
		}
	}
	if step.Next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: min(step.Next.Sub(s.now.Time), lookAgain)}, nil
}

// runsOf lists the runs of an experiment, without those of an earlier one with its name.
func (r runsMaker) runsOf(ctx context.Context, exp *v1alpha1.Experiment) (runs []v1alpha1.Experiment, err error) {
	list := &v1alpha1.ExperimentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelRecurs: exp.Name}); err != nil {
		return nil, fmt.Errorf("list the runs of the experiment: %w", err)
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], exp) {
			runs = append(runs, list.Items[i])
		}
	}
	return runs, nil
}

// asRun returns an Experiment in the form that the decision uses. A refused Experiment runs
// nothing.
func asRun(exp *v1alpha1.Experiment) recurrence.Run {
	refused := meta.IsStatusConditionFalse(exp.Status.Conditions, v1alpha1.ExperimentAccepted)
	over := meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete)
	stored := meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentResultsStored)
	return recurrence.Run{Name: exp.Name, Going: !over && !refused, Disposable: over && stored || refused}
}

// makeRun makes the run of a step. If another Experiment has its name, the step skips the due time.
func (r runsMaker) makeRun(ctx context.Context, s *scope, step *recurrence.Step) error {
	if step.Create == "" {
		return nil
	}
	run := &v1alpha1.Experiment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.exp.Namespace, Name: step.Create,
			Labels:      map[string]string{v1alpha1.LabelRecurs: s.exp.Name},
			Annotations: map[string]string{v1alpha1.AnnotationDueTime: step.Due.UTC().Format(time.RFC3339)},
		},
		Spec: *s.exp.Spec.DeepCopy(),
	}
	run.Spec.Recurrence = nil
	if err := controllerutil.SetControllerReference(s.exp, run, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own a run: %w", err)
	}
	switch err := r.Client.Create(ctx, run); {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err): // a retry would fail, too
		step.Create, step.Reason, step.Message = "", v1alpha1.SkippedNotAccepted, conditions.Sentence(err.Error())
		return nil
	case !apierrors.IsAlreadyExists(err):
		return wrap("make run "+run.Name, err)
	}
	there := &v1alpha1.Experiment{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(run), there); err != nil {
		return fmt.Errorf("read the run that was made before: %w", err)
	}
	if !metav1.IsControlledBy(there, s.exp) {
		step.Create, step.Reason = "", v1alpha1.SkippedNameTaken
		step.Message = fmt.Sprintf("Experiment %s is there, and is no run of this experiment.", there.Name)
	}
	return nil
}

func (r runsMaker) deleteRun(ctx context.Context, exp *v1alpha1.Experiment, name string) error {
	run := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: exp.Namespace, Name: name}}
	err := r.Client.Delete(ctx, run, client.PropagationPolicy("Background"))
	return wrap("delete run "+name+", which is kept no longer", client.IgnoreNotFound(err))
}

// after returns the status after a step.
func after(before *v1alpha1.RecurrenceStatus, step recurrence.Step) *v1alpha1.RecurrenceStatus {
	status := before.DeepCopy()
	status.NextDueTime = nil
	if !step.Next.IsZero() {
		status.NextDueTime = &metav1.Time{Time: step.Next}
	}
	if step.Due.IsZero() {
		return status
	}
	status.LastDueTime = &metav1.Time{Time: step.Due}
	status.Skipped += int32(step.Missed)
	if step.Create != "" {
		status.Runs, status.LastRun = status.Runs+1, step.Create
		return status
	}
	status.Skipped++
	status.LastSkipped = &v1alpha1.SkippedRun{DueTime: metav1.Time{Time: step.Due}, Reason: step.Reason, Message: conditions.Truncate(step.Message, maxSkipped)}
	return status
}

// recursReason returns the reason of the condition Complete.
func recursReason(exp *v1alpha1.Experiment) string {
	if exp.Spec.Suspend {
		return v1alpha1.ReasonSuspended
	}
	return v1alpha1.ReasonRecurs
}

// tellRuns describes the progress of an experiment that recurs.
func tellRuns(exp *v1alpha1.Experiment) string {
	status := exp.Status.Recurrence
	text := "The next run is due at "
	if exp.Spec.Suspend {
		text = "No run is made while the experiment is suspended. The next one would be due at "
	}
	if status.NextDueTime == nil {
		text = "No further run is due"
	} else {
		text += status.NextDueTime.UTC().Format(time.RFC3339)
	}
	text += "."
	if status.LastRun != "" {
		text += fmt.Sprintf(" The last one is %s.", status.LastRun)
	}
	if l := status.LastSkipped; l != nil && status.LastDueTime.Equal(&l.DueTime) {
		text += fmt.Sprintf(" The one of %s was skipped (%s): %s", l.DueTime.UTC().Format(time.RFC3339), l.Reason, l.Message)
	}
	return text
}

// tellSkipped sends an event about a due time that has no run.
func (r runsMaker) tellSkipped(exp *v1alpha1.Experiment, step recurrence.Step) {
	if !step.Due.IsZero() && step.Create == "" && step.Reason != v1alpha1.SkippedSuspended {
		r.Recorder.Eventf(exp, nil, corev1.EventTypeWarning, step.Reason, "Recur", "The run of %s was skipped: %s", step.Due.UTC().Format(time.RFC3339), step.Message)
	}
}
