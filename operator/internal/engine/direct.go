package engine

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/safety"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// logTail is how many bytes from the end of each stream are kept of a trial that does not
	// count.
	logTail = 64 << 10
	// leastCollected is how many bytes each pod may send at least. With very many pods, the last
	// ones find no room.
	leastCollected = 16 << 10
)

// director gives agents their directives.
type director struct{ agents Agents }

// direct gives every agent its directive. Nothing of a directive may rest on a decision of this
// call: another manager could still write another one. So direct reads decisions from s.before.
func (r *director) direct(s *scope, st stage) {
	r.directResetters(s, st)
	if s.rendered == nil {
		return
	}
	for _, name := range s.everyName() {
		pod := s.renderedPod(name)
		if s.pods[name] == nil || pod == nil {
			continue
		}
		d := pod.Directive
		d.Network = s.networkOf(d.Network)
		d.Start = st.started[name]
		d.SampleLoad = st.sampleLoad && s.trial.Spec.IdleWait.OrZero() > 0
		d.AwaitsIdle = d.SampleLoad && st.awaitsIdle
		for _, step := range s.system.Steps[:st.steps] {
			if c, ok := pod.Steps[step.Name]; ok {
				d.Commands = append(d.Commands, c)
			}
		}
		if st.zero != 0 {
			d.Run = &protocol.Run{
				ZeroUnixNanos: st.zero, Windows: timeline.FromSchedule(s.trial.Spec.Schedule), Ended: runEnded(s),
				Actions: pod.WithCommands(validity.AgentActions(s.actions(), name)), Later: pod.WithCommands(validity.AgentActions(s.laterActions(), name)),
				Restarts: s.history.AgentRestartTimes(name), ByParts: windowsOfRows(s.system) || reportsWhole(s.system), Whole: reportsWhole(s.system),
			}
			switch {
			case d.Run.Ended == 0:
			case d.Run.Whole:
				d.Run.Measured = []timeline.Span{wholeRun(s)}
			case d.Run.ByParts:
				d.Run.Measured = rowSpans(s)
			}
			if s.onResetNode(name) || s.history.Replaced(name) {
				d.Commands = nil // the commands are done: a pod that comes back starts its processes, and does not load data again
			}
		}
		if st.checks {
			d.Commands = safety.Commands(d.Commands, s.system.Checks, pod.Checks)
		}
		d.Finish, d.Collect = st.finish, nil
		if st.finish {
			d.Collect = s.wantedFiles(pod)
		}
		d.HandOver = s.trial.Spec.ResultsStore != ""
		r.agents.Direct(s.key, name, d, pod.Files)
	}
}

// directResetters gives directives to the agents that reset nodes.
func (r *director) directResetters(s *scope, st stage) {
	for node, actions := range s.resets() {
		d := protocol.Directive{Machine: &protocol.Machine{Node: node}, Finish: st.finish}
		if st.zero != 0 {
			d.Run = &protocol.Run{ZeroUnixNanos: st.zero, Windows: timeline.FromSchedule(s.trial.Spec.Schedule), Actions: actions}
		}
		r.agents.Direct(s.key, render.MachineAgent(node), d, nil)
	}
}

// networkOf returns the network part of a pod's directive: the rendered part, with the decisions
// that came later and are written.
func (s *scope) networkOf(rendered *protocol.Network) *protocol.Network {
	decided := s.before.Status.Network
	if rendered == nil || decided == nil {
		return rendered
	}
	n := *rendered
	n.Shape, n.Backend = true, shaping.Backend(decided.Backend)
	return &n
}

// wantedFiles returns the files that a pod must hand over when its processes end.
func (s *scope) wantedFiles(p *render.Pod) *protocol.Collect {
	if p == nil {
		return nil
	}
	return wanted(s.trial, p.Directive.Collect, len(s.layout.Servers)+len(s.layout.Clients))
}

// wanted returns what one of so many pods must hand over when its processes end. asked has the
// patterns of its System; nil: there are none. Without a store, the pod also hands over the end of
// its logs, if the trial does not count or its experiment asks for logs.
func wanted(trial *v1alpha1.Trial, asked *protocol.Collect, pods int) *protocol.Collect {
	c := protocol.Collect{Limit: protocol.UploadLimit}
	if asked != nil {
		c.Patterns = asked.Patterns
	}
	if trial.Spec.ResultsStore == "" {
		c.Limit = max(leastCollected, protocol.CollectedLimit/int64(max(1, pods)))
		switch {
		case trial.Spec.KeepLogs != nil:
			c.LogTail = trial.Spec.KeepLogs.Value()
		case meta.IsStatusConditionFalse(trial.Status.Conditions, v1alpha1.TrialValid):
			c.LogTail = logTail
		}
	}
	if len(c.Patterns) == 0 && c.LogTail == 0 {
		return nil
	}
	return &c
}
