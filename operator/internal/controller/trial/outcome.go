package trial

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// outcome of a trial whose Valid condition is known: Succeeded; Invalid when it ran; Failed when it
// never did.
func outcome(t *v1alpha1.Trial) (reason, message string) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	switch {
	case c.Status == metav1.ConditionTrue:
		return v1alpha1.ReasonSucceeded, c.Message
	case t.Status.ZeroUnixNanos != 0:
		return v1alpha1.ReasonInvalid, c.Reason + ": " + c.Message
	default:
		return v1alpha1.ReasonFailed, c.Reason + ": " + c.Message
	}
}
