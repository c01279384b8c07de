package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/protocol"
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
	// No set may select the pods of another set.
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

// A fault of Chaos Mesh on a component targets the component's pods and containers. Pods of another
// component can be at the other end.
func TestChaosOfComponents(t *testing.T) {
	spec, system := tiers()
	system.Components[0].Containers = append(system.Components[0].Containers, v1alpha1.Container{Name: "side", Image: "side:1", Command: []string{"/side"}})
	spec.Schedule = v1alpha1.Schedule{WarmUp: "1s", Measure: "5s", CoolDown: "1s", Drain: "1s"}
	forThree := v1alpha1.Duration("3s")
	fault := v1alpha1.Fault{Name: "cm", At: "1s", For: &forThree, EveryPoint: true, ChaosMesh: &v1alpha1.ChaosMesh{
		Kind: "NetworkChaos", Spec: runtime.RawExtension{Raw: []byte(`{"action": "partition"}`)}, Target: v1alpha1.Target{Component: "proxy", Pods: []int32{1}}, Peers: &v1alpha1.Target{Replicas: []int32{0}},
	}}
	spec.Faults = []v1alpha1.Fault{fault}
	l := placement.NewLayout("ns", "t", spec, system)
	o, err := Chaos(l, spec, system, &fault)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Pods, []string{"t-proxy-local-1"}) || !slices.Equal(o.Peers, []string{"t-s0-local-0"}) || !slices.Equal(o.Containers, []string{"main", "side"}) {
		t.Errorf("it is for pods %q, containers %q, with %q at the other end", o.Pods, o.Containers, o.Peers)
	}
	object, err := o.Object()
	if err != nil {
		t.Fatal(err)
	}
	// The selectors ask for labels that the pods have.
	objects, err := NewObjects(l, spec, system, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]map[string]string{}
	for _, template := range objects.Templates() {
		labels[template.What] = template.Labels
	}
	for what, path := range map[string][]string{"proxy": {"spec", "selector", "labelSelectors"}, "replica": {"spec", "target", "selector", "labelSelectors"}} {
		asked, found, err := unstructured.NestedStringMap(object.Object, path...)
		if err != nil || !found || len(asked) == 0 {
			t.Fatalf("%s: %v, %v", strings.Join(path, "."), found, err)
		}
		for key, value := range asked {
			if labels[what][key] != value {
				t.Errorf("the selector of the %s asks for %s=%s, and its pods have %q", what, key, value, labels[what][key])
			}
		}
	}
}

// Only the pods of a component are asked for a role of the component, in their first container.
func TestRolesOfComponents(t *testing.T) {
	spec, system := tiers()
	system.Components[0].Containers[0].Name = "front"
	system.Roles = []v1alpha1.Role{
		{Name: "leader", Command: []string{"/kv", "leads"}},
		{Name: "active", Component: "proxy", Command: []string{"/proxy", "active", "{{.Self.Index}}"}},
	}
	spec.Faults = []v1alpha1.Fault{
		{Name: "proxy-crash", At: "1s", NodeKill: &v1alpha1.NodeKill{Target: v1alpha1.Target{Component: "proxy", Role: "active"}}},
		{Name: "pause", At: "2s", Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: "leader"}}},
	}
	trial := resolved(t, spec, system)
	got := map[string][]protocol.RoleProbe{}
	for _, r := range trial.Layout.Servers {
		pod, err := trial.Server(r)
		if err != nil {
			t.Fatal(err)
		}
		got[r.Name] = pod.Directive.Roles
	}
	probe := func(role, container string, command ...string) []protocol.RoleProbe {
		return []protocol.RoleProbe{{Role: role, Gate: &protocol.Gate{Command: command, Container: container}}}
	}
	replica, proxies := trial.Layout.Group(""), trial.Layout.Group("proxy")
	want := map[string][]protocol.RoleProbe{
		replica[0].Name: probe("leader", "main", "/kv", "leads"),
		proxies[0].Name: probe("active", "front", "/proxy", "active", "0"),
		proxies[1].Name: probe("active", "front", "/proxy", "active", "1"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

// A data set of a component is copied into the component's pods. It is copied into replicas only if
// they use it, too.
func TestDatasetsOfComponents(t *testing.T) {
	for by, parts := range map[v1alpha1.DatasetUsers]string{v1alpha1.DatasetForComponents: "proxy", "": "proxy replica", v1alpha1.DatasetForClients: "client proxy"} {
		spec, system := tiers()
		system.Datasets = []v1alpha1.DatasetSource{{Name: "rows", MountPath: "/rows", UsedBy: by, Components: []string{"proxy"}}}
		o, err := NewObjects(placement.NewLayout("ns", "t", spec, system), withData(spec), system, Environment{AgentImage: "agent"})
		if err != nil {
			t.Fatal(err)
		}
		var with []string
		for _, template := range o.Templates() {
			if template.Spec.InitContainers[0].Name == DatasetCopyPrefix+"rows" {
				with = append(with, template.What)
			}
		}
		slices.Sort(with)
		if got := strings.Join(with, " "); got != parts {
			t.Errorf("usedBy %q: copies are in pods of %s, want %s", by, got, parts)
		}
	}
}

// Steps and checks of replicas and of components run in the pods of their own group.
func TestStepsOfComponents(t *testing.T) {
	spec, system := tiers()
	system.Steps = []v1alpha1.Step{
		{Name: "every-replica", RunsOn: v1alpha1.StepEveryReplica, Command: []string{"/r"}},
		{Name: "every-proxy", RunsOn: v1alpha1.StepEveryReplica, Component: "proxy", Command: []string{"/p", "{{.Self.Index}}"}},
		{Name: "first-proxy", RunsOn: v1alpha1.StepFirstReplica, Component: "proxy", Command: []string{"/f"}},
	}
	system.Checks = []v1alpha1.SafetyCheck{
		{Name: "replicas", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/c"}}, {Name: "proxies", RunsOn: v1alpha1.StepEveryReplica, Component: "proxy", Command: []string{"/c"}},
	}
	l := placement.NewLayout("ns", "t", spec, system)
	trial, err := NewTrial(spec, system, l)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range l.Servers {
		pod, err := trial.Server(r)
		if err != nil {
			t.Fatal(err)
		}
		got[r.Name] = strings.Join(append(slices.Sorted(maps.Keys(pod.Steps)), slices.Sorted(maps.Keys(pod.Checks))...), " ")
		if c, ok := pod.Steps["every-proxy"]; ok && strings.Join(c.Command, " ") != "/p "+strconv.Itoa(r.Index) {
			t.Errorf("%s runs %q", r.Name, c.Command)
		}
	}
	client, err := trial.Client(l.Clients[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(client.Steps) + len(client.Checks); n != 0 {
		t.Errorf("the client runs %d of them", n)
	}
	want := map[string]string{"t-s0-local-0": "every-replica replicas", "t-proxy-local-0": "every-proxy first-proxy proxies", "t-proxy-local-1": "every-proxy proxies"}
	if !maps.Equal(got, want) {
		t.Errorf("steps and checks are %v, want %v", got, want)
	}
}
