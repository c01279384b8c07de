package nodes

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Over reports whether a Job has ended, and whether it succeeded.
func Over(job *batchv1.Job) (ended, well bool, message string) {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return true, true, ""
		case batchv1.JobFailed:
			return true, false, c.Message
		}
	}
	return false, false, ""
}

// Held says what a pod waits for, after a colon. It returns "" for a pod that waits for nothing,
// and for nil.
func Held(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return ": " + c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Message != "" {
			return fmt.Sprintf(": %s: %s", c.Name, w.Message)
		}
	}
	return ""
}
