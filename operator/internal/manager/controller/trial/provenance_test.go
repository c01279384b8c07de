package trial

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
)

func TestResultsNameImages(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeReplica}}, Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "agent", ImageID: "agent@sha256:1"}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "a", ImageID: "a@sha256:2"}, {Name: "b", ImageID: "b@sha256:3"}},
		},
	}
	got := validity.Pod{Name: "p"}
	got.Read(pod)
	if want := "a@sha256:2,b@sha256:3"; got.Images != want {
		t.Errorf("the pod's images are %q, want %q", got.Images, want)
	}
	if want := "agent@sha256:1"; got.AgentImage != want {
		t.Errorf("the agent's image is %q, want %q", got.AgentImage, want)
	}
}
