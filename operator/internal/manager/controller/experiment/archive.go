package experiment

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// chooseStore records the store of the results. It stays if the installation's default changes, so
// that all trials of an experiment are in one store.
func (r *Reconciler) chooseStore(exp *v1alpha1.Experiment) {
	if r.Store == nil {
		return
	}
	if name := r.Store(exp.Spec.Results); name != "" {
		exp.Status.Archive = &v1alpha1.ResultsArchive{Store: name}
	}
}

// setArchived sets ResultsStored for an experiment with a store, when its results are in the
// results ConfigMap. It is True when they are in the store, too.
func setArchived(s *scope) {
	a := s.exp.Status.Archive
	onwards := ""
	if !s.step.Done {
		onwards = " Trials go on."
	}
	switch c := unstored(s); {
	case a.Reason != "":
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionFalse, a.Reason, a.Message+" Results are kept in the cluster."+onwards)
	case c != nil && c.Status == metav1.ConditionFalse && c.Reason != v1alpha1.ReasonStoring:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionFalse, c.Reason, c.Message+onwards)
	case !s.stored.done:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionUnknown, v1alpha1.ReasonTrialsRunning, "No trial is done yet, so there are no results.")
	case c != nil || s.step.Done && a.Digest != s.stored.digest:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionFalse, v1alpha1.ReasonStoring, fmt.Sprintf(
			"Results of trials that are done are in the cluster, ConfigMap %s, and on the way to store %s.", s.exp.Status.ResultsConfigMap, a.Store))
	default:
		s.set(v1alpha1.ExperimentResultsStored, metav1.ConditionTrue, v1alpha1.ReasonStored, fmt.Sprintf(
			"The results are in ConfigMap %s and at %s.", s.exp.Status.ResultsConfigMap, a.Location))
	}
}

// unstored says why the results of a finished trial are not in the store. It returns the condition
// of the first such trial that has one, or nil if all are stored.
func unstored(s *scope) *metav1.Condition {
	var found *metav1.Condition
	for i := range s.trials {
		t := &s.trials[i]
		if t.Spec.ResultsStore == "" || !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete) ||
			meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialResultsStored) {
			continue
		}
		c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialResultsStored)
		if c != nil && c.Reason != v1alpha1.ReasonStoring {
			return c
		}
		found = &metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStoring}
	}
	return found
}

// archived returns the part of a trial's status on which the experiment's ResultsStored depends.
func archived(t *v1alpha1.Trial) string {
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialResultsStored); c != nil {
		return string(c.Status) + c.Reason + c.Message
	}
	return ""
}
