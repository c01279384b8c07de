package watch

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A trial with a missing image once said only "deploying" until its deadline.
func TestWhatAPodWaitsForIsShown(t *testing.T) {
	const missing = "Waiting for the pods or agents of e-0-kv-1 (kv: image lab/kv:1 is in none of .work/images), e-0-kv-0"
	for name, tc := range map[string]struct {
		condition metav1.Condition
		want      string
	}{
		"an image":     {metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPodsPending, Message: missing}, ": deploying, waiting for the pods or agents of e-0-kv-1 (kv: image lab/kv:1 is in none of .work/images), e-0-kv-0"},
		"only time":    {metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPodsPending, Message: "Waiting for the pods or agents of e-0-kv-0"}, ": deploying"},
		"a long story": {metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPodsPending, Message: "Waiting (" + strings.Repeat("x", 1000)}, ": deploying, waiting (" + strings.Repeat("x", 391) + "..."},
	} {
		trial := v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "e-0"}}
		tc.condition.Type = v1alpha1.TrialDeployed
		trial.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialAdmitted, Status: metav1.ConditionTrue}, tc.condition}
		exp := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e"}}
		exp.Status.Trials.Planned = 1
		if got := newProgress(exp, []v1alpha1.Trial{trial}, time.Unix(0, 0)); !strings.HasSuffix(got.trial, tc.want) {
			t.Errorf("%s: %q; want it to end with %q", name, got.trial, tc.want)
		}
	}
}
