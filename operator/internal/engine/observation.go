package engine

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
)

// observation returns the facts that this call knows of the trial. It is made once, and again when
// the trial has been rendered.
func (s *scope) observation() *validity.Observation {
	if s.observed != nil && s.observed.Rendered == (s.rendered != nil) {
		return s.observed
	}
	o := &validity.Observation{
		Trial: s.judgedTrial(), Layout: s.layout, Pods: s.observedPods(), Rendered: s.rendered != nil, Records: map[string]protocol.ActionRecord{},
		Replaces: s.history.Of != nil, PodsDigest: s.podsDigest(), ProbesOver: s.probesOver(), Actions: s.actions(),
		Later: s.laterActions(), Marks: s.marks(),
	}
	if windowsOfRows(s.system) && s.trial.Spec.Script != nil {
		o.RowWindows = validity.RowWindows(s.system.Script, s.trial.Spec.Script.Rows, o.Marks, scriptEnded(s))
	}
	for _, a := range o.Actions {
		if rec := s.recordOf(a); rec != nil {
			o.Records[a.ID] = *rec
		}
	}
	if o.Rendered {
		for _, t := range s.cache.occurrences {
			o.Injections = append(o.Injections, s.injection.Injected(t))
		}
	}
	s.observed = o
	return o
}

// measured adds to the observation the reports of both ends of every link. With many pods these are
// large, and they are needed only to judge links.
func (s *scope) measured() *validity.Observation {
	if s.layout == nil {
		return &validity.Observation{Trial: s.trial}
	}
	o := *s.observation()
	o.Trial = s.judgedTrial() // phases of this call have written to its status
	if o.Rendered {
		o.Pairs = validity.PairsOf(o.Pods, func(name string) *protocol.Network { return s.rendered.pods[name].Directive.Network })
	}
	return &o
}

// judgedTrial returns the trial with every tolerance set, and with the real window of its run.
func (s *scope) judgedTrial() *v1alpha1.Trial {
	trial := s.trial.DeepCopy()
	trial.Spec.Schedule = scheduleOf(s)
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
	o.Report, o.ReportedAt = s.report(o.Name), s.reports[o.Name].at
	o.AgentInterrupted, o.Interrupted = s.agentInterrupted(o.Name), s.interrupted(o.Name)
	o.Terminating, o.Refused, o.Incarnations = s.history.Terminating[o.Name], s.history.Refused[o.Name], s.history.Of[o.Name]
	if s.rendered != nil {
		for _, c := range s.rendered.pods[o.Name].Directive.Containers {
			o.Containers = append(o.Containers, c.Name)
		}
	}
	if p := s.pods[o.Name]; p != nil {
		o.Read(p)
		o.PlannedRestarts = s.plannedRestarts(o.Name)
	}
	return o
}

// podsDigest names the pods that take part, by their UIDs.
func (s *members) podsDigest() string { return validity.PodsDigest(s.everyName(), s.pods) }

// nodesUsed returns on how many nodes the pods are.
func (s *members) nodesUsed() int32 {
	nodes := map[string]bool{}
	for _, name := range s.everyName() {
		if p := s.pods[name]; p != nil && p.Spec.NodeName != "" {
			nodes[p.Spec.NodeName] = true
		}
	}
	return int32(len(nodes))
}

// longestRoundTrip returns the longest round trip that is asked of a pair.
func (s *scope) longestRoundTrip() time.Duration {
	return s.rendered.longest
}

// probesOver returns when no probe of the window is in flight any more. It waits for the last
// probes, but at most a second.
func (s *scope) probesOver() time.Time {
	settle := time.Second
	if s.rendered != nil {
		settle = min(settle, s.longestRoundTrip()+2*shaping.MaxBacklog)
	}
	return s.zero().Add(scheduleOf(s).Measure.OrZero() + settle)
}
