package trial

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/results"
)

// usedResources plays an agent on a pod that used little of a quiet node.
func usedResources(d protocol.Directive) *results.Resources {
	r := &results.Resources{Seconds: d.Run.Measure.Seconds(), CPUMeanCores: 0.2, CPUMaxCores: 0.3, Node: results.NodeUse{Seconds: d.Run.Measure.Seconds(), CPUs: 2, BusyShare: 0.4}}
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, results.ContainerUse{Name: c.Name, Seconds: r.Seconds, CPUMeanCores: 0.2})
	}
	return r
}

// tolerances are the defaults.
var tolerances = v1alpha1.Tolerances{Throttling: "1%", Steal: "1%", GeneratorLag: "10ms", ClockError: "10ms", OutOfRange: "0%", LinkLoss: "5%"}

func TestJudgeResources(t *testing.T) {
	pod := func(name string, change func(*results.Resources)) results.Pod {
		r := &results.Resources{Seconds: 20, Node: results.NodeUse{Seconds: 20}, Containers: []results.ContainerUse{
			{Name: "server", Seconds: 20, LimitCores: 0.5}, {Name: "proxy", Seconds: 20},
		}}
		if change != nil {
			change(r)
		}
		return results.Pod{Name: name, Node: "node-of-" + name, Resources: r}
	}
	throttled := func(share float64) func(*results.Resources) {
		return func(r *results.Resources) {
			r.Containers[0].ThrottledShare, r.Containers[0].ThrottledSeconds = share, 3.5
		}
	}
	stolen := func(share float64) func(*results.Resources) {
		return func(r *results.Resources) { r.Node.StealShare = share }
	}
	silent := results.Pod{Name: "a"}
	for name, tc := range map[string]struct {
		pods    []results.Pod
		change  func(*v1alpha1.Tolerances)
		reason  string
		message []string
	}{
		"quiet":                {pods: []results.Pod{pod("a", nil), pod("b", nil)}},
		"throttled a little":   {pods: []results.Pod{pod("a", throttled(0.01))}},
		"throttled":            {pods: []results.Pod{pod("a", throttled(0.011))}, reason: v1alpha1.ReasonCPUThrottled, message: []string{"Container server of a", "limit of 0.5 cores", "1.10%", "3.50 s", "tolerances.throttling is 1%"}},
		"the worst is named":   {pods: []results.Pod{pod("a", throttled(0.1)), pod("b", throttled(0.9)), pod("c", throttled(0.2))}, reason: v1alpha1.ReasonCPUThrottled, message: []string{"of b was", "90.00%"}},
		"throttled, tolerated": {pods: []results.Pod{pod("a", throttled(0.9))}, change: func(t *v1alpha1.Tolerances) { t.Throttling = "95%" }},
		"stolen a little":      {pods: []results.Pod{pod("a", stolen(0.01))}},
		"stolen":               {pods: []results.Pod{pod("a", stolen(0.02)), pod("b", stolen(0.0301))}, reason: v1alpha1.ReasonCPUStolen, message: []string{"node-of-b", "on which b ran", "3.01%", "tolerances.steal is 1%"}},
		"no word":              {pods: []results.Pod{pod("b", nil), silent}, reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"agent of a did not say"}},
		"no word, none wanted": {pods: []results.Pod{silent}, change: func(t *v1alpha1.Tolerances) { t.Throttling, t.Steal = "100%", "100%" }},
		"a container unread": {pods: []results.Pod{pod("a", func(r *results.Resources) {
			r.Containers[1].Seconds, r.Unmeasured = 0, []string{"container proxy: it sees no control group"}
		})}, reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"container proxy of a", "0.0 s", "80.00%", "tolerances.throttling", "it sees no control group"}},
		"a container unread, not judged": {pods: []results.Pod{pod("a", func(r *results.Resources) { r.Containers[1].Seconds = 0 })},
			change: func(t *v1alpha1.Tolerances) { t.Throttling = "100%" }},
		"a node half read":         {pods: []results.Pod{pod("a", func(r *results.Resources) { r.Node.Seconds = 10 })}, reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"the node of a", "10.0 s", "tolerances.steal"}},
		"read late":                {pods: []results.Pod{pod("a", func(r *results.Resources) { r.Node.Seconds, r.Containers[0].Seconds = 17, 16.5 })}},
		"a machine that was reset": {pods: []results.Pod{pod("a", nil), {Name: "reset"}}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.TrialSpec{Schedule: v1alpha1.Schedule{Measure: "20s"}, Tolerances: tolerances}
			if tc.change != nil {
				tc.change(&spec.Tolerances)
			}
			reason, message := judgeResources(spec, tc.pods, func(pod string) bool { return pod == "reset" })
			if reason != tc.reason {
				t.Errorf("reason %q (%s), want %q", reason, message, tc.reason)
			}
			for _, want := range tc.message {
				if !strings.Contains(message, want) {
					t.Errorf("the message is %q, want one with %q", message, want)
				}
			}
		})
	}
}

