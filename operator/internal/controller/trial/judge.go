package trial

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/results"
)

// judge says why the results of a trial cannot be trusted, or nothing.
func (r *Reconciler) judge(s *scope, t *results.Trial, startSpread time.Duration) (reason, message string) {
	spec := s.trial.Spec.DeepCopy()
	spec.Tolerances = plan.DefaultTolerances(spec.Tolerances)
	shardOf := map[string]int{}
	for _, replica := range s.layout.Replicas {
		shardOf[replica.Name] = replica.Shard
	}
	if reason, message := judgeClocks(spec, t.Pods, s.agentInterrupted); reason != "" {
		return reason, message
	}
	if reason, message := judgeFaults(spec, t.Faults, shardOf); reason != "" {
		return reason, message
	}
	if reason, message := judgeCuts(s.actions(), t.Faults, spec.Schedule.Measure.OrZero()); reason != "" {
		return reason, message
	}
	if reason, message := r.judgeSuccessors(s); reason != "" {
		return reason, message
	}
	if reason, message := r.judgePartitions(s); reason != "" {
		return reason, message
	}
	if reason, message := r.judgeNetwork(s, spec.Tolerances); reason != "" {
		return reason, message
	}
	if tolerated := spec.Tolerances.StartSpread.OrZero(); startSpread > tolerated {
		return v1alpha1.ReasonStartSpread, fmt.Sprintf("The clients started %v apart; %v are tolerated.", startSpread, tolerated)
	}
	for _, p := range t.Pods {
		if p.Restarts > s.expectedRestarts(p.Name) {
			return v1alpha1.ReasonPodRestarted, fmt.Sprintf("The kubelet restarted containers of %s %d times.", p.Name, p.Restarts)
		}
	}
	if reason, message := judgeResources(spec, t.Pods, s.interrupted); reason != "" {
		return reason, message
	}
	if reason, message := judgeGenerators(spec, t.Pods); reason != "" {
		return reason, message
	}
	if out, of := t.Summary.OutOfRange, t.Summary.Committed; float64(out) > spec.Tolerances.OutOfRange.OrZero()*float64(of) {
		return v1alpha1.ReasonHistogramOverflow, fmt.Sprintf("%d of %d latencies lay outside the histogram's range; tolerances.outOfRange is %s.",
			out, of, spec.Tolerances.OutOfRange)
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
