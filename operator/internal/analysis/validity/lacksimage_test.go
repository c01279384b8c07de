package validity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A pod lacks an image if any of its containers says so. A container that is only starting does not
// lack one.
func TestLacksImage(t *testing.T) {
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{}, {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"no pod":                  {nil, false},
		"a container":             {&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: waiting("ErrImagePull")}}, true},
		"a container after tries": {&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: waiting("ImagePullBackOff")}}, true},
		"the agent":               {&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: waiting("InvalidImageName")}}, true},
		"one that begins":         {&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: waiting("ContainerCreating")}}, false},
		"one that crashes":        {&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: waiting("CrashLoopBackOff")}}, false},
	} {
		if got := LacksImage(tc.pod); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