func TestJudgeClocks(t *testing.T) {
	pod := func(name string, offset, within float64) results.Pod {
		return results.Pod{Name: name, ClockOffsetMillis: offset, ClockErrorMillis: within}
	}
	for name, tc := range map[string]struct {
		pods    []results.Pod
		apart   v1alpha1.Duration
		reason  string
		message []string
	}{
		"known":                           {pods: []results.Pod{pod("a", 0, 1), pod("b", 5000, 10)}},
		"not known well":                  {pods: []results.Pod{pod("a", 0, 1), pod("b", 0, 10.1)}, reason: v1alpha1.ReasonClockUncertain, message: []string{"clock of b", "10.100 ms", "clockError is 10ms"}},
		"of a machine that was reset":     {pods: []results.Pod{pod("a", 0, 1), pod("reset", 0, 99)}},
		"apart as is tolerated":           {pods: []results.Pod{pod("a", 2, 1), pod("b", -5, 1), pod("c", 0, 1)}, apart: "9ms"},
		"further apart":                   {pods: []results.Pod{pod("a", 2, 1), pod("b", -5, 1.5), pod("c", 0, 1)}, apart: "9ms", reason: v1alpha1.ReasonClocksApart, message: []string{"a and b", "9.500 ms", "clockOffset is 9ms"}},
		"one pod is not apart":            {pods: []results.Pod{pod("a", 2, 5)}, apart: "9ms"},
		"no pod":                          {apart: "9ms"},
		"the error alone may be too much": {pods: []results.Pod{pod("a", 0, 5), pod("b", 0, 5)}, apart: "9ms", reason: v1alpha1.ReasonClocksApart},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.TrialSpec{Tolerances: tolerances}
			spec.Tolerances.ClockOffset = tc.apart
			reason, message := judgeClocks(spec, tc.pods, func(pod string) bool { return pod == "reset" })
			if reason != tc.reason {
				t.Errorf("reason %q (%s), want %q", reason, message, tc.reason)
			}
			for _, want := range tc.message {
				if !strings.Contains(message, want) {
					t.Errorf("the message is %q, want one with %q", message, want)
				}
			}
		})
	}
}

// The numbers are about exactly the clients that were to be correct: ten over two pods, of which every fifth misbehaves.
func TestJudgeClients(t *testing.T) {
	l := &render.Layout{Clients: []render.Client{{Index: 0, First: 0, Count: 6, Name: "c-0"}, {Index: 1, First: 6, Count: 4, Name: "c-1"}}}
	spec := &v1alpha1.TrialSpec{Tolerances: tolerances, Faults: []v1alpha1.Fault{{Name: "liars", ClientBehavior: &v1alpha1.ClientBehavior{Share: "20%"}}}}
	good := func() []results.Client {
		return []results.Client{{Index: 1, FirstClient: 6, Clients: 4, MisbehavingClients: 1}, {Index: 0, FirstClient: 0, Clients: 6, MisbehavingClients: 1}}
	}
	for name, tc := range map[string]struct {
		change  func([]results.Client) []results.Client
		merged  int32
		message string
	}{
		"exactly these":              {merged: 8},
		"a liar among the correct":   {change: func(c []results.Client) []results.Client { c[0].MisbehavingClients = 0; return c }, merged: 9, message: "c-1 reported of 4 clients from 6 on, of which 0 misbehaved; it has 4 from 6 on, of which 1 shall"},
		"one too many left out":      {change: func(c []results.Client) []results.Client { c[1].MisbehavingClients = 2; return c }, merged: 7, message: "c-0 reported"},
		"other clients":              {change: func(c []results.Client) []results.Client { c[0].FirstClient = 5; return c }, merged: 8, message: "c-1 reported"},
		"a pod of fewer clients":     {change: func(c []results.Client) []results.Client { c[1].Clients = 5; return c }, merged: 7, message: "c-0 reported"},
		"a pod that is not there":    {change: func(c []results.Client) []results.Client { return c[1:] }, merged: 5, message: "c-1 reported of 0 clients"},
		"a pod that is no pod":       {change: func(c []results.Client) []results.Client { return append(c, results.Client{Index: 2}) }, merged: 8, message: "from 3 pods; the trial has 8 from 2"},
		"merged otherwise than told": {merged: 7, message: "those of 7 correct clients"},
	} {
		t.Run(name, func(t *testing.T) {
			clients := good()
			if tc.change != nil {
				clients = tc.change(clients)
			}
			reason, message := judgeClients(spec, l, clients, results.Merged{CorrectClients: tc.merged})
			if (reason == v1alpha1.ReasonClientsMiscounted) != (tc.message != "") || !strings.Contains(message, tc.message) {
				t.Errorf("reason %q: %q, want %q", reason, message, tc.message)
			}
		})
	}
}

