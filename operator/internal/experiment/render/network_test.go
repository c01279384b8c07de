package render

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/loadgen"
	"assay.dev/assay/operator/internal/node/protocol"
)

func lasting(text string) *v1alpha1.Duration {
	d := v1alpha1.Duration(text)
	return &d
}

// widened returns the kv trial with clients in the west, 20 ms to the west, 30 ms back, and no
// delay inside a region.
func widened() *v1alpha1.TrialSpec {
	spec := kvTrial()
	spec.Clients.Regions = []string{"west"}
	spec.Tolerances.LinkDelay = "1ms"
	spec.Network = v1alpha1.Network{Backend: v1alpha1.ShapingAuto, Links: []v1alpha1.RegionLink{
		{From: "east", To: "west", LinkEffect: v1alpha1.LinkEffect{Delay: lasting("20ms")}},
		{From: "west", To: "east", LinkEffect: v1alpha1.LinkEffect{Delay: lasting("30ms"), Loss: "1%"}},
	}}
	return spec
}

func TestNetworkOfAPod(t *testing.T) {
	spec := widened()
	trial := resolved(t, spec, kvSystem())
	for i := range trial.Layout.Clients {
		trial.Layout.Clients[i].IP = fmt.Sprintf("10.0.1.%d", i+1)
	}
	n, err := trial.Network(trial.Layout.Servers[2].Name) // in the west
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for p := range n.All() {
		got = append(got, fmt.Sprintf("%s %s out %v in %v lost %v", p.Name, p.Address, p.Out.Delay, p.In.Delay, p.Out.Loss))
	}
	want := []string{
		"exp-0a1b-3-s0-east-0 10.0.0.1 out 30ms in 20ms lost 0.01", "exp-0a1b-3-s0-east-1 10.0.0.2 out 30ms in 20ms lost 0.01",
		"exp-0a1b-3-s1-east-0 10.0.0.4 out 30ms in 20ms lost 0.01", "exp-0a1b-3-s1-east-1 10.0.0.5 out 30ms in 20ms lost 0.01",
		"exp-0a1b-3-s1-west-0 10.0.0.6 out 0s in 0s lost 0", "exp-0a1b-3-c-0 10.0.1.1 out 0s in 0s lost 0", "exp-0a1b-3-c-1 10.0.1.2 out 0s in 0s lost 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
	if n.Tolerance != time.Millisecond || n.Shape || n.Backend != "" || n.ProbeKey != nil || !trial.Shapes() {
		t.Errorf("the network is %+v: want the tolerance, and nothing that is decided later", n)
	}
	back, err := trial.Network(trial.Layout.Servers[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	here := slices.Collect(n.All())[0]
	for p := range back.All() {
		if p.Name == trial.Layout.Servers[2].Name && (p.Out != here.In || p.In != here.Out) {
			t.Errorf("the two ends of a link are told different things: %+v and %+v", p, here)
		}
	}
}

// Each pod once had its own list of all others and their hosts, which took a hundred megabytes in a
// trial of 750 pods.
func TestPodsShareTheListOfAllPods(t *testing.T) {
	trial := resolved(t, widened(), kvSystem())
	for i := range trial.Layout.Clients {
		trial.Layout.Clients[i].IP = fmt.Sprintf("10.0.1.%d", i+1)
	}
	names := append(trial.Layout.ServerPods(), trial.Layout.ClientPods()...)
	network := func(pod string) *protocol.Network {
		n, err := trial.Network(pod)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, name := range names {
		network(name)
	}
	if n := testing.AllocsPerRun(20, func() { network(names[0]) }); n > 1 {
		t.Errorf("the network of a pod takes %.0f allocations", n)
	}
	if east, also, west := network(names[0]), network(names[1]), network(names[2]); east.Mesh != also.Mesh || east.Mesh == west.Mesh {
		t.Error("two pods of a region do not share what they are told, or pods of two regions do")
	}
	var hosts []*string
	for _, c := range trial.Layout.Clients {
		pod, err := trial.Client(c)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, &pod.Directive.Resolve[0])
	}
	server, err := trial.Server(trial.Layout.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	hosts = append(hosts, &server.Directive.Resolve[0])
	for _, first := range hosts {
		if first != hosts[0] {
			t.Error("a pod has a list of hosts of its own")
		}
	}
	if len(server.Directive.Resolve) != len(trial.Layout.Servers) {
		t.Errorf("a server resolves %q", server.Directive.Resolve)
	}
}

// A file that lists all pods was once stored for each pod.
func TestEqualFilesAreKeptOnce(t *testing.T) {
	one, other := []protocol.File{{Path: "/a", Content: []byte("same")}, {Path: "/b", Content: []byte("one")}}, []protocol.File{{Path: "/c", Content: []byte("same")}, {Path: "/b", Content: []byte("other")}}
	contents := map[[sha256.Size]byte][]byte{}
	share(one, contents)
	share(other, contents)
	if &one[0].Content[0] != &other[0].Content[0] {
		t.Error("equal contents are kept twice")
	}
	if string(one[1].Content) != "one" || string(other[1].Content) != "other" || other[0].Path != "/c" {
		t.Errorf("the files have become %+v and %+v", one, other)
	}
}

func TestCapabilitiesOfAgents(t *testing.T) {
	admin := []corev1.Capability{"NET_ADMIN"}
	degrade := v1alpha1.Fault{Name: "slow", At: "0s", Degrade: &v1alpha1.Degrade{
		Target: &v1alpha1.Target{Replicas: []int32{0}}, LinkEffect: v1alpha1.LinkEffect{Delay: lasting("9ms")},
	}}
	isolate := func(clients string) v1alpha1.Fault {
		return v1alpha1.Fault{Name: "alone", At: "0s", Partition: &v1alpha1.Partition{
			Isolate: &v1alpha1.Target{Replicas: []int32{0}, Shards: []int32{0}}, Clients: clients,
		}}
	}
	type perPod map[string][]corev1.Capability // shard 1, east; shard 1, west; clients
	everyPod := func(c ...corev1.Capability) perPod { return perPod{"s1-east": c, "s1-west": c, "clients": c} }
	by := func(backend v1alpha1.ShapingBackend) func(*v1alpha1.TrialSpec) {
		return func(s *v1alpha1.TrialSpec) { s.Network, s.Network.Backend = widened().Network, backend }
	}
	tests := map[string]struct {
		change func(*v1alpha1.TrialSpec)
		want   perPod
	}{
		"nothing is done to the network": {func(s *v1alpha1.TrialSpec) { s.Faults = nil }, perPod{}},
		"a kill":                         {func(*v1alpha1.TrialSpec) {}, perPod{"s1-west": admin}},
		"a pause": {func(s *v1alpha1.TrialSpec) {
			s.Faults = []v1alpha1.Fault{{Name: "gc", At: "0s", Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Replicas: []int32{0}}}}}
		}, perPod{}},
		"a cut between replicas": {func(s *v1alpha1.TrialSpec) { s.Faults = []v1alpha1.Fault{isolate("Everyone")} },
			perPod{"s1-east": admin, "s1-west": admin}},
		"a cut of clients": {func(s *v1alpha1.TrialSpec) { s.Faults = []v1alpha1.Fault{isolate("FirstGroup")} },
			perPod{"s1-east": admin, "s1-west": admin, "clients": admin}},
		"a link that gets worse": {func(s *v1alpha1.TrialSpec) { s.Faults = []v1alpha1.Fault{degrade} },
			everyPod("NET_ADMIN", "BPF", "SYS_NICE")},
		"links, whatever shapes them": {by(v1alpha1.ShapingAuto), everyPod("NET_ADMIN", "BPF", "SYS_NICE")},
		"links by EDT":                {by(v1alpha1.ShapingEDT), everyPod("NET_ADMIN", "BPF")},
		"links by Netem":              {by(v1alpha1.ShapingNetem), everyPod("NET_ADMIN")},
		"links by NFQueue":            {by(v1alpha1.ShapingNFQueue), everyPod("NET_ADMIN", "SYS_NICE")},
		"a link that no pods are at": {func(s *v1alpha1.TrialSpec) {
			s.Topology.Shards, s.Clients.Regions, s.Faults = 1, []string{"east"}, nil
			s.Network.Links = []v1alpha1.RegionLink{{Between: []string{"west", "west"}, LinkEffect: v1alpha1.LinkEffect{Delay: lasting("1ms")}}}
		}, perPod{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec, system := kvTrial(), kvSystem()
			spec.Clients.Regions = []string{"west"}
			tc.change(spec)
			o, err := NewObjects(placement.NewLayout("ns", "exp", spec, system), spec, system, Environment{AgentImage: "agent:1"})
			if err != nil {
				t.Fatal(err)
			}
			got := perPod{}
			note := func(name string, p corev1.PodSpec) {
				if add := p.InitContainers[0].SecurityContext.Capabilities.Add; len(add) > 0 {
					got[name] = add
				}
			}
			note("clients", o.Clients[0].Spec.Template.Spec)
			note("prepare", o.Prepare.Spec.Template.Spec)
			for _, set := range o.Servers {
				if set.Name == "exp-s1-east" || set.Name == "exp-s1-west" {
					note(set.Name[len("exp-"):], set.Spec.Template.Spec)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("capabilities (-want +got):\n%s", diff)
			}
		})
	}
}

// Only experiments that cannot run otherwise ask for rights that a cluster's owner withholds.
func TestWithheldCapabilities(t *testing.T) {
	type capabilitiesOf map[v1alpha1.ShapingBackend][]corev1.Capability
	admin := corev1.Capability("NET_ADMIN")
	for name, tc := range map[string]struct {
		env  Environment
		want capabilitiesOf
	}{
		"nothing": {Environment{}, capabilitiesOf{"Auto": {admin, "BPF", "SYS_NICE"}, "EDT": {admin, "BPF"}, "Netem": {admin}, "NFQueue": {admin, "SYS_NICE"}}},
		"BPF":     {Environment{WithoutBPF: true}, capabilitiesOf{"Auto": {admin, "SYS_NICE"}, "EDT": {admin, "BPF"}, "Netem": {admin}, "NFQueue": {admin, "SYS_NICE"}}},
		"SYS_NICE": {Environment{WithoutSysNice: true},
			capabilitiesOf{"Auto": {admin, "BPF"}, "EDT": {admin, "BPF"}, "Netem": {admin}, "NFQueue": {admin}}},
		"both": {Environment{WithoutBPF: true, WithoutSysNice: true},
			capabilitiesOf{"Auto": {admin}, "EDT": {admin, "BPF"}, "Netem": {admin}, "NFQueue": {admin}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := capabilitiesOf{}
			for backend := range tc.want {
				spec, system := widened(), kvSystem()
				spec.Network.Backend = backend
				o, err := NewObjects(placement.NewLayout("ns", "exp", spec, system), spec, system, tc.env)
				if err != nil {
					t.Fatal(err)
				}
				got[backend] = o.Clients[0].Spec.Template.Spec.InitContainers[0].SecurityContext.Capabilities.Add
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("capabilities (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolesAndVolumesOfAReplica(t *testing.T) {
	spec, system := kvTrial(), kvSystem()
	system.Roles = []v1alpha1.Role{
		{Name: "leader", HTTP: &v1alpha1.HTTPGate{Port: "peer", Path: "/leader"}},
		{Name: "primary", Log: &v1alpha1.RoleLog{Gained: "^lead$", Lost: "^follow$", Stream: v1alpha1.StreamAny}},
		{Name: "coordinator", Command: []string{"/kv", "role", "{{.Self.Index}}"}},
		{Name: "unused", Command: []string{"{{nonsense"}},
	}
	spec.Faults = nil
	for i, role := range []string{"leader", "primary", "coordinator"} {
		spec.Faults = append(spec.Faults, v1alpha1.Fault{
			Name: role, At: v1alpha1.Duration(fmt.Sprintf("%ds", i)), Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: role, Shards: []int32{1}}},
		})
	}
	spec.Faults = append(spec.Faults, v1alpha1.Fault{Name: "crash", At: "4s", NodeKill: &v1alpha1.NodeKill{Target: v1alpha1.Target{Replicas: []int32{1}}}})
	trial := resolved(t, spec, system)
	pod, err := trial.Server(trial.Layout.Servers[4]) // shard 1, index 1
	if err != nil {
		t.Fatal(err)
	}
	wantRoles := []protocol.RoleProbe{
		{Role: "leader", Gate: &protocol.Gate{URL: "http://10.0.0.5:7000/leader"}},
		{Role: "primary", Gained: "^lead$", Lost: "^follow$", Stream: "Any", Container: "kv"},
		{Role: "coordinator", Gate: &protocol.Gate{Command: []string{"/kv", "role", "1"}, Container: "kv"}},
	}
	if diff := cmp.Diff(wantRoles, pod.Directive.Roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	wantVolumes := []protocol.Volume{{Name: "wal", Path: "/wal", Memory: true}, {Name: "db", Path: "/db"}}
	if diff := cmp.Diff(wantVolumes, pod.Directive.Volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	other, err := trial.Server(trial.Layout.Servers[0])
	if err != nil || other.Directive.Roles != nil || !slices.Equal(other.Directive.Volumes, wantVolumes) { // these pods are measured
		t.Errorf("a replica that no fault is for is told %+v %+v (%v)", other.Directive.Roles, other.Directive.Volumes, err)
	}
	spec.Faults[0].Pause.Target.Role = "chairman"
	if _, err := resolved(t, spec, system).Server(trial.Layout.Servers[4]); err == nil {
		t.Error("a role that the System does not have is accepted")
	}
}

func TestMisbehavingClientsAreSpreadEvenly(t *testing.T) {
	tests := []struct {
		share string
		count int
		want  []int32
	}{
		{"30%", 10, []int32{3, 6, 9}},
		{"50%", 5, []int32{1, 3}},
		{"29%", 100, nil}, // 29 of 100; floating point would give 28
		{"33.4%", 6, []int32{2, 5}},
		{"1%", 50, nil},
	}
	for _, tc := range tests {
		spec := kvTrial()
		spec.Faults = []v1alpha1.Fault{{Name: "stall", ClientBehavior: &v1alpha1.ClientBehavior{Share: tc.share}}}
		got, err := Misbehaving(spec, 0, tc.count)
		if err != nil {
			t.Fatal(err)
		}
		if tc.count == 100 {
			if len(got) != 29 {
				t.Errorf("%s of %d clients are %d, want 29", tc.share, tc.count, len(got))
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s of %d clients (-want +got):\n%s", tc.share, tc.count, diff)
		}
		var parts []int32 // the result does not depend on the clients' pods
		for first := 0; first < tc.count; first += 3 {
			part, err := Misbehaving(spec, first, min(3, tc.count-first))
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part...)
		}
		if diff := cmp.Diff(got, parts); diff != "" {
			t.Errorf("%s of %d clients, pod by pod (-all +parts):\n%s", tc.share, tc.count, diff)
		}
	}
}

func TestMisbehavingClientsHaveADriverOfTheirOwn(t *testing.T) {
	spec := kvTrial()
	spec.Faults = []v1alpha1.Fault{{Name: "stall", ClientBehavior: &v1alpha1.ClientBehavior{
		Share: "40%", Parameters: map[string]v1alpha1.Value{"theta": v1alpha1.NewValue("0.1")},
	}}}
	system := kvSystem()
	system.Clients.Containers[0].Command = append(system.Clients.Containers[0].Command, "--batch={{.Parameters.batch}}")
	trial := resolved(t, spec, system)
	pod, err := trial.Client(trial.Layout.Clients[1]) // clients 3 and 4
	if err != nil {
		t.Fatal(err)
	}
	var cfg loadgen.Config
	for _, f := range pod.Files {
		if f.Path == protocol.LoadgenConfigFile {
			if err := json.Unmarshal(f.Content, &cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := &loadgen.Misbehaving{Clients: []int32{4}, Driver: loadgen.DriverConfig{Protocol: "Process", Command: []string{"/kv", "driver", "--theta=0.1", "--batch=4"}}}
	if diff := cmp.Diff(want, cfg.Misbehaving); diff != "" {
		t.Errorf("misbehaving (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/kv", "driver", "--theta=0.9", "--batch=4"}, cfg.Driver.Command); diff != "" {
		t.Errorf("the others' driver (-want +got):\n%s", diff)
	}
}

func TestANetworkThatNamesNoRegionIsRefused(t *testing.T) {
	spec := kvTrial()
	spec.Network.Links = []v1alpha1.RegionLink{{From: "east", To: "wset", LinkEffect: v1alpha1.LinkEffect{Delay: lasting("1ms")}}}
	if _, err := Check(*kvSystem(), *spec); err == nil {
		t.Error("a link to a region without pods is accepted")
	}
	if _, err := resolved(t, kvTrial(), kvSystem()).Network("nobody"); err == nil {
		t.Error("a pod that is none of the trial's has a network")
	}
	if (shaping.Link{}) != resolved(t, kvTrial(), kvSystem()).links[network.Direction{From: "east", To: "west"}] {
		t.Error("a lan adds something")
	}
}
