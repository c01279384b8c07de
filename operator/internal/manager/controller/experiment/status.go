package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// maxMessage keeps conditions readable. kubectl apply shows the whole list of errors.
const maxMessage = 2048

// updateStatus computes the status from the observations and decisions, and writes it if it
// changed. Events and metrics follow a successful write, so that they never report a change that
// was not written.
func (r *Reconciler) updateStatus(ctx context.Context, s *scope) error {
	status := &s.exp.Status
	status.ObservedGeneration = s.exp.Generation
	if s.plan != nil {
		status.Trials = s.step.Counts
		status.DisturbedSeconds = int64(s.step.Disturbed.Seconds())
		status.NodeSeconds = int64(s.step.NodeTime.Seconds())
		status.Points = int32(len(s.plan.Points))
	}
	setAccepted(s)
	setComplete(s)
	setWithinBudget(s)
	setResultsStored(s)
	setCapacities(s)
	setClaims(s)
	setSupported(s)
	setKstatus(s)
	setProgress(s)
	if equality.Semantic.DeepEqual(s.before.Status, *status) {
		return nil
	}
	// An update carries the version that was read. So a manager that has lost the lead cannot write
	// another seed. A merge patch would leave out counts that are 0 before and after, which the
	// schema requires.
	if err := r.Client.Status().Update(ctx, s.exp); err != nil {
		return fmt.Errorf("write the experiment's status: %w", err)
	}
	r.tell(s)
	count(s)
	s.before = s.exp.DeepCopy()
	return nil
}

// setAccepted sets Accepted. s.plan exists exactly if the spec and its Systems fit together.
func setAccepted(s *scope) {
	switch names := missing(s.errs); {
	case s.plan != nil:
		s.set(v1alpha1.ExperimentAccepted, metav1.ConditionTrue, v1alpha1.ReasonValid,
			s.plan.Describe())
	case len(names) > 0 && s.fixed():
		s.set(v1alpha1.ExperimentAccepted, metav1.ConditionFalse, v1alpha1.ReasonSystemNotFound,
			fmt.Sprintf("The snapshot of System %s is gone; delete the experiment and apply it again.", strings.Join(names, ", ")))
	case len(names) > 0:
		s.set(v1alpha1.ExperimentAccepted, metav1.ConditionFalse, v1alpha1.ReasonSystemNotFound,
			fmt.Sprintf("System %s does not exist in the namespace; apply it.", strings.Join(names, ", ")))
	case len(s.errs) > 0:
		s.set(v1alpha1.ExperimentAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, s.errs.ToAggregate().Error())
	case apierrors.IsForbidden(s.notFixed):
		s.set(v1alpha1.ExperimentAccepted, metav1.ConditionUnknown, v1alpha1.ReasonSnapshotFailed,
			"The plan cannot be fixed, and is tried again: "+conditions.Sentence(s.notFixed.Error()))
	default:
		s.set(v1alpha1.ExperimentAccepted, metav1.ConditionUnknown, v1alpha1.ReasonSnapshotFailed,
			"A snapshot of a System could not be written; it is tried again. See the manager's log.")
	}
}

func setComplete(s *scope) {
	switch {
	case s.plan == nil:
		accepted := meta.FindStatusCondition(s.exp.Status.Conditions, v1alpha1.ExperimentAccepted)
		s.set(v1alpha1.ExperimentComplete, metav1.ConditionFalse, accepted.Reason, "No trial runs before the experiment is accepted.")
	case s.recurs != "":
		s.set(v1alpha1.ExperimentComplete, metav1.ConditionFalse, recursReason(s.exp), s.recurs)
	case s.step.Done:
		s.set(v1alpha1.ExperimentComplete, metav1.ConditionTrue, s.step.Reason, s.step.Message)
	default:
		reason, message := s.step.Reason, s.step.Message
		if c := stuck(s.trials); c != nil {
			reason, message = c.Reason, "The next trial has not started. "+c.Message
		}
		s.set(v1alpha1.ExperimentComplete, metav1.ConditionFalse, reason, message)
	}
}

