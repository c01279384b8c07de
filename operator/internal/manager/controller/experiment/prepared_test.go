package experiment_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// The files that trials share from their prepare steps exist until the last trial is over. A Secret
// with that name that the experiment does not own stays.
func TestSharedPreparedSecretGoesWithTheLastTrial(t *testing.T) {
	for name, tc := range map[string]struct{ owned bool }{"the experiment's": {true}, "another's": {false}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create(builders.System("basil").Set(func(spec *v1alpha1.SystemSpec) {
				spec.Prepare = &v1alpha1.PrepareStep{Container: v1alpha1.Container{Name: "keys", Image: "i", Command: []string{"/keys"}}, OutputPath: "/keys", Reuse: v1alpha1.PrepareReuseWithinExperiment}
			}).Obj(), two().Obj())
			s.settle()
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: render.SharedPrepared(s.trials()[0].Spec.System.Revision)}}
			if tc.owned {
				if err := controllerutil.SetControllerReference(s.experiment(), secret, s.env.Scheme); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.c.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			s.finish(v1alpha1.ReasonSucceeded)
			s.settle()
			if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Errorf("between two trials: %v", err)
			}
			s.finish(v1alpha1.ReasonSucceeded)
			s.settle()
			if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); tc.owned != apierrors.IsNotFound(err) {
				t.Errorf("after the last trial, reading it gives %v", err)
			}
		})
	}
}
