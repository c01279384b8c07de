package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/loadgen"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// kvSystem returns a system that uses everything that can be rendered.
func kvSystem() *v1alpha1.SystemSpec {
	cluster := []v1alpha1.FileSet{{MountPath: "/config", Files: []v1alpha1.File{{
		Name: "peers", Template: `{{range .Replicas}}{{.Global}} {{.Host}} {{.IP}}:{{.Ports.peer}}
{{end}}`}}}}
	return &v1alpha1.SystemSpec{
		Parameters: []v1alpha1.Parameter{
			{Name: "batch", Type: v1alpha1.ParameterInteger}, {Name: "fast", Type: v1alpha1.ParameterBoolean},
			{Name: "timeout", Type: v1alpha1.ParameterDuration},
		},
		Workloads: []v1alpha1.Workload{{Name: "rw", Parameters: []v1alpha1.Parameter{{Name: "theta", Type: v1alpha1.ParameterDecimal}}}},
		Prepare: &v1alpha1.PrepareStep{
			Container:  v1alpha1.Container{Name: "keys", Image: "kv:1", Command: []string{"/kv", "keys", "{{len .Replicas}}"}},
			OutputPath: "/keys", Timeout: "10s",
		},
		Replicas: v1alpha1.ReplicasSpec{
			Count: "2*f+1", Ports: []v1alpha1.Port{{Name: "peer", Port: 7000}},
			Containers: []v1alpha1.Container{{
				Name: "kv", Image: "kv:{{.Parameters.batch}}", Command: []string{"/kv", "{{.Self.Index}}", "{{if .Parameters.fast}}--fast{{end}}"},
				Env: []v1alpha1.EnvVar{{Name: "REGION", Value: "{{.Self.Region}}"}},
			}},
			Files: cluster,
			Volumes: []v1alpha1.Volume{
				{Name: "wal", MountPath: "/wal", Medium: v1alpha1.VolumeMemory, Size: resource.MustParse("16Mi")},
				{Name: "db", MountPath: "/db", Medium: v1alpha1.VolumePersistentVolumeClaim, Size: resource.MustParse("1Gi")},
			},
			Ready: []v1alpha1.Gate{{Log: &v1alpha1.LogGate{Pattern: "ready", Stream: v1alpha1.StreamAny, Lines: 3}}, {Port: "peer"}, {HTTP: &v1alpha1.HTTPGate{Port: "peer", Path: "/ok"}}},
		},
		Steps: []v1alpha1.Step{
			{Name: "create", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/kv", "create"}, Until: "Retry", Timeout: "5s"},
			{Name: "load", RunsOn: v1alpha1.StepEveryClient, Command: []string{"/kv", "load", "{{.Self.First}}"}, Timeout: "1m"},
		},
		Clients: v1alpha1.ClientsTemplate{
			Driver:     &v1alpha1.DriverSpec{Protocol: "Process"},
			Containers: []v1alpha1.Container{{Name: "driver", Image: "kv:1", Command: []string{"/kv", "driver", "--theta={{.Parameters.theta}}"}}},
		},
	}
}

func kvTrial() *v1alpha1.TrialSpec {
	three := v1alpha1.Duration("3s")
	return &v1alpha1.TrialSpec{
		Experiment: "exp", Seed: 7, Workload: "rw",
		Parameters: map[string]v1alpha1.Value{
			"batch": v1alpha1.NewValue("4"), "fast": v1alpha1.NewValue("false"), "timeout": v1alpha1.NewValue("4ms"), "theta": v1alpha1.NewValue("0.9"),
		},
		Topology: v1alpha1.Topology{F: 1, Shards: 2, Regions: []v1alpha1.Region{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 1}}},
		Clients: v1alpha1.Clients{
			Loop: v1alpha1.LoopClosed, Nodes: 2, Count: 5, Timeout: "10s", Retry: v1alpha1.Retry{Backoff: "2ms", MaxBackoff: "300ms"},
		},
		Schedule: v1alpha1.Schedule{WarmUp: "2s", Measure: "5s", CoolDown: "1s", Drain: "2s"},
		Faults: []v1alpha1.Fault{{Name: "crash", At: "-1s", For: &three, NodeKill: &v1alpha1.NodeKill{Target: v1alpha1.Target{
			Replicas: []int32{2}, Shards: []int32{1},
		}}}},
	}
}

