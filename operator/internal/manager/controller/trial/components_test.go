package trial

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// withTiers adds a coordinator that starts before the replicas, and f+1 proxies that start after
// them.
func withTiers(s *v1alpha1.SystemSpec) {
	like := s.Replicas
	like.Ready, like.ReadyTimeout = nil, "30s"
	coordinator := v1alpha1.Component{Name: "coordinator", ReplicasSpec: *like.DeepCopy()}
	coordinator.Count = "1"
	proxy := v1alpha1.Component{Name: "proxy", Order: v1alpha1.OrderAfterReplicas, ReplicasSpec: *like.DeepCopy()}
	proxy.Count = "f+1"
	proxy.Ports = []v1alpha1.Port{{Name: "front", Port: 7200}}
	proxy.Containers[0].Command = []string{"/proxy", "--index={{.Self.Index}}", "--of={{.Components.proxy.Count}}", "{{range .Replicas}}--backend={{.IP}} {{end}}"}
	s.Components = []v1alpha1.Component{proxy, coordinator}
	s.Clients.Containers[0].Command = []string{"/driver", "{{range .Components.proxy.Pods}}{{.IP}}:{{.Ports.front}} {{end}}"}
}

// killsAProxy aims the trial's fault at a component.
func killsAProxy(spec *v1alpha1.ExperimentSpec) {
	spec.Faults[0].NodeKill.Target = v1alpha1.Target{Component: "proxy", Pods: []int32{1}}
}

func TestComponentsLiveAndDieLikeReplicas(t *testing.T) {
	p := newPlayOf(t, withTiers, killsAProxy)
	p.settle(false)
	var sets appsv1.StatefulSetList
	if err := p.env.Client.List(t.Context(), &sets, client.InNamespace(p.ns)); err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, s := range sets.Items {
		made = append(made, strings.Join([]string{s.Name, s.Labels[v1alpha1.LabelPodType], s.Labels[v1alpha1.LabelComponent], s.Labels[v1alpha1.LabelShard]}, " "))
	}
	slices.Sort(made)
	if want := []string{"trial-0-coordinator-local component coordinator ", "trial-0-proxy-local component proxy ", "trial-0-s0-local replica  0"}; !slices.Equal(made, want) {
		t.Errorf("StatefulSets are %q, want %q", made, want)
	}
	p.schedule()

	// Pods start in this order. Each group waits until all pods of the group before are ready.
	var order []string
	for range 30 {
		p.reconcile()
		for _, r := range p.layout().Servers {
			if what := r.Part + r.Component; p.agents.directives[r.Name].Start && !slices.Contains(order, what) {
				order = append(order, what)
			}
		}
		p.agents.obey()
	}
	if want := []string{"componentcoordinator", "replica", "componentproxy"}; !slices.Equal(order, want) {
		t.Errorf("started in the order %q, want %q", order, want)
	}
	proxies := p.layout().Group("proxy")
	if len(proxies) != 2 {
		t.Fatalf("%d proxies, want f+1 = 2", len(proxies))
	}
	first, second := p.agents.directives[proxies[0].Name], p.agents.directives[proxies[1].Name]
	if got := strings.Join(second.Containers[0].Command, " "); !strings.HasPrefix(got, "/proxy --index=1 --of=2 --backend=10.0.0.1 --backend=10.0.0.2 --backend=10.0.0.3") {
		t.Errorf("the second proxy runs %q", got)
	}
	if second.Run == nil || len(second.Run.Actions) != 1 || second.Run.Actions[0].Kind != timeline.Kill || len(first.Run.Actions) != 0 {
		t.Fatalf("the second proxy's run is %+v, the first one's %+v; want a kill of the second", second.Run, first.Run)
	}
	if n := len(second.Network.Peers); n != 7 {
		t.Errorf("the links of a proxy go to %d pods, want all 7 others", n)
	}
	p.measured(1000, 0)
	p.settle(true)
	trial := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	parts := map[string]int{}
	for _, pod := range trial.Pods {
		parts[pod.Part]++
	}
	if parts["replica"] != 3 || parts["proxy"] != 2 || parts["coordinator"] != 1 || parts["client"] != 2 {
		t.Errorf("the results have the pods %v", parts)
	}
	if len(trial.Faults) != 1 || trial.Faults[0].Pod != proxies[1].Name || trial.Faults[0].Error != "" {
		t.Errorf("the results have the faults %+v", trial.Faults)
	}
}

