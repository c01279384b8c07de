package validity

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// ScriptWindow is the length of the judged time of a trial. For a script, it is the run, which ends
// with the script. For clients, it is the window of the schedule.
func ScriptWindow(spec *v1alpha1.TrialSpec, pods []results.Pod) time.Duration {
	window := spec.Schedule.Measure.OrZero()
	if spec.Script == nil {
		return window
	}
	for _, p := range pods {
		if p.ClientRun != nil && p.ClientRun.EndedMillis > 0 {
			return min(window, time.Duration(p.ClientRun.EndedMillis*1e6))
		}
	}
	return window
}

// unreached names a fault that was to begin after the script's end. Otherwise the trial would count
// as one with that fault.
func unreached(spec *v1alpha1.TrialSpec, faults []results.FaultRecord, last float64) Failure {
	if spec.Script == nil {
		return Failure{}
	}
	begins := func(f results.FaultRecord) bool { return !timeline.Kind(f.Kind).Ends() }
	began := map[string]bool{}
	for _, f := range faults {
		began[f.Fault] = began[f.Fault] || begins(f) && f.PlannedMillis <= last
	}
	for _, f := range faults {
		if begins(f) && !began[f.Fault] {
			return fail(v1alpha1.ReasonFaultNotConfirmed, "Fault %s was to begin at %.1f s, and the script was over after %.1f s: let it begin earlier.",
				f.Fault, f.PlannedMillis/1000, last/1000)
		}
	}
	return Failure{}
}

// scriptEnd judges how a script ended.
func scriptEnd(pod string, c *protocol.ClientRun, rep *protocol.Report) Failure {
	if c.ExitCode == 0 {
		return Failure{}
	}
	return fail(v1alpha1.ReasonClientFailed, "The script on %s ended %.3f s after its start with %s. %s", pod, c.Ended.Seconds(), exitText(c.ExitCode), LastOutput(rep))
}

// rowsMeasured judges whether a script left a row at all. Single rows that are missing are missing
// points.
func rowsMeasured(t *results.Trial) Failure {
	for _, r := range t.Rows {
		if r.Missing == "" {
			return Failure{}
		}
	}
	why := "it is not known which"
	if len(t.Rows) > 0 {
		why = t.Rows[0].Missing
	}
	return fail(v1alpha1.ReasonNothingMeasured, "The script left none of the %d rows that are wanted: %s.", len(t.Rows), why)
}

// RowsOf are the rows of a trial in the integers of a status.
func RowsOf(t *results.Trial) []v1alpha1.RowStatus {
	var out []v1alpha1.RowStatus
	for i, of := range t.ByRow() {
		if len(t.Rows) == 0 {
			return nil
		}
		r := v1alpha1.RowStatus{Point: v1alpha1.Point{Index: of.PointIndex, Coordinates: of.Coordinates}, Missing: cut(t.Rows[i].Missing, 256)}
		if r.Missing == "" {
			r.Headline = Headline(&of)
			r.Headline.ClientTimePerMillion, r.Headline.ClientBusyPerMillion = nil, nil // a script's clients are its own
		}
		out = append(out, r)
	}
	return out
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most-3] + "..."
}

// RowsText says how many rows a script left.
func RowsText(t *results.Trial) string {
	n, missing := 0, ""
	for _, r := range t.Rows {
		if r.Missing == "" {
			n++
		} else if missing == "" {
			missing = " " + r.Missing + "."
		}
	}
	return fmt.Sprintf("The script left %d of %d rows in %.1f s.%s", n, len(t.Rows), float64(t.MeasureNanos)/1e9, missing)
}
