package local

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestWhatOneMachineCannotDoIsRefusedByName(t *testing.T) {
	plain := v1alpha1.ExperimentSpec{Faults: []v1alpha1.Fault{{Name: "crash", NodeKill: &v1alpha1.NodeKill{Mode: "Pods"}}}}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec, *v1alpha1.SystemSpec)
		want   string
	}{
		"nothing": {func(*v1alpha1.ExperimentSpec, *v1alpha1.SystemSpec) {}, ""},
		"sets": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) {
			e.Placement.Sets = []v1alpha1.NodeSet{{Name: "a", Replicas: "a", Clients: "a"}, {Name: "b", Replicas: "b", Clients: "b"}}
		}, `spec.placement.sets: 2 trials at once need 2 sets of nodes`},
		"pools": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) { e.Placement.Replicas = "big" }, `spec.placement.replicas: pool "big"`},
		"regions on nodes": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) {
			e.Placement.ByRegion = &v1alpha1.RegionNodes{}
		}, "spec.placement.byRegion"},
		"replicas apart": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) { e.Placement.Spread = v1alpha1.SpreadRequired }, "spec.placement.spread"},
		"machine reset": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) {
			e.Faults = []v1alpha1.Fault{{Name: "power", NodeKill: &v1alpha1.NodeKill{Mode: v1alpha1.KillMachine}}}
		}, "spec.faults[0] (power): mode Machine"},
		"Chaos Mesh": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) {
			e.Faults = []v1alpha1.Fault{{Name: "io", ChaosMesh: &v1alpha1.ChaosMesh{}}}
		}, "spec.faults[0] (io): Chaos Mesh"},
		"query": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) {
			e.Measurements = []v1alpha1.Measurement{{Name: "hits", Query: "up"}}
		}, "spec.measurements[0] (hits)"},
		"claims": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Replicas.Volumes = []v1alpha1.Volume{{Name: "wal", Medium: v1alpha1.VolumePersistentVolumeClaim}}
		}, "System kv: spec.replicas.volumes[0] (wal)"},
	} {
		spec, system := plain.DeepCopy(), v1alpha1.SystemSpec{}
		tc.change(spec, &system)
		got := strings.Join(Refusals(*spec, map[string]v1alpha1.SystemSpec{"kv": system}), "\n")
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: refused %q; want one that begins with %q", name, got, tc.want)
		}
	}
}

// An ordinary user can do less on a machine than root. Each field that needs more is refused for
// that user, and accepted for root.
func TestWhatNeedsRootIsRefusedByName(t *testing.T) {
	user := int64(65536)
	limits := func(what corev1.ResourceName, most string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{what: resource.MustParse(most)}}
	}
	kv := func(c v1alpha1.Container) []v1alpha1.Container {
		c.Name = "kv"
		return []v1alpha1.Container{{Name: "other"}, c}
	}
	cpu := v1alpha1.Container{Resources: limits(corev1.ResourceCPU, "500m")}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec, *v1alpha1.SystemSpec)
		want   string
	}{
		"nothing": {func(*v1alpha1.ExperimentSpec, *v1alpha1.SystemSpec) {}, ""},
		"a limit of memory, which is noted": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Replicas.Containers = kv(v1alpha1.Container{Resources: limits(corev1.ResourceMemory, "1Gi")})
		}, ""},
		"links by Netem": {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) { e.Network.Backend = v1alpha1.ShapingNetem }, ""},
		"links by EDT":   {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) { e.Network.Backend = v1alpha1.ShapingEDT }, "spec.network.backend: EDT"},
		"a replica's limit": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) { s.Replicas.Containers = kv(cpu) },
			"System kv: spec.replicas.containers[1] (kv).resources.limits.cpu"},
		"a client's limit": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) { s.Clients.Containers = kv(cpu) },
			"System kv: spec.clients.containers[1] (kv).resources.limits.cpu"},
		"a component's limit": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Components = []v1alpha1.Component{{ReplicasSpec: v1alpha1.ReplicasSpec{Containers: kv(cpu)}}}
		}, "System kv: spec.components[0].containers[1] (kv).resources.limits.cpu"},
		"the prepare step's limit": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Prepare = &v1alpha1.PrepareStep{Container: cpu}
		},
			"System kv: spec.prepare.container.resources.limits.cpu"},
		"a recipe's limit": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Datasets = []v1alpha1.DatasetSource{{Container: cpu}}
		}, "System kv: spec.datasets[0].container.resources.limits.cpu"},
		"a machine's limit": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Machines = []v1alpha1.MachineGroup{{Name: "node", Resources: cpu.Resources}}
		}, "System kv: spec.machines[0] (node).resources.limits.cpu"},
		"pages of a container": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Replicas.Containers = kv(v1alpha1.Container{Resources: limits("hugepages-2Mi", "64Mi")})
		}, "System kv: spec.replicas.containers[1] (kv).resources.limits.hugepages-2Mi"},
		"pages of a volume": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Replicas.Volumes = []v1alpha1.Volume{{Name: "ring", Medium: v1alpha1.VolumeHugePages}}
		}, "System kv: spec.replicas.volumes[0] (ring)"},
		"a capability": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Replicas.Containers = kv(v1alpha1.Container{Capabilities: []string{"IPC_LOCK"}})
		}, "System kv: spec.replicas.containers[1] (kv).capabilities: IPC_LOCK"},
		"a user": {func(_ *v1alpha1.ExperimentSpec, s *v1alpha1.SystemSpec) {
			s.Replicas.Containers = kv(v1alpha1.Container{RunAsUser: &user})
		}, "System kv: spec.replicas.containers[1] (kv).runAsUser"},
	} {
		spec, system := v1alpha1.ExperimentSpec{}, v1alpha1.SystemSpec{}
		tc.change(&spec, &system)
		systems := map[string]v1alpha1.SystemSpec{"kv": system}
		got := strings.Join(WithoutRoot(spec, systems), "\n")
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: refused %q; want one that begins with %q", name, got, tc.want)
		}
		if root := Refusals(spec, systems); len(root) > 0 {
			t.Errorf("%s: root is refused %q", name, root)
		}
	}
}

// A container has a capability only if the user allows it and the process can give it.
func TestCapabilitiesAreAllowedByName(t *testing.T) {
	systems := map[string]v1alpha1.SystemSpec{"kv": {Replicas: v1alpha1.ReplicasSpec{
		Containers: []v1alpha1.Container{{Name: "kv", Capabilities: []string{"IPC_LOCK", "SYS_NICE"}}},
	}}}
	const at = "System kv: spec.replicas.containers[0] (kv).capabilities"
	for name, tc := range map[string]struct{ allowed, own, want []string }{
		"both":         {[]string{"IPC_LOCK", "SYS_NICE"}, []string{"IPC_LOCK", "SYS_NICE", "CHOWN"}, nil},
		"one of them":  {[]string{"IPC_LOCK"}, []string{"IPC_LOCK", "SYS_NICE"}, []string{at + "[1]: SYS_NICE: allow it with --local-capabilities SYS_NICE"}},
		"none":         {nil, []string{"IPC_LOCK", "SYS_NICE"}, []string{at + "[0]: IPC_LOCK: allow it", at + "[1]: SYS_NICE: allow it"}},
		"none to give": {[]string{"IPC_LOCK", "SYS_NICE"}, []string{"IPC_LOCK"}, []string{at + "[1]: SYS_NICE: this process lacks it"}},
	} {
		got := BeyondAllowed(systems, tc.allowed, tc.own)
		if !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
			t.Errorf("%s: refused %q; want those that begin with %q", name, got, tc.want)
		}
	}
}
