package render

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/podsecurity"
	"assay.dev/assay/operator/internal/node/protocol"
)

// sweep returns the System of systems/sweep, and the trial that its Experiment plans.
func sweep(t *testing.T) (*v1alpha1.SystemSpec, *v1alpha1.TrialSpec) {
	t.Helper()
	read := func(name string, into any) {
		text, err := os.ReadFile("../../../../systems/sweep/" + name)
		if err == nil {
			err = yaml.UnmarshalStrict(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var system v1alpha1.System
	var experiment v1alpha1.Experiment
	read("system.yaml", &system)
	read("experiment.yaml", &experiment)
	experiment.Spec.Topology.Shards, experiment.Spec.Clients.Nodes, experiment.Spec.Clients.Count = 1, 1, 1 // as the API server does
	experiment.Spec.Network.Profile, experiment.Spec.Schedule.WarmUp, experiment.Spec.Schedule.CoolDown, experiment.Spec.Schedule.Drain = "lan", "5s", "2s", "10s"
	experiment.Spec.Clients.Timeout, experiment.Spec.Clients.Retry = "10s", v1alpha1.Retry{Backoff: "2ms", MaxBackoff: "300ms"}
	p, errs := plan.Expand(&experiment, map[string]v1alpha1.SystemSpec{"sweep": system.Spec})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if len(p.Points) != 1 {
		t.Fatalf("%d trials are planned of the points, want one run of the script for all four", len(p.Points))
	}
	return &system.Spec, &p.Points[0].Template
}

func TestRowsArePlannedAsPointsOfOneRun(t *testing.T) {
	_, spec := sweep(t)
	var got []string
	for _, r := range spec.Script.Rows {
		got = append(got, r.Coordinates["policy"]+" "+r.Coordinates["parts"])
	}
	if diff := cmp.Diff([]string{"lock 1", "lock 4", "queue 1", "queue 4"}, got); diff != "" {
		t.Errorf("the rows' points (-want +got):\n%s", diff)
	}
	if spec.Schedule.WarmUp != "0s" || spec.Schedule.CoolDown != "0s" || spec.Schedule.Measure != "2m" {
		t.Errorf("the schedule is %+v; a script has no warm-up", spec.Schedule)
	}
}

func TestMachinesArePods(t *testing.T) {
	system, spec := sweep(t)
	system.Script.HostsFile = &v1alpha1.HostsFile{Path: "~/artifact/ips.txt", Line: "{{.IP}} {{.Name}} {{.Group}}{{.Index}}"}
	l := placement.NewLayout("ns", "table1-0a1b-0", spec, system)
	if len(l.Servers) != 2 || len(l.Clients) != 1 {
		t.Fatalf("there are %d servers and %d clients, want m1 and m2, and m0 as the client", len(l.Servers), len(l.Clients))
	}
	for i := range l.Servers {
		l.Servers[i].IP = "10.0.0." + string(rune('2'+i))
	}
	l.Clients[0].IP = "10.0.0.1"
	o, err := NewObjects(l, spec, system, Environment{AgentImage: "agent:1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range map[string]corev1.PodSpec{"m0": o.Clients[0].Spec.Template.Spec, "m1 and m2": o.Servers[0].Spec.Template.Spec} {
		t.Run(name, func(t *testing.T) {
			var init, mounts []string
			for _, c := range pod.InitContainers {
				init = append(init, c.Name)
			}
			for _, m := range pod.Containers[0].VolumeMounts {
				mounts = append(mounts, m.MountPath+" "+m.SubPath)
			}
			if diff := cmp.Diff([]string{"agent", "setup"}, init); diff != "" {
				t.Errorf("init containers (-want +got):\n%s", diff)
			}
			for _, want := range []string{"/home/author ", "/etc/passwd etc/passwd", "/etc/group etc/group", "/etc/hosts etc/hosts", "/assay/keys "} {
				if !slices.Contains(mounts, want) {
					t.Errorf("%q is not mounted: %q", want, mounts)
				}
			}
			if hook := pod.InitContainers[0].Lifecycle.PostStart.Exec.Command; !strings.Contains(strings.Join(hook, " "), "/machine") {
				t.Errorf("the agent installs %q, without the machine's program", hook)
			}
			if s := pod.SecurityContext.Sysctls; len(s) != 1 || s[0].Name != "net.ipv4.ip_unprivileged_port_start" || s[0].Value != "0" {
				t.Errorf("sysctls are %v; port 22 must be an ordinary user's", s)
			}
			if *pod.Containers[0].SecurityContext.RunAsUser == 0 || len(pod.Containers[0].SecurityContext.Capabilities.Add) > 0 {
				t.Errorf("the machine has privileges: %+v", pod.Containers[0].SecurityContext)
			}
		})
	}
	tr, err := NewTrial(spec, system, l)
	if err != nil {
		t.Fatal(err)
	}
	client, err := tr.Client(l.Clients[0])
	if err != nil {
		t.Fatal(err)
	}
	server, err := tr.Server(l.Servers[1])
	if err != nil {
		t.Fatal(err)
	}
	m0, m2 := configOf(t, client), configOf(t, server)
	want := []protocol.MachineHost{
		{IP: "10.0.0.1", Names: []string{"m0", l.Clients[0].Host}}, {IP: "10.0.0.2", Names: []string{"m1", l.Servers[0].Host}}, {IP: "10.0.0.3", Names: []string{"m2", l.Servers[1].Host}},
	}
	if diff := cmp.Diff(want, m0.Hosts); diff != "" {
		t.Errorf("m0's hosts (-want +got):\n%s", diff)
	}
	if m2.Name != "m2" || m2.Script != nil || m2.Home != "/home/author" || m2.Port != 22 {
		t.Errorf("m2 is %+v", m2)
	}
	if s := m0.Script; s == nil || s.Command[0] != "./run.sh" || s.Dir != "/home/author/artifact" || s.Results != "/home/author/results/table1.tsv" || s.Deadline.Minutes() != 2 {
		t.Errorf("m0's script is %+v", m0.Script)
	}
	if s := m0.Script; s.HostsTo != "/home/author/artifact/ips.txt" || s.HostsText != "10.0.0.1 m0 nodes0\n10.0.0.2 m1 nodes1\n10.0.0.3 m2 nodes2\n" {
		t.Errorf("the hosts file %s has\n%s", s.HostsTo, s.HostsText)
	}
	if c := client.Directive.Client; c.Format != "Rows" || c.Path != v1alpha1.ScriptResultFile || !client.Directive.Containers[0].Respawn || !server.Directive.Containers[0].Respawn {
		t.Errorf("the client is %+v", client.Directive.Client)
	}
	if g := server.Directive.Gates; len(g) != 1 || g[0].Address != "10.0.0.3:22" {
		t.Errorf("m2 is ready by %+v, want that its port 22 is open", g)
	}
}

func configOf(t *testing.T, pod *Pod) protocol.MachineConfig {
	t.Helper()
	var c protocol.MachineConfig
	for _, f := range pod.Files {
		if f.Path == protocol.RunDir+"/machine.json" {
			if err := json.Unmarshal(f.Content, &c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// A namespace that admits only ordinary users admits machines, if nothing shapes the network.
func TestMachinesPassTheRestrictedProfile(t *testing.T) {
	system, spec := sweep(t)
	spec.Network.Shaping = v1alpha1.ShapingNone
	o, err := NewObjects(placement.NewLayout("ns", "table1-0a1b-0", spec, system), spec, system, Environment{AgentImage: "agent:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range o.Templates() {
		refusal, err := podsecurity.Check(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, template.Spec)
		if refusal != nil || err != nil {
			t.Errorf("pods of %s: %+v, %v", template.What, refusal, err)
		}
	}
}

func TestNamesOfMachinesDiffer(t *testing.T) {
	system, spec := sweep(t)
	system.Machines = append(system.Machines, v1alpha1.MachineGroup{Name: "more", Count: "1", Hostnames: "m1", Image: "i"})
	spec.Topology.Components = []v1alpha1.ComponentRegions{{Name: "more", Regions: []v1alpha1.Region{{Name: "local", Replicas: 1}}}}
	if _, err := Check(*system, *spec); err == nil || !strings.Contains(err.Error(), `"m1" is the name of two machines, number 1 of nodes and number 0 of this group`) {
		t.Errorf("the error is %v", err)
	}
}

// All machines of a trial share its directories, and so does the step that empties them before. No
// machine of another trial does.
func TestMachinesShareDirectoriesOfTheirTrial(t *testing.T) {
	system, spec := sweep(t)
	system.Shared = []v1alpha1.SharedDirectory{{Path: "/proj"}, {Path: "/home/author/data"}}
	l := placement.NewLayout("ns", "table1-0a1b-0", spec, system)
	o, err := NewObjects(l, spec, system, Environment{AgentImage: "agent:1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range map[string]corev1.PodSpec{"m0": o.Clients[0].Spec.Template.Spec, "m1 and m2": o.Servers[0].Spec.Template.Spec, "keys": o.Prepare.Spec.Template.Spec} {
		var mounts []string
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name == "shared" {
				mounts = append(mounts, m.MountPath+" "+m.SubPath)
			}
		}
		if diff := cmp.Diff([]string{"/proj table1-0a1b-0/0", "/home/author/data table1-0a1b-0/1"}, mounts); diff != "" {
			t.Errorf("%s sees (-want +got):\n%s", name, diff)
		}
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.Name == "shared" && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "assay-shared"
		}) {
			t.Errorf("%s has no claim of shared directories: %+v", name, pod.Volumes)
		}
	}
	if keys := system.Deployed().Prepare.Container.Command; !slices.Equal(keys[len(keys)-2:], []string{"/proj", "/home/author/data"}) {
		t.Errorf("the prepare step empties nothing: %q", keys)
	}
}