// stuck returns why the current trial does not start, if the author of the experiment must act:
// time alone will not change it.
func stuck(trials []v1alpha1.Trial) *metav1.Condition {
	for i := range trials {
		if c := queueing(&trials[i]); c != nil && plan.Outcome(&trials[i]) == v1alpha1.ReasonInProgress {
			switch c.Reason {
			case v1alpha1.ReasonInsufficientResources, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonQuotaExceeded:
				return c
			}
		}
	}
	return nil
}

// queueing returns the condition of a trial that waits for its start, or nil.
func queueing(t *v1alpha1.Trial) *metav1.Condition {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialAdmitted)
	if c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	return c
}

func setResultsStored(s *scope) {
	switch {
	case s.exp.Spec.Recurrence != nil:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionUnknown, v1alpha1.ReasonRecurs, "Each run has results of its own.")
	case s.stored.err != nil:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionFalse, v1alpha1.ReasonStoreFailed, conditions.Sentence(s.stored.err.Error()))
	case s.built == nil && meta.FindStatusCondition(s.exp.Status.Conditions, v1alpha1.ExperimentResultsStored) != nil:
		// The results were not read this time, so the earlier condition stays.
	case s.exp.Status.Archive != nil:
		setArchived(s)
	case !s.stored.done:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionUnknown, v1alpha1.ReasonTrialsRunning, "No trial is done yet, so there are no results.")
	case len(s.stored.leftOut) > 0:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionTrue, v1alpha1.ReasonPartlyStored,
			fmt.Sprintf("ConfigMap %s lacks, for its size: %s.", s.exp.Status.ResultsConfigMap, strings.Join(s.stored.leftOut, "; ")))
	default:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionTrue, v1alpha1.ReasonStored,
			fmt.Sprintf("The results are in ConfigMap %s.", s.exp.Status.ResultsConfigMap))
	}
}

// setCapacities sets the results of the searches from the latest results.
func setCapacities(s *scope) {
	if s.built == nil {
		return
	}
	s.exp.Status.Capacities = nil
	for _, c := range s.built.Capacities {
		others := slices.DeleteFunc(slices.Clone(s.built.Axes), func(a results.Axis) bool { return a.Name == c.Axis })
		s.exp.Status.Capacities = append(s.exp.Status.Capacities, v1alpha1.CapacityStatus{
			Variant: plan.Variant(others, c.At), Outcome: v1alpha1.CapacityOutcome(c.Outcome), Trials: int32(c.Trials),
			CapacityMilli: milli(c.Capacity), LowMilli: milli(c.Low), HighMilli: milli(c.High), Message: conditions.Truncate(c.Message, conditions.MaxMessage),
		})
	}
}

// milli returns a load in thousandths; 0 for none.
func milli(load *float64) int64 {
	if load == nil {
		return 0
	}
	return int64(math.Round(*load * 1000))
}

// setClaims sets the verdicts from the latest results.
func setClaims(s *scope) {
	if s.built == nil {
		return
	}
	s.exp.Status.Claims = nil
	for _, c := range s.built.Claims {
		s.exp.Status.Claims = append(s.exp.Status.Claims, v1alpha1.ClaimStatus{
			Name: c.Name, Verdict: v1alpha1.Verdict(c.Verdict), Distance: cutAtPart(c.Distance), Message: cutAtPart(c.Message)})
	}
}

// theRest ends a text that was cut.
const theRest = "; the rest is in the report"

// cutAtPart returns at most conditions.MaxMessage bytes of a text whose parts end with a semicolon:
// as many whole parts as fit, and where to find the others. Results have the whole text.
func cutAtPart(text string) string {
	if len(text) <= conditions.MaxMessage {
		return text
	}
	kept := text[:conditions.MaxMessage-len(theRest)]
	if end := strings.LastIndex(kept, "; "); end > 0 {
		return kept[:end] + theRest
	}
	return strings.ToValidUTF8(kept, "") + theRest
}

func (s *scope) set(condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.exp.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: conditions.Truncate(message, maxMessage),
		ObservedGeneration: s.exp.Generation, LastTransitionTime: s.now,
	})
}
