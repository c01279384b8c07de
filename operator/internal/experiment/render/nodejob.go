package render

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// unscheduledGrace is how much longer than its pods a Job may take, for pods that find no node or
// are not made at all.
const unscheduledGrace = 300

// nodeJob returns a Job with one pod on a node. It is not repeated, and ends by itself.
func nodeJob(meta metav1.ObjectMeta, node string, env Environment, seconds int64) (*batchv1.Job, *corev1.PodSpec) {
	b := &builder{env: env}
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit: ptr(int32(0)), ActiveDeadlineSeconds: ptr(seconds + unscheduledGrace),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: b.podLabels(meta), Annotations: env.PodAnnotations}, Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: ptr(seconds), TerminationGracePeriodSeconds: ptr(int64(2)),
			AutomountServiceAccountToken: ptr(false), EnableServiceLinks: ptr(false),
			SecurityContext: &corev1.PodSecurityContext{FSGroup: ptr(int64(sharedGID)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			// The scheduler places the pod, since it knows whether the node has room.
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}}}},
			}}},
			Tolerations: []corev1.Toleration{{Key: v1alpha1.LabelPool, Operator: corev1.TolerationOpExists}},
		}},
	}}
	return job, &job.Spec.Template.Spec
}
