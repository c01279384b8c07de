package engine

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/safety"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// stage is how far a trial is; a directive follows from the rendered pod and the stage alone, so
// that every manager gives the same one.
type stage struct {
	// started: the pods whose processes must run.
	started map[string]bool
	// steps that may run, the first so many of the System's.
	steps int
	// load: the trial asks how busy the machines are. awaitsIdle: nothing else is missing.
	load, awaitsIdle bool
	// zero is t = 0 in Unix nanoseconds; 0 before it is agreed.
	zero int64
	// checks: the clients are over, and the System's checks must run.
	checks bool
	// finish: all processes must end.
	finish bool
}

// director gives agents their directives.
type director struct{ agents Agents }

// direct gives every pod its directive.
func (r *director) direct(s *scope, st stage) {
	r.directResetters(s, st)
	for _, name := range s.everyName() {
		pod := s.renderedPod(name)
		if s.pods[name] == nil || pod == nil {
			continue
		}
		d := pod.Directive
		d.Network = s.networkOf(d.Network)
		d.Start = st.started[name]
		d.SampleLoad = st.load && s.trial.Spec.IdleWait.OrZero() > 0
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
				d.Commands = nil // they are done: who comes back starts its processes, and loads no data again
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

// windowsOfRows reports whether the rows of a script are about parts of its run.
func windowsOfRows(system *v1alpha1.SystemSpec) bool {
	return system.Script != nil && system.Script.Results.Window != nil
}

// reportsWhole reports whether clients report numbers of their whole run, of which the window
// cannot be cut out.
func reportsWhole(system *v1alpha1.SystemSpec) bool {
	return system.Clients.Results != nil && system.Clients.Results.Format == v1alpha1.FormatSummary
}

// runEnded is when a run was over of which agents measure all, relative to t = 0; 0: it goes on, or
// they measure the window.
func runEnded(s *scope) time.Duration {
	if reportsWhole(s.system) {
		return wholeRun(s).To
	}
	return scriptEnded(s)
}

// wholeRun is from when to when the clients ran, if all are over.
func wholeRun(s *scope) timeline.Span {
	var runs []*protocol.ClientRun
	for _, name := range s.clientNames() {
		rep := s.report(name)
		if rep == nil || !rep.Over || rep.Client == nil {
			return timeline.Span{}
		}
		runs = append(runs, rep.Client)
	}
	return validity.WholeRun(timeline.FromSchedule(s.trial.Spec.Schedule), runs)
}

// rowSpans are the windows of the rows of a script that is over, in their order.
func rowSpans(s *scope) []timeline.Span {
	var spans []timeline.Span
	for _, w := range validity.RowWindows(s.system.Script, s.trial.Spec.Script.Rows, s.marks(), scriptEnded(s)) {
		spans = append(spans, w.Span)
	}
	return spans
}

// directResetters tells the agents that reset nodes what to do.
func (r *director) directResetters(s *scope, st stage) {
	for node, actions := range s.resets() {
		d := protocol.Directive{Machine: &protocol.Machine{Node: node}, Finish: st.finish}
		if st.zero != 0 {
			d.Run = &protocol.Run{ZeroUnixNanos: st.zero, Windows: timeline.FromSchedule(s.trial.Spec.Schedule), Actions: actions}
		}
		r.agents.Direct(s.key, render.MachineAgent(node), d, nil)
	}
}

// all returns a set of names.
func all(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
