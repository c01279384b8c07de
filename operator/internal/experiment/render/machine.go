package render

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
)

// machineDir is the directory of a machine pod on a disk of its node.
const machineDir = "/assay/machine"

// MachineAgent is the coordinator's name for the agent that resets a node. No pod can have such a
// name.
func MachineAgent(node string) string { return "machine/" + node }

// MachineLabels are the labels of every machine pod of a trial.
func MachineLabels(trial types.NamespacedName) map[string]string {
	return map[string]string{
		v1alpha1.LabelTrial: trial.Name, v1alpha1.LabelTrialNamespace: trial.Namespace, v1alpha1.LabelPodType: v1alpha1.PodTypeMachine,
	}
}

// MachinePod returns the pod that resets one node for a trial. It is in the manager's namespace,
// not in the trial's: a user who may run experiments must not reach a pod with such a right. It
// shares the node's processes (hostPID), since only there reboot(2) resets the machine. Its only
// capability is SYS_BOOT. It has no host path, no host network, and no right in the cluster. It
// keeps state for the time after the reset on a disk of the node, in a volume that is deleted with
// the pod.
func MachinePod(trial types.NamespacedName, uid types.UID, node string, env Environment) *corev1.Pod {
	sum := sha256.Sum256([]byte(string(uid) + "/" + node))
	security := agentSecurity()
	security.Capabilities.Add = []corev1.Capability{"SYS_BOOT"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "assay-machine-" + hex.EncodeToString(sum[:8]), Namespace: env.Namespace, Labels: MachineLabels(trial),
			Annotations: map[string]string{annotationCA: env.CoordinatorCA},
		},
		Spec: corev1.PodSpec{
			NodeName: node, HostPID: true, RestartPolicy: corev1.RestartPolicyAlways,
			// Its token only identifies the pod. The account has no rights, and its own token is
			// not mounted.
			ServiceAccountName: "default", AutomountServiceAccountToken: ptr(false), EnableServiceLinks: ptr(false), TerminationGracePeriodSeconds: ptr(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			// A machine that was down for long must find the pod again, since only the pod can
			// report that the machine came back.
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes:     []corev1.Volume{emptyDir("journal", ""), identityVolume()},
			Containers: []corev1.Container{{
				Name: agentContainer, Image: env.AgentImage, ImagePullPolicy: env.agentPullPolicy(),
				Command: append([]string{"/agent", "machine", "--journal-dir", machineDir, "--node", node}, identityFlags(env)...),
				Env:     []corev1.EnvVar{nodeName},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "journal", MountPath: machineDir}, {Name: "identity", MountPath: identityDir, ReadOnly: true},
				},
				// It needs a share of the processor: a busy node would wake it up late.
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
				}},
				SecurityContext:          security,
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
}

// awayFrom keeps a pod off the nodes of the replicas whose machines are reset, so that the
// measurements of a client survive. It returns nil if no machine is reset.
func awayFrom(actions []timeline.Action, trial string) *corev1.Affinity {
	var pods []string
	for _, a := range actions {
		if a.Kind.By() == timeline.MachineAgent && !slices.Contains(pods, a.Pod) {
			pods = append(pods, a.Pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{v1alpha1.LabelTrial: trial},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: appsv1.StatefulSetPodNameLabel, Operator: metav1.LabelSelectorOpIn, Values: pods}},
		},
	}}}}
}