// resolved renders the kv trial with made-up addresses.
func resolved(t *testing.T, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec) *Trial {
	t.Helper()
	l := placement.NewLayout("ns", "exp-0a1b-3", spec, system)
	for i := range l.Servers {
		l.Servers[i].IP = "10.0.0." + string(rune('1'+i))
	}
	trial, err := NewTrial(spec, system, l)
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

func TestLayoutNamesCarryShardAndRegion(t *testing.T) {
	l := placement.NewLayout("ns", "exp-0a1b-3", kvTrial(), kvSystem())
	var got []string
	for _, r := range l.Servers {
		got = append(got, r.Name)
	}
	want := []string{"exp-0a1b-3-s0-east-0", "exp-0a1b-3-s0-east-1", "exp-0a1b-3-s0-west-0", "exp-0a1b-3-s1-east-0", "exp-0a1b-3-s1-east-1", "exp-0a1b-3-s1-west-0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("replicas (-want +got):\n%s", d)
	}
	last := l.Servers[5]
	if last.Index != 2 || last.Global != 5 || last.Shard != 1 || last.Host != "exp-0a1b-3-s1-west-0.exp-0a1b-3.ns.svc.cluster.local" {
		t.Errorf("last replica is %+v", last)
	}
	if len(l.Clients) != 2 || l.Clients[0].Count != 3 || l.Clients[1].First != 3 || l.Clients[1].Count != 2 {
		t.Errorf("5 clients on 2 nodes are %+v", l.Clients)
	}
}

// In a cluster with another domain, the names of pods once did not resolve.
func TestHostsAreInTheClustersDomain(t *testing.T) {
	l := placement.NewLayout("ns", "exp-0a1b-3", kvTrial(), kvSystem())
	for domain, want := range map[string]string{"": "cluster.local", "k8s.example.org": "k8s.example.org"} {
		named := l.InDomain(domain)
		if got, want := named.Servers[5].Host, "exp-0a1b-3-s1-west-0.exp-0a1b-3.ns.svc."+want; got != want {
			t.Errorf("in %q a replica is %s, want %s", domain, got, want)
		}
		if got, want := named.Clients[1].Host, "exp-0a1b-3-c-1.exp-0a1b-3.ns.svc."+want; got != want {
			t.Errorf("in %q a client is %s, want %s", domain, got, want)
		}
		if resolved, _ := named.Resolve(nil); resolved.Servers[5].Host != named.Servers[5].Host {
			t.Errorf("with addresses a replica of %q is %s", domain, resolved.Servers[5].Host)
		}
	}
	if got := l.Servers[5].Host; !strings.HasSuffix(got, ".svc.cluster.local") {
		t.Errorf("the layout that was copied has a replica %s", got)
	}
}

func TestReplicaDirective(t *testing.T) {
	trial := resolved(t, kvTrial(), kvSystem())
	pod, err := trial.Server(trial.Layout.Servers[5])
	if err != nil {
		t.Fatal(err)
	}
	d := pod.Directive
	if diff := cmp.Diff([]string{"/kv", "2"}, d.Containers[0].Command); diff != "" {
		t.Errorf("an argument that renders to nothing is left out (-want +got):\n%s", diff)
	}
	if env := strings.Join(d.Containers[0].Env, " "); !strings.Contains(env, "REGION=west") || !strings.Contains(env, "ASSAY_POD=exp-0a1b-3-s1-west-0") {
		t.Errorf("environment is %s", env)
	}
	wantGates := []protocol.Gate{{Log: "ready", Lines: 3, Stream: "Any", Container: "kv"}, {Address: "10.0.0.6:7000"}, {URL: "http://10.0.0.6:7000/ok"}}
	if diff := cmp.Diff(wantGates, d.Gates); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if len(pod.Files) != 1 || pod.Files[0].Path != "/config/peers" || strings.Count(string(pod.Files[0].Content), "10.0.0.") != 6 {
		t.Errorf("files are %+v", pod.Files)
	}
	if len(pod.Steps) != 0 {
		t.Errorf("the last replica of shard 1 runs steps %v; only the first replica of shard 0 does", pod.Steps)
	}
	if diff := cmp.Diff(protocol.Stop{Signal: "SIGTERM", Grace: 2 * time.Second}, d.Stop); diff != "" {
		t.Errorf("stop (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, a := range trial.Actions {
		kinds = append(kinds, a.ID)
	}
	if diff := cmp.Diff([]string{"crash/1/kill/exp-0a1b-3-s1-west-0", "crash/1/revive/exp-0a1b-3-s1-west-0"}, kinds); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestDriverRunsUnderTheLoadGenerator(t *testing.T) {
	trial := resolved(t, kvTrial(), kvSystem())
	pod, err := trial.Client(trial.Layout.Clients[1])
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Directive.Containers[0].Command; got[0] != protocol.BinDir+"/loadgen" {
		t.Fatalf("the client's command is %v, want the load generator", got)
	}
	var cfg loadgen.Config
	for _, f := range pod.Files {
		if f.Path == protocol.LoadgenConfigFile {
			if err := json.Unmarshal(f.Content, &cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cfg.FirstClient != 3 || cfg.Clients != 2 || cfg.Seed != 7 || cmp.Diff([]string{"/kv", "driver", "--theta=0.9"}, cfg.Driver.Command) != "" {
		t.Errorf("configuration is %+v", cfg)
	}
	if c := pod.Directive.Client; !c.WaitReady || c.Path != protocol.LoadgenResultFile {
		t.Errorf("client is %+v", c)
	}
	if _, ok := pod.Steps["load"]; !ok {
		t.Errorf("the client does not run the step load: %v", pod.Steps)
	}
}

// The agent reads a log of histograms in the unit that the System declares.
func TestHistogramsOfClients(t *testing.T) {
	system := kvSystem()
	system.Clients.Results = &v1alpha1.ClientResults{Format: v1alpha1.FormatHdrHistogram, Path: "/out/log", Histograms: &v1alpha1.ClientHistograms{Unit: "us", Tags: []string{"READ"}}}
	trial := resolved(t, kvTrial(), system)
	c := trial.clientOf(trial.Layout.Clients[0])
	if diff := cmp.Diff(&results.Histograms{Unit: "us", Tags: []string{"READ"}}, c.Histograms); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOpenLoopSharesTheRate(t *testing.T) {
	spec := kvTrial()
	rate, constant := int64(1000), v1alpha1.ArrivalsConstant
	spec.Clients.Loop, spec.Clients.Rate, spec.Clients.Arrivals = v1alpha1.LoopOpen, &rate, &constant
	trial := resolved(t, spec, kvSystem())
	sum := 0.0
	for _, c := range trial.Layout.Clients {
		cfg, err := trial.loadgenConfig(c, []string{"/kv"})
		if err != nil {
			t.Fatal(err)
		}
		sum += cfg.Rate
	}
	if sum < 999.999 || sum > 1000.001 {
		t.Errorf("the pods offer %v requests per second together, want 1000", sum)
	}
}

// Templates can use phases, traces and sessions, so that complete clients can carry them out.
func TestChangingLoadReachesClients(t *testing.T) {
	spec := kvTrial()
	rate := int64(1000)
	spec.Clients.Phases = []v1alpha1.LoadPhase{{For: "1500ms", Load: "20%"}, {For: "10s", Load: "20%", To: "100%"}}
	said := func(template string) string {
		t.Helper()
		text, err := Text("command", template, struct{ Load Load }{loadOf(spec.Clients)})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const phases = "{{range .Load.Phases}}{{.BeginSeconds}}+{{.Seconds}}: {{.FromRate}}-{{.ToRate}}, {{.FromClients}}-{{.ToClients}} clients; {{end}}"
	if got := said(phases); got != "0+1.5: 0-0, 1-1 clients; 1.5+10: 0-0, 1-5 clients; " {
		t.Errorf("phases of a closed loop of 5 clients are %q", got)
	}
	c := resolved(t, spec, kvSystem()).Layout.Clients[1]
	cfg, err := resolved(t, spec, kvSystem()).loadgenConfig(c, []string{"/kv"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]loadgen.Phase{{For: loadgen.Duration(1500 * time.Millisecond), From: 0.2, To: 0.2}, {For: loadgen.Duration(10 * time.Second), From: 0.2, To: 1}}, cfg.Phases); diff != "" || cfg.AllClients != 5 {
		t.Errorf("the generator has %d clients of all, and phases (-want +got):\n%s", cfg.AllClients, diff)
	}
	spec.Clients.Loop, spec.Clients.Rate = v1alpha1.LoopOpen, &rate
	if got := said(phases); got != "0+1.5: 200-200, 5-5 clients; 1.5+10: 200-1000, 5-5 clients; " {
		t.Errorf("phases of an open loop are %q", got)
	}
	spec.Clients.Phases, spec.Clients.Rate = nil, nil
	spec.Clients.Trace = &v1alpha1.Trace{File: "/traces/a", Begin: "10s", Speed: "200%"}
	spec.Clients.Session = &v1alpha1.Session{Requests: 5, Length: v1alpha1.SessionFixed}
	if got := said("{{.Load.Trace}} {{.Load.TraceBeginSeconds}} {{.Load.TraceSpeed}} {{.Load.SessionRequests}} {{.Load.SessionLength}}"); got != "/traces/a 10 2 5 Fixed" {
		t.Errorf("trace and sessions are %q", got)
	}
	if cfg, err = resolved(t, spec, kvSystem()).loadgenConfig(c, []string{"/kv"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&loadgen.Trace{File: "/traces/a", Begin: loadgen.Duration(10 * time.Second), Speed: 2}, cfg.Trace); diff != "" || cfg.Session == nil || *cfg.Session != (loadgen.UserSession{Requests: 5, Length: "Fixed"}) {
		t.Errorf("sessions %+v, trace (-want +got):\n%s", cfg.Session, diff)
	}
}

// A System's images without a registry come from the installation's registry. The agent's image
// comes from the configured place.
func TestRegistryOfSystems(t *testing.T) {
	spec, system := kvTrial(), kvSystem()
	system.Clients.Containers[0].Image = "quay.io/kv/driver:1"
	env := Environment{AgentImage: "assay/agent:dev", ImageRegistry: "r.example.org/mirror"}
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]corev1.PodSpec{
		"r.example.org/mirror/kv:4": o.Servers[0].Spec.Template.Spec, "r.example.org/mirror/kv:1": o.Prepare.Spec.Template.Spec, "quay.io/kv/driver:1": o.Clients[0].Spec.Template.Spec,
	} {
		if got := p.Containers[0].Image; got != want {
			t.Errorf("image %s, want %s", got, want)
		}
		if got := p.InitContainers[0].Image; got != env.AgentImage {
			t.Errorf("the agent's image is %s", got)
		}
	}
}

func TestPullPolicyOfTheAgentsImage(t *testing.T) {
	for policy, want := range map[corev1.PullPolicy]corev1.PullPolicy{"": corev1.PullIfNotPresent, corev1.PullAlways: corev1.PullAlways} {
		env := Environment{AgentImage: "agent:1", AgentPullPolicy: policy}
		spec, system := kvTrial(), kvSystem()
		o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
		if err != nil {
			t.Fatal(err)
		}
		pods := map[string]corev1.PodSpec{
			"clients": o.Clients[0].Spec.Template.Spec, "prepare": o.Prepare.Spec.Template.Spec, "replicas": o.Servers[0].Spec.Template.Spec,
			"machine": MachinePod(types.NamespacedName{Namespace: "ns", Name: "exp-0a1b-3"}, "uid", "node", env).Spec,
		}
		for name, p := range pods {
			found := 0
			for _, c := range slices.Concat(p.Containers, p.InitContainers) {
				if c.Image != env.AgentImage {
					continue
				}
				if found++; c.ImagePullPolicy != want {
					t.Errorf("%s: container %s has %s, want %s", name, c.Name, c.ImagePullPolicy, want)
				}
			}
			if found == 0 {
				t.Errorf("%s: no container has the agent's image", name)
			}
		}
	}
}

func TestObjectsAreRestricted(t *testing.T) {
	spec, system := kvTrial(), kvSystem()
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, Environment{AgentImage: "agent:1", CoordinatorAddress: "c:1"})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]corev1.PodSpec{"clients": o.Clients[0].Spec.Template.Spec, "prepare": o.Prepare.Spec.Template.Spec}
	for _, set := range o.Servers {
		pods[set.Name] = set.Spec.Template.Spec
	}
	for name, p := range pods {
		if *p.AutomountServiceAccountToken || p.HostNetwork || p.HostPID {
			t.Errorf("%s: a pod of a trial has no token of its own and nothing of the host", name)
		}
		for _, v := range p.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s: volume %s is a hostPath", name, v.Name)
			}
		}
		for _, c := range append(p.Containers, p.InitContainers...) {
			added := c.SecurityContext.Capabilities.Add
			if len(added) > 0 && c.Name != agentContainer {
				t.Errorf("%s: container %s adds capabilities %v", name, c.Name, added)
			}
			for _, m := range c.VolumeMounts {
				if m.Name == identityVolumeName && c.Name != agentContainer {
					t.Errorf("%s: container %s can read the agent's token", name, c.Name)
				}
			}
		}
	}
	if p := o.Servers[0].Spec.PersistentVolumeClaimRetentionPolicy; p.WhenDeleted != "Delete" || p.WhenScaled != "Delete" {
		t.Errorf("claims stay: %+v", p)
	}
	if !o.Service.Spec.PublishNotReadyAddresses {
		t.Error("names resolve only when pods are ready; artifacts resolve their peers once, at start")
	}
	if set := o.Servers[0]; set.Spec.Template.Spec.Containers[0].Image != "kv:4" || len(set.Spec.VolumeClaimTemplates) != 1 {
		t.Errorf("image %q and %d claims, want kv:4 and 1", set.Spec.Template.Spec.Containers[0].Image, len(set.Spec.VolumeClaimTemplates))
	}
}

func TestCheckNamesTheField(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.SystemSpec)
		want   string
	}{
		"a good system":        {func(*v1alpha1.SystemSpec) {}, ""},
		"no such parameter":    {func(s *v1alpha1.SystemSpec) { s.Replicas.Containers[0].Command[1] = "{{.Parameters.bath}}" }, "spec.replicas.containers[0].command[1]"},
		"a syntax error":       {func(s *v1alpha1.SystemSpec) { s.Replicas.Files[0].Files[0].Template = "{{range}}" }, "spec.replicas.files[0].files[0].template"},
		"no such port":         {func(s *v1alpha1.SystemSpec) { s.Replicas.Ready[1].Port = "http" }, `no port is called "http"`},
		"a step that is wrong": {func(s *v1alpha1.SystemSpec) { s.Steps[1].Command[2] = "{{.Self.Shard}}" }, "spec.steps[1].command[2]"},
		"an empty command":     {func(s *v1alpha1.SystemSpec) { s.Clients.Containers[0].Command = []string{"{{if false}}x{{end}}"} }, "every element renders to nothing"},
		"an empty loop without an end": {func(s *v1alpha1.SystemSpec) {
			s.Prepare.Container.Command[2] = `{{range 100000000000}}{{end}}x`
		}, "its loops run more than"},
		"templates that call each other twice": {func(s *v1alpha1.SystemSpec) {
			calls := `{{define "t0"}}{{end}}`
			for i := range 40 {
				calls += fmt.Sprintf(`{{define "t%d"}}{{template "t%d"}}{{template "t%d"}}{{end}}`, i+1, i, i)
			}
			s.Prepare.Container.Command[2] = calls + `{{template "t40"}}x`
		}, "its loops run more than"},
		"an endless template": {func(s *v1alpha1.SystemSpec) {
			s.Prepare.Container.Command[2] = `{{range .Replicas}}{{printf "%300000d" 1}}{{end}}`
		}, "it produces more than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			system := kvSystem()
			tc.change(system)
			_, err := Check(*system, *kvTrial())
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestFilesByNameFoldsEqualFiles(t *testing.T) {
	f := func(content string) []protocol.File {
		return []protocol.File{{Path: "/config/peers", Content: []byte(content)}}
	}
	trial := resolved(t, kvTrial(), kvSystem())
	part := map[string]string{"a": "replica", "b": "replica", "c": "client"}
	got := trial.FilesByName(map[string][]protocol.File{"a": f("1"), "b": f("2"), "c": f("3")}, part)
	want := map[string]string{"a.replica.config_peers": "1", "b.replica.config_peers": "2", "client.config_peers": "3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
