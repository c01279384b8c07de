package render

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	// rootUID is the user of an agent that may have capabilities, since only processes of root get
	// the capabilities that a pod adds. It has only those of capabilities().
	rootUID = 0
	// plainUID is the user of an agent that may have no capability. It is not the system's default
	// user, so that neither can change the other's files. Both are in the group of the pod's
	// volumes.
	plainUID = 65533
	// systemUID is the user of a System that names none. The API server fills it in; files that
	// never reached it lack it.
	systemUID = 65532
)

// agentSecurity returns the security context of Assay's own containers.
func agentSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: ptr(int64(rootUID)), RunAsGroup: ptr(int64(sharedGID)), AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// systemSecurity returns the security context of a container of the System. It states that its user
// is not root, as the restricted profile requires.
func systemSecurity(user *int64, capabilities ...string) *corev1.SecurityContext {
	if user == nil {
		user = ptr(int64(systemUID))
	}
	var added []corev1.Capability
	for _, name := range capabilities {
		added = append(added, corev1.Capability(name))
	}
	return &corev1.SecurityContext{
		RunAsUser: user, RunAsGroup: ptr(int64(sharedGID)), RunAsNonRoot: ptr(*user != rootUID), AllowPrivilegeEscalation: ptr(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: added},
	}
}

// secure removes root from Assay's containers in a pod whose network Assay may not change. Then the
// pod passes the restricted Pod Security profile, if the System's own containers do, with another
// user than root.
func secure(pod *corev1.PodSpec, shaping v1alpha1.Shaping) {
	if shaping != v1alpha1.ShapingNone {
		return
	}
	for i := range pod.InitContainers {
		c := pod.InitContainers[i].SecurityContext
		c.RunAsUser, c.RunAsNonRoot = ptr(int64(plainUID)), ptr(true)
	}
}

// apart keeps a replica, or a pod of a component, off the nodes of all others of its trial.
func apart(trial string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{v1alpha1.LabelTrial: trial},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: v1alpha1.LabelPodType, Operator: metav1.LabelSelectorOpIn, Values: []string{v1alpha1.PodTypeReplica, v1alpha1.PodTypeComponent}},
			},
		},
	}}}}
}

// place puts a pod on the nodes of a pool, which may be tainted, and of a region, if regions choose
// nodes. Without either, the pod may run on any node. The owner's settings are applied last.
func (b *builder) place(pod *corev1.PodSpec, pool, region string) {
	pod.NodeSelector = b.placement.NodeSelector(pool, region)
	if pool != "" {
		pod.Tolerations = []corev1.Toleration{{Key: v1alpha1.LabelPool, Operator: corev1.TolerationOpEqual, Value: pool}}
	}
	b.env.Pods.apply(pod)
}
