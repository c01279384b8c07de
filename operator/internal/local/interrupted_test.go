package local

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/local/folder"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// An interrupted trial was once judged by its missing pods. It counted as disturbed by the
// environment until the user started the command again, and used up disturbances.retryFor.
func TestATrialThatWasCutIsGivenUpAsInterrupted(t *testing.T) {
	began := metav1.NewMicroTime(time.Now().Add(-12 * time.Hour))
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrialStatus)
		want   string // reason of Valid
	}{
		"not begun":                {func(*v1alpha1.TrialStatus) {}, ""},
		"its pods did not run yet": {func(s *v1alpha1.TrialStatus) { s.Times.Admitted = &began }, v1alpha1.ReasonInterrupted},
		"amid its run": {func(s *v1alpha1.TrialStatus) {
			s.Times.Admitted, s.Times.Deployed, s.Times.Released, s.ZeroUnixNanos = &began, &began, &began, began.UnixNano()
			s.Conditions = []metav1.Condition{{Type: v1alpha1.TrialValid, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonInProgress, LastTransitionTime: metav1.Now()}}
		}, v1alpha1.ReasonInterrupted},
		"judged, and not cleaned up": {func(s *v1alpha1.TrialStatus) {
			s.Times.Admitted, s.ZeroUnixNanos = &began, began.UnixNano()
			s.Conditions = []metav1.Condition{{Type: v1alpha1.TrialValid, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, LastTransitionTime: metav1.Now()}}
		}, v1alpha1.ReasonSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			trial := builders.Trial("exp-0").Obj()
			trial.Namespace = folder.Namespace
			tc.change(&trial.Status)
			objects, err := folder.Open(t.TempDir(), "exp", clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(trial)
			if err != nil {
				t.Fatal(err)
			}
			status := object["status"]
			if _, err := objects.Create(folder.Trials, &unstructured.Unstructured{Object: object}); err != nil {
				t.Fatal(err)
			}
			if _, err := objects.Change(folder.Trials, folder.Namespace, "exp-0", "", true, func(o *unstructured.Unstructured) error {
				o.Object["status"] = status
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := giveUpInterrupted(objects, time.Now()); err != nil {
				t.Fatal(err)
			}
			after, err := objects.Get(folder.Trials, folder.Namespace, "exp-0")
			if err != nil {
				t.Fatal(err)
			}
			got := &v1alpha1.Trial{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(after.Object, got); err != nil {
				t.Fatal(err)
			}
			reason := ""
			if valid := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.TrialValid); valid != nil {
				reason = valid.Reason
			}
			if reason != tc.want || plan.Disturbed(got) {
				t.Errorf("Valid has the reason %q, want %q; disturbed: %v", reason, tc.want, plan.Disturbed(got))
			}
		})
	}
}
