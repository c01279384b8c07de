package render

import (
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	// rootUID is the agent's user: root without any capability but those of capabilities(), since
	// what a pod adds reaches only root's processes.
	rootUID = 0
	// plainUID is the agent's user where it may have no capability. It is not the system's default
	// user, so that neither can change the other's files by being the same; they meet in the group
	// of the pod's volumes.
	plainUID = 65533
	// systemUID is the system's user unless the System names another; the API server fills it in,
	// files that were never sent there lack it.
	systemUID = 65532
)

// agentSecurity of what Assay adds to a pod.
func agentSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: ptr(int64(rootUID)), RunAsGroup: ptr(int64(sharedGID)), AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// systemSecurity of a container of the System. That it says so when its user is not root, is what
// the restricted profile wants.
func systemSecurity(user *int64) *corev1.SecurityContext {
	if user == nil {
		user = ptr(int64(systemUID))
	}
	return &corev1.SecurityContext{
		RunAsUser: user, RunAsGroup: ptr(int64(sharedGID)), RunAsNonRoot: ptr(*user != rootUID), AllowPrivilegeEscalation: ptr(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// secure takes root from what Assay adds to a pod whose network it may not touch. Then the pod
// passes the restricted Pod Security profile, if the System's own containers do: with another user
// than root.
func secure(pod *corev1.PodSpec, shaping v1alpha1.Shaping) {
	if shaping != v1alpha1.ShapingNone {
		return
	}
	for i := range pod.InitContainers {
		c := pod.InitContainers[i].SecurityContext
		c.RunAsUser, c.RunAsNonRoot = ptr(int64(plainUID)), ptr(true)
	}
}

// place puts a pod on the nodes of a pool, which may be tainted to keep others away. No pool: on
// any node.
func place(pod *corev1.PodSpec, pool string) {
	if pool == "" {
		return
	}
	pod.NodeSelector = map[string]string{v1alpha1.LabelPool: pool}
	pod.Tolerations = []corev1.Toleration{{Key: v1alpha1.LabelPool, Operator: corev1.TolerationOpEqual, Value: pool}}
}