// A generator is judged by its own lag; that of one pod does not vanish among those of many.
func TestJudgeGenerators(t *testing.T) {
	lag := func(late time.Duration) string {
		h := results.NewHistogram()
		for i := range 100 {
			h.Record(time.Duration(i) * late / 100)
		}
		text, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	l := &render.Layout{Clients: []render.Client{{Index: 0, Name: "c-0"}, {Index: 1, Name: "c-1"}, {Index: 2, Name: "c-2"}}}
	pods := []results.Pod{{Name: "r-0"}, {Name: "c-0"}, {Name: "c-1"}, {Name: "c-2"}}
	spec := &v1alpha1.TrialSpec{Tolerances: tolerances}
	if err := setGeneratorLags(pods, l, []results.Client{{Index: 1, GeneratorLag: lag(9 * time.Millisecond)}, {Index: 0, GeneratorLag: lag(time.Millisecond)}, {Index: 2}}); err != nil {
		t.Fatal(err)
	}
	if reason, message := judgeGenerators(spec, pods); reason != "" || pods[2].GeneratorLagP99Millis < 8 || pods[1].GeneratorLagP99Millis > 1 {
		t.Errorf("%s %s of %+v, want nothing", reason, message, pods)
	}
	if err := setGeneratorLags(pods, l, []results.Client{{Index: 2, GeneratorLag: lag(20 * time.Millisecond)}}); err != nil {
		t.Fatal(err)
	}
	if reason, message := judgeGenerators(spec, pods); reason != v1alpha1.ReasonGeneratorLate || !strings.Contains(message, "of c-2 sent requests 19.") || !strings.Contains(message, "tolerances.generatorLag is 10ms") {
		t.Errorf("%s: %s", reason, message)
	}
	if err := setGeneratorLags(pods, l, []results.Client{{Index: 0, GeneratorLag: "x"}}); err == nil {
		t.Error("a histogram that is none is accepted")
	}
}

// What the agents say of their pods' resources decides over the trial, is in its results and its headline, and is waited for.
func TestAThrottledTrialIsInvalid(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	name := p.layout().ReplicaPods()[1]
	r := p.agents.reports[name].Resources
	p.agents.reports[name].Resources = nil
	p.measured(10, 0)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialCollected); !strings.Contains(c.Message, name) {
		t.Fatalf("the account of %s is not waited for: %s", name, p.conditions())
	}
	r.Containers[0].ThrottledShare, r.ThrottledShare, r.Containers[0].LimitCores, r.Node.StealShare = 0.25, 0.25, 0.1, 0.005
	p.agents.reports[name].Resources = r
	p.settle(false)
	p.clock.Step(time.Minute)
	p.settle(false)
	got := p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonCPUThrottled)
	if !strings.Contains(got.Message, "of "+name+" was held back by its CPU limit of 0.1 cores in 25.00% of the window") {
		t.Errorf("the message is %q", got.Message)
	}
	if h := p.trial().Status.Headline; h == nil || h.ThrottledPerMillion == nil || *h.ThrottledPerMillion != 250000 || h.StealPerMillion == nil || *h.StealPerMillion != 5000 {
		t.Errorf("the headline is %+v", h)
	}
	for _, pod := range got.Pods {
		if pod.Resources == nil || (pod.Resources.ThrottledShare == 0.25) != (pod.Name == name) {
			t.Errorf("the results have of %s: %+v", pod.Name, pod.Resources)
		}
	}
}

// An agent that never says what its pod used cannot hold up the trial, but its trial cannot be trusted.
func TestATrialOfUnknownResourcesIsInvalid(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	p.agents.reports[p.layout().ClientPods()[0]].Resources = nil
	p.measured(10, 0)
	p.settle(false)
	p.clock.Step(resultsGrace + time.Minute)
	p.settle(false)
	p.clock.Step(time.Minute)
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonResourcesNotMeasured)
}

// The number of connections that were reset is final only when no request may be sent any more: clients may be over before.
func TestTheLastCountOfResetsIsWaitedFor(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	name := p.layout().ReplicaPods()[0]
	p.agents.reports[name].ResetsCounted, p.agents.reports[name].TCPResets = false, 1
	p.measured(10, 0)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialCollected); !strings.Contains(c.Message, name) {
		t.Fatalf("the account of %s is not waited for: %s", name, p.conditions())
	}
	p.agents.reports[name].ResetsCounted, p.agents.reports[name].TCPResets = true, 7
	p.settle(false)
	p.clock.Step(time.Minute)
	p.settle(false)
	got := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	for _, pod := range got.Pods {
		if pod.Name == name && pod.TCPResets != 7 {
			t.Errorf("%d resets, want the last count, 7", pod.TCPResets)
		}
	}
}
