package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// Machines that share directories need a claim of the namespace that all nodes may write to. A user
// who applies such an experiment without one gets an error, and not pods that wait for a volume.
func TestSharedDirectoriesNeedAClaim(t *testing.T) {
	env := testenv.Get(t)
	for name, tc := range map[string]struct {
		claim []corev1.PersistentVolumeAccessMode
		want  string
	}{
		"no claim":          {nil, "has no PersistentVolumeClaim assay-shared"},
		"of one node":       {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, "is [ReadWriteOnce]"},
		"of all, as wanted": {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ns := env.Namespace(t)
			if tc.claim != nil {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.SharedClaim}, Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: tc.claim, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				}}
				if err := env.Client.Create(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			system, experiment := sample(t, "systems/machines.yaml"), sample(t, "experiment-machines.yaml")
			set(t, system, "spec.shared", "[{path: /proj}]")
			system.SetNamespace(ns)
			experiment.SetNamespace(ns)
			if err := env.Client.Create(t.Context(), system); err != nil {
				t.Fatal(err)
			}
			err := env.Client.Create(t.Context(), experiment, client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "spec.systems[0].name")) {
				t.Errorf("applied with %v, want %q", err, tc.want)
			}
		})
	}
}