func TestAComponentThatEndsIsAnOutcome(t *testing.T) {
	p := newPlayOf(t, withTiers, killsAProxy)
	p.released()
	name := p.layout().Group("coordinator")[0].Name
	p.agents.reports[name].Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateExited, ExitCode: 139, Exited: time.Second, Tail: "segfault"}}
	p.measured(10, 0)
	p.settle(true)
	if c := p.condition(v1alpha1.TrialValid); c.Reason != v1alpha1.ReasonReplicaExited || !strings.Contains(c.Message, name) {
		t.Errorf("the trial ended with %s: %s", c.Reason, c.Message)
	}
}

func TestAComponentThatIsNeverReady(t *testing.T) {
	p := newPlayOf(t, withTiers, killsAProxy)
	p.starting()
	for _, r := range p.layout().Servers {
		if p.agents.directives[r.Name].Start != (r.Component == "coordinator") {
			t.Errorf("%s: started %v while the coordinator is not ready", r.Name, p.agents.directives[r.Name].Start)
		}
	}
	p.clock.Step(60*time.Second + 2*30*time.Second + time.Second)
	p.settle(false)
	p.settle(true)
	if c := p.condition(v1alpha1.TrialValid); c.Reason != v1alpha1.ReasonDeadlineExceeded || !strings.Contains(c.Message, "coordinator") {
		t.Errorf("the trial ended with %s: %s", c.Reason, c.Message)
	}
}

// The trial waits for a component's step in its pods, and the verdict of its check is a result.
func TestStepsAndChecksOfComponents(t *testing.T) {
	p := newPlayOf(t, func(s *v1alpha1.SystemSpec) {
		withTiers(s)
		s.Steps = []v1alpha1.Step{{Name: "warm", RunsOn: v1alpha1.StepEveryReplica, Component: "proxy", Command: []string{"/warm"}, Until: "ExitZero", Timeout: "60s"}}
		s.Checks = []v1alpha1.SafetyCheck{{Name: "drained", RunsOn: v1alpha1.StepFirstReplica, Component: "coordinator", Command: []string{"/drained"}, ViolatedExitCode: 1, Timeout: "60s"}}
	}, killsAProxy)
	p.deployed()
	proxies := p.layout().GroupPods("proxy")
	for range 30 {
		p.reconcile()
		p.agents.obey()
		p.agents.reports[proxies[1]].Commands = nil // the second one has not answered yet
	}
	if c := p.condition(v1alpha1.TrialLoaded); c.Reason != v1alpha1.ReasonStepsRunning || !strings.Contains(c.Message, proxies[1]) || strings.Contains(c.Message, proxies[0]) {
		t.Fatalf("the step of %s is not waited for: %s: %s", proxies[1], c.Reason, c.Message)
	}
	for _, r := range p.layout().Servers {
		if got := len(p.agents.directives[r.Name].Commands); (got == 1) != (r.Component == "proxy") {
			t.Errorf("%s runs %d steps", r.Name, got)
		}
	}
	p.settle(true)
	if p.trial().Status.ZeroUnixNanos == 0 {
		t.Fatalf("the run was not released: %s", p.conditions())
	}
	p.measured(100, 0)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	if said := p.trial().Status.Checks; len(said) != 1 || said[0].Verdict != v1alpha1.SafetyHolds {
		t.Errorf("the check says %+v", said)
	}
}
