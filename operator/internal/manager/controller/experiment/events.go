package experiment

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"assay.dev/assay/operator/api/v1alpha1"
)

// trialsDone counts trials once the status of their experiment has their outcome.
var trialsDone = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "assay_trials_done_total",
	Help: "Trials that are done, by outcome: Succeeded, Invalid or Failed.",
}, []string{"outcome"})

func init() {
	metrics.Registry.MustRegister(trialsDone)
}

// count adds the trials that the last write of the status added.
func count(s *scope) {
	before, after := s.before.Status.Trials, s.exp.Status.Trials
	for _, o := range []struct {
		outcome string
		more    int32
	}{
		{v1alpha1.ReasonSucceeded, after.Succeeded - before.Succeeded},
		{v1alpha1.ReasonInvalid, after.Invalid - before.Invalid},
		{v1alpha1.ReasonFailed, after.Failed - before.Failed},
	} {
		if o.more > 0 { // fewer: a user deleted Trials
			trialsDone.WithLabelValues(o.outcome).Add(float64(o.more))
		}
	}
}

// tell sends an event for each condition whose status or reason the last write changed, if users
// want to know of it. The event has the reason and message of the condition.
func (r *Reconciler) tell(s *scope) {
	for _, condition := range []string{v1alpha1.ExperimentAccepted, v1alpha1.ExperimentComplete, v1alpha1.ExperimentResultsStored} {
		after := meta.FindStatusCondition(s.exp.Status.Conditions, condition)
		before := meta.FindStatusCondition(s.before.Status.Conditions, condition)
		if after == nil || before != nil && before.Status == after.Status && before.Reason == after.Reason {
			continue
		}
		if kind := kindOf(after); kind != "" {
			r.Recorder.Eventf(s.exp, nil, kind, after.Reason, condition, "%s", after.Message)
		}
	}
}

// kindOf returns the type of the event for a condition. Empty: no event.
func kindOf(c *metav1.Condition) string {
	switch c.Reason {
	case v1alpha1.ReasonSystemNotFound, v1alpha1.ReasonInvalidSpec:
		if c.Type == v1alpha1.ExperimentAccepted {
			return corev1.EventTypeWarning
		}
	case v1alpha1.ReasonRetriesExhausted, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonStoreFailed, v1alpha1.ReasonPartlyStored,
		v1alpha1.ReasonStoreUnreachable, v1alpha1.ReasonStoreDenied, v1alpha1.ReasonStoreBucketMissing, v1alpha1.ReasonStoreCertificate,
		v1alpha1.ReasonStoreFull, v1alpha1.ReasonStoreCorrupted, v1alpha1.ReasonStoreNotConfigured, v1alpha1.ReasonStoreError,
		v1alpha1.ReasonInsufficientResources, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonDataFailed, v1alpha1.ReasonImagesFailed:
		return corev1.EventTypeWarning
	case v1alpha1.ReasonValid, v1alpha1.ReasonAllTrialsValid, v1alpha1.ReasonSuspended:
		return corev1.EventTypeNormal
	}
	return "" // TrialsRunning, Stored: users do not wait for these
}
