package experiment_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// A user could once delete a valid trial to run it again, without a trace, and so choose a verdict.
func TestDeletedTrialsAreTold(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	exp := s.settle()
	deleted := false
	for n := 0; !meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete); n++ {
		if n > 20 {
			t.Fatal("the experiment does not end")
		}
		trial := s.finish(v1alpha1.ReasonSucceeded)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: trial.Name + "-results",
			Labels:      map[string]string{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: exp.Name, v1alpha1.LabelTrial: trial.Name},
			Annotations: map[string]string{v1alpha1.AnnotationOutcome: v1alpha1.ReasonSucceeded}}}
		s.create(cm)
		exp = s.settle()
		if !deleted {
			deleted = true
			if err := s.c.Delete(t.Context(), &trial); err != nil {
				t.Fatal(err)
			}
			exp = s.settle()
			continue
		}
		got := s.results(exp.Status.ResultsConfigMap)
		told := slices.ContainsFunc(got.LeftOut, func(l string) bool {
			return strings.Contains(l, "somebody deleted after they had ended (1)") && strings.Contains(l, "-0 (Succeeded)")
		})
		if complete := meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete); complete != told {
			t.Errorf("complete: %v; the results leave out %q", complete, got.LeftOut)
		}
	}
}
