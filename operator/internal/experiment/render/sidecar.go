package render

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// agentContainer is the name of the agent's container. Assay adds no other container to a pod.
const agentContainer = "agent"

// The binaries of the agent's image that other containers of the pod run.
const (
	launcherBinary = "/launcher"
	loadgenBinary  = "/loadgen"
)

// annotationCA of a pod holds the certificates that may sign the certificate of the coordinator. A
// volume shows them to the agent as a file.
const annotationCA = "assay.dev/coordinator-ca"

// identityDir of an agent's container has its token and the coordinator's certificates.
const identityDir = "/assay/identity"

// DefaultAgentResources are the resources of agents if the manager has no setting. An agent uses
// some 10m of a processor and 30 MiB. Without a request, a busy node would wake it up late. A CPU
// limit would stop an agent for the rest of each 100 ms in which it used up its share.
func DefaultAgentResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("48Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
}

// agent returns the native sidecar of a pod. The kubelet starts the System's containers after the
// agent's hook has put their launcher into the shared volume. If the hook fails, the kubelet kills
// the agent, tries again, and writes the reason to the pod's status. If the agent's container
// restarts, the hook runs again and keeps existing binaries.
func (b *builder) agent(part string, shared []corev1.VolumeMount) corev1.Container {
	command := append([]string{"/agent", "run"}, identityFlags(b.env)...)
	if b.env.SimulatedClockOffsets != "" {
		command = append(command, "--simulated-clock-offset", b.env.SimulatedClockOffsets)
	}
	binaries := launcherBinary
	if part == v1alpha1.PodTypeClient && b.system.Clients.Driver != nil {
		binaries += "," + loadgenBinary
	}
	if len(b.system.Machines) > 0 {
		binaries += "," + machineBinary
	}
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Container{
		Name: agentContainer, Image: b.env.AgentImage, ImagePullPolicy: b.env.agentPullPolicy(), RestartPolicy: &always,
		Command: command,
		Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/agent", "install", "--from", binaries}},
		}},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}},
		},
		Resources:                *b.env.AgentResources.DeepCopy(),
		VolumeMounts:             append([]corev1.VolumeMount{{Name: identityVolumeName, MountPath: identityDir, ReadOnly: true}}, shared...),
		SecurityContext:          agentSecurity(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// permit gives the agent of a template the capabilities that its pods need.
func (b *builder) permit(template *corev1.PodSpec, members []member) {
	var pods []string
	for _, m := range members {
		pods = append(pods, m.name)
	}
	for i := range template.InitContainers {
		if c := &template.InitContainers[i]; c.Name == agentContainer {
			c.SecurityContext.Capabilities.Add = capabilities(pods, b.actions, b.shapes, b.network, b.env)
		}
	}
}

func (e Environment) agentPullPolicy() corev1.PullPolicy {
	return cmp.Or(e.AgentPullPolicy, corev1.PullIfNotPresent)
}

// identityFlags tell an agent which address to dial, which certificates to trust, and its own name.
func identityFlags(env Environment) []string {
	return []string{"--coordinator", env.CoordinatorAddress, "--ca-file", identityDir + "/ca.crt", "--token-file", identityDir + "/token"}
}

const identityVolumeName = "identity"

// identityVolume has an agent's token and the coordinator's certificates.
func identityVolume() corev1.Volume {
	return corev1.Volume{Name: identityVolumeName, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: protocol.Audience, ExpirationSeconds: ptr(int64(3600)), Path: "token"}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "ca.crt", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotationCA + "']"},
			}}}},
		},
	}}}
}
