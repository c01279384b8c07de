package render

import (
	"maps"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/placement"
)

// tiers is a System of one replica behind two proxies.
func tiers() (*v1alpha1.TrialSpec, *v1alpha1.SystemSpec) {
	pod := func(image string, command ...string) v1alpha1.ReplicasSpec {
		return v1alpha1.ReplicasSpec{Containers: []v1alpha1.Container{{Name: "main", Image: image, Command: command}}}
	}
	system := &v1alpha1.SystemSpec{
		Replicas: pod("kv:1", "/kv", "{{.Components.proxy.Count}}", "{{index .Components.proxy.IPs 1}}"),
		Components: []v1alpha1.Component{
			{Name: "proxy", ReplicasSpec: pod("proxy:2", "/proxy", "{{.Self.Component}}/{{.Self.Index}}", "{{(index .Replicas 0).IP}}")},
		},
		Clients: v1alpha1.ClientsTemplate{Containers: pod("kv:1", "/client").Containers},
	}
	return &v1alpha1.TrialSpec{
		Topology: v1alpha1.Topology{Shards: 1, Regions: []v1alpha1.Region{{Name: "local", Replicas: 1}}, Components: []v1alpha1.ComponentRegions{
			{Name: "proxy", Regions: []v1alpha1.Region{{Name: "local", Replicas: 2}}},
		}},
		Placement: v1alpha1.Placement{Replicas: "servers", Components: []v1alpha1.ComponentPool{{Name: "proxy", Pool: "front"}}},
		Clients:   v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Nodes: 1, Count: 1, Regions: []string{"local"}},
	}, system
}

func TestComponentsAreStatefulSetsOfTheirOwn(t *testing.T) {
	spec, system := tiers()
	o, err := NewObjects(placement.NewLayout("ns", "t", spec, system), spec, system, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Servers) != 2 {
		t.Fatalf("%d StatefulSets, want one of the replica and one of the proxies", len(o.Servers))
	}
	replicas, proxies := o.Servers[0], o.Servers[1]
	if proxies.Name != "t-proxy-local" || *proxies.Spec.Replicas != 2 || proxies.Spec.Template.Spec.Containers[0].Image != "proxy:2" {
		t.Errorf("the proxies are %s, %d of image %s", proxies.Name, *proxies.Spec.Replicas, proxies.Spec.Template.Spec.Containers[0].Image)
	}
	if pool := proxies.Spec.Template.Spec.NodeSelector[v1alpha1.LabelPool]; pool != "front" {
		t.Errorf("the proxies are on pool %q", pool)
	}
	if pool := replicas.Spec.Template.Spec.NodeSelector[v1alpha1.LabelPool]; pool != "servers" {
		t.Errorf("the replica is on pool %q", pool)
	}
	// No set may take the pods of another for its own.
	for _, pair := range [][2]int{{0, 1}, {1, 0}} {
		selector, labels := o.Servers[pair[0]].Spec.Selector.MatchLabels, maps.Clone(o.Servers[pair[1]].Spec.Template.Labels)
		matches := true
		for k, v := range selector {
			matches = matches && labels[k] == v
		}
		if matches {
			t.Errorf("the selector %v matches pods with %v", selector, labels)
		}
	}
	var what []string
	for _, template := range o.Templates() {
		what = append(what, template.What)
	}
	if got := strings.Join(what, " "); got != "replica proxy client" {
		t.Errorf("the pods are %s", got)
	}
}

func TestComponentsAreInTemplates(t *testing.T) {
	spec, system := tiers()
	l, _ := placement.NewLayout("ns", "t", spec, system).Resolve(map[string]string{"t-s0-local-0": "10.0.0.1", "t-proxy-local-0": "10.0.0.2", "t-proxy-local-1": "10.0.0.3", "t-c-0": "10.0.0.4"})
	trial, err := NewTrial(spec, system, l)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"/kv 2 10.0.0.3", "/proxy proxy/0 10.0.0.1", "/proxy proxy/1 10.0.0.1"} {
		pod, err := trial.Server(l.Servers[i])
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(pod.Directive.Containers[0].Command, " "); got != want {
			t.Errorf("pod %d runs %q, want %q", i, got, want)
		}
		if n := len(pod.Directive.Resolve); n != 3 {
			t.Errorf("pod %d resolves %d names, want those of all 3", i, n)
		}
		if want := []string{"replica", "proxy", "proxy"}[i]; pod.Part != want {
			t.Errorf("pod %d is %s, want %s", i, pod.Part, want)
		}
	}
	system.Components[0].Containers[0].Command = []string{"{{.Components.prxy.Count}}"}
	if _, err := trial.Server(l.Servers[1]); err == nil || !strings.Contains(err.Error(), "spec.components[0].containers[0].command[0]") || !strings.Contains(err.Error(), `no entry for key "prxy"`) {
		t.Errorf("error %v, want one that names the field and the component", err)
	}
}
