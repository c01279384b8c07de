package placement

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"assay.dev/assay/operator/api/v1alpha1"
)

// tiers are two shards of three replicas in the east, and a component of three pods, one of them
// alone in the west.
func tiers() (*v1alpha1.TrialSpec, *v1alpha1.SystemSpec) {
	spec := &v1alpha1.TrialSpec{Seed: 7, Clients: v1alpha1.Clients{Count: 2, Nodes: 1, Regions: []string{"east"}}, Topology: v1alpha1.Topology{
		F: 1, Shards: 2, Regions: []v1alpha1.Region{{Name: "east", Replicas: 3}},
		Components: []v1alpha1.ComponentRegions{{Name: "proxy", Regions: []v1alpha1.Region{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 1}}}},
	}}
	return spec, &v1alpha1.SystemSpec{
		Replicas:   v1alpha1.ReplicasSpec{Ports: []v1alpha1.Port{{Name: "peer", Port: 1}}},
		Components: []v1alpha1.Component{{Name: "proxy", ReplicasSpec: v1alpha1.ReplicasSpec{Ports: []v1alpha1.Port{{Name: "front", Port: 2}}}}},
	}
}

func TestPodsOfComponentsComeAfterTheReplicas(t *testing.T) {
	spec, system := tiers()
	l := NewLayout("ns", "t", spec, system)
	want := []string{"t-s0-east-0", "t-s0-east-1", "t-s0-east-2", "t-s1-east-0", "t-s1-east-1", "t-s1-east-2", "t-proxy-east-0", "t-proxy-east-1", "t-proxy-west-0"}
	if got := l.ServerPods(); !slices.Equal(got, want) {
		t.Errorf("pods %q, want %q", got, want)
	}
	last := l.Servers[8]
	if last.Part != v1alpha1.PodTypeComponent || last.Component != "proxy" || last.Index != 2 || last.Global != 2 || last.Shard != NoShard || last.Region != "west" || !maps.Equal(last.Ports, map[string]int{"front": 2}) {
		t.Errorf("the last proxy is %+v", last)
	}
	if n := len(l.Replicas()); n != 6 || l.Replicas()[5].Global != 5 {
		t.Errorf("%d replicas, the last one %+v", n, l.Replicas()[n-1])
	}
}

func TestTargetsChooseComponents(t *testing.T) {
	spec, system := tiers()
	l := NewLayout("ns", "t", spec, system)
	majority := intstr.FromString("majority")
	for name, tc := range map[string]struct {
		target v1alpha1.Target
		want   []string
		may    int
	}{
		"replicas only, by default": {v1alpha1.Target{Replicas: []int32{2}}, []string{"t-s0-east-2", "t-s1-east-2"}, 2},
		"all pods":                  {v1alpha1.Target{Component: "proxy"}, []string{"t-proxy-east-0", "t-proxy-east-1", "t-proxy-west-0"}, 3},
		"by index":                  {v1alpha1.Target{Component: "proxy", Pods: []int32{1, 2}}, []string{"t-proxy-east-1", "t-proxy-west-0"}, 2},
		"by region":                 {v1alpha1.Target{Component: "proxy", Regions: []string{"west"}}, []string{"t-proxy-west-0"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.Choose(tc.target, "salt", nil); !slices.Equal(got, tc.want) {
				t.Errorf("chose %q, want %q", got, tc.want)
			}
			if may := Targets(tc.target, spec.Topology); len(may) != tc.may {
				t.Errorf("may mean %v, want %d", may, tc.may)
			}
		})
	}
	picked := l.Choose(v1alpha1.Target{Component: "proxy", Pick: &majority}, "salt", nil)
	if len(picked) != 2 || !slices.Equal(picked, l.Choose(v1alpha1.Target{Component: "proxy", Pick: &majority}, "salt", nil)) {
		t.Errorf("picked %q, want two of three, the same each time", picked)
	}
	left := l.Choose(v1alpha1.Target{Component: "proxy"}, "salt", picked)
	if len(left) != 1 || slices.Contains(picked, left[0]) {
		t.Errorf("%q are left of %q", left, picked)
	}
}

func TestRegionsOfComponentsAreInTheNetwork(t *testing.T) {
	spec, _ := tiers()
	if got := ServerRegions(spec.Topology); !slices.Equal(got, []string{"east", "west"}) {
		t.Errorf("regions %q", got)
	}
	if got := Regions(spec.Topology); !slices.Equal(got, []string{"east"}) {
		t.Errorf("regions of the replicas %q", got)
	}
	everyone := Everyone(spec)
	if len(everyone["east"]) != 6+2+1 || len(everyone["west"]) != 1 {
		t.Errorf("everyone is %v", everyone)
	}
}
