package local

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestWhatOneMachineCannotDoIsRefusedByName(t *testing.T) {
	plain := v1alpha1.ExperimentSpec{Faults: []v1alpha1.Fault{{Name: "crash", NodeKill: &v1alpha1.NodeKill{Mode: "Pods"}}}}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec, *v1alpha1.SystemSpec)
		want   string
	}{
		"nothing": {func(*v1alpha1.ExperimentSpec, *v1alpha1.SystemSpec) {}, ""},
		"pools":   {func(e *v1alpha1.ExperimentSpec, _ *v1alpha1.SystemSpec) { e.Placement.Replicas = "big" }, `spec.placement.replicas: pool "big"`},
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
