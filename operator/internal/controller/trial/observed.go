package trial

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/validity"
)

// observed puts together all that this reconcile knows of the run, to be written down and judged.
func (s *scope) observed() *validity.Observation {
	trial := s.trial.DeepCopy()
	trial.Spec = *s.judgedSpec()
	o := &validity.Observation{Trial: trial, Layout: s.layout, Records: map[string]protocol.ActionRecord{}}
	if s.layout == nil {
		return o
	}
	o.Pods = s.observedPods()
	if s.rendered == nil {
		return o
	}
	o.Pairs, o.Actions = s.pairsOf(o.Pods), s.actions()
	for _, a := range o.Actions {
		if rec := s.recordOf(a); rec != nil {
			o.Records[a.ID] = *rec
		}
	}
	for _, t := range s.chaos.Occurrences {
		o.Injections = append(o.Injections, s.chaos.Injection(t))
	}
	return o
}

// judgedSpec is the trial's, with every tolerance set.
func (s *scope) judgedSpec() *v1alpha1.TrialSpec {
	spec := s.trial.Spec.DeepCopy()
	spec.Tolerances = plan.DefaultTolerances(spec.Tolerances)
	return spec
}

func (s *scope) observedPods() []validity.Pod {
	var pods []validity.Pod
	for _, r := range s.layout.Servers {
		pods = append(pods, s.observedPod(validity.Pod{Name: r.Name, Region: r.Region, Shard: r.Shard}))
	}
	for i := range s.layout.Clients {
		c := &s.layout.Clients[i]
		pods = append(pods, s.observedPod(validity.Pod{Name: c.Name, Region: c.Region, Client: c}))
	}
	return pods
}

func (s *scope) observedPod(o validity.Pod) validity.Pod {
	o.Report, o.ReportedAt = s.heard[o.Name].report, s.heard[o.Name].at
	o.AgentInterrupted, o.Interrupted = s.agentInterrupted(o.Name), s.interrupted(o.Name)
	o.Leaving, o.Incarnations = s.line.Leaving[o.Name], s.line.Lines[o.Name]
	p := s.pods[o.Name]
	if p == nil {
		return o
	}
	o.Part, o.Node, o.Restarts, o.PlannedRestarts = render.WhatOf(p.Labels), p.Spec.NodeName, objects.Restarts(p), s.expectedRestarts(o.Name)
	o.OutOfMemory = objects.OutOfMemory(p)
	o.Images, o.AgentImage = objects.Images(p)
	return o
}

// pairs joins what was asked of every two pods with what their agents have measured.
func (s *scope) pairs() []validity.Pair { return s.pairsOf(s.observedPods()) }

func (s *scope) pairsOf(pods []validity.Pod) []validity.Pair {
	return validity.PairsOf(pods, func(name string) []protocol.NetworkPeer { return s.rendered.pods[name].Directive.Network.Peers })
}
