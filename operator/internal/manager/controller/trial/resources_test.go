package trial

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// usedResources plays an agent whose pod used little of a quiet node.
func usedResources(d protocol.Directive) *results.Resources {
	r := &results.Resources{Seconds: d.Run.Measure.Seconds(), CPUMeanCores: 0.2, CPUMaxCores: 0.3, Node: results.NodeUse{Seconds: d.Run.Measure.Seconds(), CPUs: 2, BusyShare: 0.4}}
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, results.ContainerUse{Name: c.Name, Seconds: r.Seconds, CPUMeanCores: 0.2, LateShare: new(float64), Wakes: 800})
	}
	return r
}

// Each agent reports the resources that its pod used. The trial waits for these reports, its
// verdict depends on them, and its results and its headline contain them.
func TestAThrottledTrialIsInvalid(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	name := p.layout().ServerPods()[1]
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

// An agent that never reports its pod's resources cannot delay the trial forever, but then the
// trial cannot be trusted.
func TestATrialOfUnknownResourcesIsInvalid(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	p.agents.reports[p.layout().ClientPods()[0]].Resources = nil
	p.measured(10, 0)
	p.settle(false)
	p.clock.Step(engine.ResultsGrace + time.Minute)
	p.settle(false)
	p.clock.Step(time.Minute)
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonResourcesNotMeasured)
}

// The number of reset connections is final only when no more requests may be sent. The clients may
// end before that.
func TestCollectWaitsForTheLastCountOfResets(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	name := p.layout().ServerPods()[0]
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
