package trial

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
)

// judge says why the results of a trial cannot be trusted, or nothing.
func judge(spec *v1alpha1.TrialSpec, t *results.Trial, startSpread time.Duration) (reason, message string) {
	last := millis(timeline.FromSchedule(spec.Schedule).LastRequest())
	lateness := spec.Tolerances.FaultLateness.OrZero()
	for _, f := range t.Faults {
		if f.PlannedMillis > last {
			continue // after the last request it changes nothing that was measured
		}
		if f.Error != "" {
			return v1alpha1.ReasonFaultNotConfirmed, fmt.Sprintf("Fault %s of %s was not confirmed: %s.", f.Fault, f.Pod, f.Error)
		}
		// A revived replica needs its time to start; when it is asked to is what must be punctual.
		seen := f.ConfirmedMillis
		if f.Kind == string(timeline.Revive) {
			seen = f.StartedMillis
		}
		if late := seen - f.PlannedMillis; late > millis(lateness) || late < -millis(lateness) {
			return v1alpha1.ReasonFaultLate, fmt.Sprintf("Fault %s of %s was confirmed %.3f ms after its planned instant; %v are tolerated.", f.Fault, f.Pod, late, lateness)
		}
	}
	if tolerated := spec.Tolerances.StartSpread.OrZero(); startSpread > tolerated {
		return v1alpha1.ReasonStartSpread, fmt.Sprintf("The clients started %v apart; %v are tolerated.", startSpread, tolerated)
	}
	for _, p := range t.Pods {
		if p.Restarts > 0 {
			return v1alpha1.ReasonPodRestarted, fmt.Sprintf("The kubelet restarted containers of %s %d times.", p.Name, p.Restarts)
		}
	}
	if t.Summary.OutOfRange > 0 {
		return v1alpha1.ReasonHistogramOverflow, fmt.Sprintf("%d latencies lay outside the histogram's range.", t.Summary.OutOfRange)
	}
	if t.Summary.Committed == 0 {
		return v1alpha1.ReasonNothingMeasured, fmt.Sprintf("No transaction was committed in the window: %d errors, %d timeouts, %d aborts.",
			t.Summary.Errors, t.Summary.Timeouts, t.Summary.Aborted)
	}
	return "", ""
}

// outcome of a trial whose Valid condition is known: Succeeded; Invalid when it ran; Failed when it never did.
func outcome(t *v1alpha1.Trial) (reason, message string) {
	c := findCondition(t, v1alpha1.TrialValid)
	switch {
	case c.Status == metav1.ConditionTrue:
		return v1alpha1.ReasonSucceeded, c.Message
	case t.Status.ZeroUnixNanos != 0:
		return v1alpha1.ReasonInvalid, c.Reason + ": " + c.Message
	default:
		return v1alpha1.ReasonFailed, c.Reason + ": " + c.Message
	}
}

func findCondition(t *v1alpha1.Trial, condition string) *metav1.Condition {
	return meta.FindStatusCondition(t.Status.Conditions, condition)
}
