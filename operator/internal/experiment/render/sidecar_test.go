package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/protocol"
)

// podsOfTrial renders a trial with a prepare step, and returns its pods by part.
func podsOfTrial(t *testing.T, system *v1alpha1.SystemSpec, env Environment) map[string]corev1.PodSpec {
	t.Helper()
	spec := kvTrial()
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]corev1.PodSpec{}
	for _, template := range o.Templates() {
		pods[template.What] = *template.Spec
	}
	if len(pods) != 3 {
		t.Fatalf("there are pods of %d parts, want replica, client and prepare", len(pods))
	}
	return pods
}

// The agent is the only container that Assay adds. The kubelet starts no other container before the
// hook has installed the launcher.
func TestTheAgentInstallsTheLauncherFirst(t *testing.T) {
	driven, self := kvSystem(), kvSystem()
	self.Clients.Driver = nil
	for name, tc := range map[string]struct {
		system *v1alpha1.SystemSpec
		want   map[string]string // binaries, by part
	}{
		"clients with a driver":           {driven, map[string]string{"replica": "/launcher", "prepare": "/launcher", "client": "/launcher,/loadgen"}},
		"clients that measure themselves": {self, map[string]string{"replica": "/launcher", "prepare": "/launcher", "client": "/launcher"}},
	} {
		t.Run(name, func(t *testing.T) {
			for part, pod := range podsOfTrial(t, tc.system, Environment{AgentImage: "agent:1"}) {
				if len(pod.InitContainers) != 1 {
					t.Fatalf("%s: %d init containers, want the agent only", part, len(pod.InitContainers))
				}
				c := pod.InitContainers[0]
				if c.Name != agentContainer || c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
					t.Errorf("%s: %s is no native sidecar", part, c.Name)
				}
				if c.Lifecycle == nil || c.Lifecycle.PostStart == nil || c.Lifecycle.PostStart.Exec == nil {
					t.Fatalf("%s: the agent has no postStart hook", part)
				}
				want := []string{"/agent", "install", "--from", tc.want[part]}
				if diff := cmp.Diff(want, c.Lifecycle.PostStart.Exec.Command); diff != "" {
					t.Errorf("%s: the hook's command (-want +got):\n%s", part, diff)
				}
				at := func(c corev1.Container, path string) string {
					i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path && !m.ReadOnly })
					if i < 0 {
						return ""
					}
					return c.VolumeMounts[i].Name
				}
				for _, path := range []string{protocol.BinDir, protocol.RunDir, protocol.OutDir} {
					if volume := at(c, path); volume == "" || volume != at(pod.Containers[0], path) {
						t.Errorf("%s: %s is volume %q for the agent and %q for %s", part, path, volume, at(pod.Containers[0], path), pod.Containers[0].Name)
					}
				}
				if !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: the agent can write to its root", part)
				}
			}
		})
	}
}

// The agent has the same kind of identity in every pod: a token for the coordinator, and the
// certificates to trust.
func TestAgentsKnowWhomToTrust(t *testing.T) {
	env := Environment{AgentImage: "agent:1", CoordinatorAddress: "c:1", CoordinatorCA: "-----BEGIN"}
	spec, system := kvTrial(), kvSystem()
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	machine := MachinePod(types.NamespacedName{Namespace: "ns", Name: "exp-0a1b-3"}, "uid", "node", env)
	pods := map[string]corev1.PodTemplateSpec{
		"replica": o.Servers[0].Spec.Template, "client": o.Clients[0].Spec.Template, "prepare": o.Prepare.Spec.Template,
		"machine": {ObjectMeta: machine.ObjectMeta, Spec: machine.Spec},
	}
	want := []string{"--coordinator", "c:1", "--ca-file", "/assay/identity/ca.crt", "--token-file", "/assay/identity/token"}
	for name, pod := range pods {
		if pod.Annotations["assay.dev/coordinator-ca"] != "-----BEGIN" {
			t.Errorf("%s: annotations %v", name, pod.Annotations)
		}
		agent := append(pod.Spec.InitContainers, pod.Spec.Containers...)[0]
		if i := slices.Index(agent.Command, "--coordinator"); i < 0 || !slices.Equal(agent.Command[i:], want) {
			t.Errorf("%s: the agent's command is %q, want it to end with %q", name, agent.Command, want)
		}
		i := slices.IndexFunc(agent.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/assay/identity" && m.ReadOnly })
		if i < 0 {
			t.Fatalf("%s: the agent mounts %v", name, agent.VolumeMounts)
		}
		j := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == agent.VolumeMounts[i].Name })
		sources := pod.Spec.Volumes[j].Projected.Sources
		if sources[0].ServiceAccountToken.Audience != protocol.Audience || sources[0].ServiceAccountToken.Path != "token" ||
			sources[1].DownwardAPI.Items[0].FieldRef.FieldPath != "metadata.annotations['assay.dev/coordinator-ca']" {
			t.Errorf("%s: the identity is %+v", name, sources)
		}
	}
}

func TestAgentsHaveResources(t *testing.T) {
	own := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	for name, want := range map[string]corev1.ResourceRequirements{"the default": DefaultAgentResources(), "others": own, "none": {}} {
		for part, pod := range podsOfTrial(t, kvSystem(), Environment{AgentImage: "agent:1", AgentResources: want}) {
			if diff := cmp.Diff(want, pod.InitContainers[0].Resources); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, part, diff)
			}
		}
	}
}

// A pod is Guaranteed if each of its containers, the agent included, has limits of CPU and memory
// equal to its requests.
func TestPodsCanBeGuaranteed(t *testing.T) {
	exact := corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("256Mi")}
	system := kvSystem()
	for i := range system.Replicas.Containers {
		system.Replicas.Containers[i].Resources = corev1.ResourceRequirements{Requests: exact, Limits: exact}
	}
	for name, tc := range map[string]struct {
		agent corev1.ResourceRequirements
		want  bool
	}{
		"an agent with the default": {DefaultAgentResources(), false},
		"an agent with none":        {corev1.ResourceRequirements{}, false},
		"an agent with equal ones":  {corev1.ResourceRequirements{Requests: exact, Limits: exact}, true},
		"an agent with limits only": {corev1.ResourceRequirements{Limits: exact}, true}, // the requests then equal the limits
	} {
		pod := podsOfTrial(t, system, Environment{AgentImage: "agent:1", AgentResources: tc.agent})["replica"]
		got := true
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, limited := c.Resources.Limits[r]
				request, requested := c.Resources.Requests[r]
				got = got && limited && (!requested || request.Equal(limit))
			}
		}
		if got != tc.want {
			t.Errorf("with %s the replica is Guaranteed: %v, want %v", name, got, tc.want)
		}
	}
}
