package trial

import (
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/validity"
)

// observation is what this reconcile knows of the trial. It is made once, and again when the trial
// has been rendered.
func (s *scope) observation() *validity.Observation {
	if s.known != nil && s.known.Rendered == (s.rendered != nil) {
		return s.known
	}
	o := &validity.Observation{
		Trial: s.judgedTrial(), Layout: s.layout, Pods: s.observedPods(), Rendered: s.rendered != nil, Records: map[string]protocol.ActionRecord{},
		Replaces: s.line.Lines != nil, PodsDigest: s.podsDigest(), ProbesOver: s.canariesOver(), Actions: s.actions(),
	}
	for _, a := range o.Actions {
		if rec := s.recordOf(a); rec != nil {
			o.Records[a.ID] = *rec
		}
	}
	if o.Rendered {
		for _, t := range s.chaos.Occurrences {
			o.Injections = append(o.Injections, s.chaos.Injection(t))
		}
	}
	s.known = o
	return o
}

// measured is the observation with what both ends say of every link: of many pods that is much, and
// needed only where links are judged.
func (s *scope) measured() *validity.Observation {
	if s.layout == nil {
		return &validity.Observation{Trial: s.trial}
	}
	o := *s.observation()
	o.Trial = s.judgedTrial() // phases of this reconcile have written to its status
	if o.Rendered {
		o.Pairs = validity.PairsOf(o.Pods, func(name string) []protocol.NetworkPeer { return s.rendered.pods[name].Directive.Network.Peers })
	}
	return &o
}

// judgedTrial is the trial, with every tolerance set.
func (s *scope) judgedTrial() *v1alpha1.Trial {
	trial := s.trial.DeepCopy()
	trial.Spec.Tolerances = plan.DefaultTolerances(trial.Spec.Tolerances)
	return trial
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
	o.Terminating, o.Refused, o.Incarnations = s.line.Terminating[o.Name], s.line.Refused[o.Name], s.line.Lines[o.Name]
	p := s.pods[o.Name]
	if p == nil {
		return o
	}
	o.Part, o.Node, o.Restarts, o.PlannedRestarts = render.WhatOf(p.Labels), p.Spec.NodeName, objects.Restarts(p), s.expectedRestarts(o.Name)
	o.OutOfMemory = objects.OutOfMemory(p)
	o.Exists, o.HasAddress = true, p.Status.PodIP != ""
	o.Failed, o.FailedWhy = p.Status.Phase == corev1.PodFailed, p.Status.Reason+" "+p.Status.Message
	o.Images, o.AgentImage = objects.Images(p)
	return o
}
