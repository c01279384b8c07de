package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestReplacedResultsLeaveATrace(t *testing.T) {
	for name, tc := range map[string]struct {
		stored map[string]string
		want   string
	}{
		"by an older manager":             {nil, ""},
		"of the same trial":               {map[string]string{v1alpha1.AnnotationTrialUID: "b", v1alpha1.AnnotationOutcome: "Succeeded"}, ""},
		"of an earlier one":               {map[string]string{v1alpha1.AnnotationTrialUID: "a", v1alpha1.AnnotationOutcome: "Succeeded"}, "Succeeded"},
		"of several":                      {map[string]string{v1alpha1.AnnotationTrialUID: "a", v1alpha1.AnnotationOutcome: "Invalid", v1alpha1.AnnotationReplaced: "Succeeded"}, "Succeeded,Invalid"},
		"stored again, of an earlier one": {map[string]string{v1alpha1.AnnotationTrialUID: "b", v1alpha1.AnnotationOutcome: "Invalid", v1alpha1.AnnotationReplaced: "Succeeded"}, "Succeeded"},
	} {
		if got := replaced(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: tc.stored}}, "b"); got != tc.want {
			t.Errorf("results %s: %q, want %q", name, got, tc.want)
		}
	}
}
