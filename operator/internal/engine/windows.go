package engine

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// scriptEnded returns when the trial's script ended, relative to t = 0. 0: it still runs, or there
// is none.
func scriptEnded(s *scope) time.Duration {
	if s.trial.Spec.Script == nil {
		return 0
	}
	for _, name := range s.clientNames() {
		if rep := s.report(name); rep != nil && rep.Over && rep.Client != nil {
			return rep.Client.Ended
		}
	}
	return 0
}

// scheduleOf returns the schedule of the trial. The window of a script ends with the script.
func scheduleOf(s *scope) v1alpha1.Schedule {
	schedule := s.trial.Spec.Schedule
	if ended := scriptEnded(s); ended > 0 && ended < schedule.Measure.OrZero() {
		schedule.Measure = v1alpha1.Duration(ended.String())
	}
	return schedule
}

// windowsOfRows reports whether the rows of a script are about parts of its run.
func windowsOfRows(system *v1alpha1.SystemSpec) bool {
	return system.Script != nil && system.Script.Results.Window != nil
}

// reportsWhole reports whether clients report numbers of their whole run, without those of the
// window alone.
func reportsWhole(system *v1alpha1.SystemSpec) bool {
	return system.Clients.Results != nil && system.Clients.Results.Format == v1alpha1.FormatSummary
}

// runEnded returns when the run ended, relative to t = 0, if agents measure all of it. 0: it still
// runs, or agents measure the window.
func runEnded(s *scope) time.Duration {
	if reportsWhole(s.system) {
		return wholeRun(s).To
	}
	return scriptEnded(s)
}

// wholeRun returns when the clients began and ended, if all are over.
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

// rowSpans returns the windows of the rows of a script that is over, in their order.
func rowSpans(s *scope) []timeline.Span {
	var spans []timeline.Span
	for _, w := range validity.RowWindows(s.system.Script, s.trial.Spec.Script.Rows, s.marks(), scriptEnded(s)) {
		spans = append(spans, w.Span)
	}
	return spans
}
