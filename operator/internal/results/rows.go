package results

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/model/timeline"
)

// Row is a row of a script's results for its point. It has the numbers that the script prints for a
// part of the run.
type Row struct {
	// PointIndex and Coordinates of the row's point.
	PointIndex  int32             `json:"pointIndex"`
	Coordinates map[string]string `json:"coordinates"`
	// File that the row is in, where the script left several.
	File string `json:"file,omitempty"`
	// Line of the file that the row is in, from 1; 0: there is no row, or the whole file is the
	// row.
	Line int `json:"line,omitempty"`
	// Missing says why there is no row. Empty: the row exists.
	Missing string `json:"missing,omitempty"`
	// FromMillis and ToMillis are the window of the row, from mark to mark. Both 0: the whole run.
	FromMillis float64 `json:"fromMillis,omitempty"`
	ToMillis   float64 `json:"toMillis,omitempty"`
	// Summary of the row: RunSummary, and a number that is 0 is not known.
	Summary Summary `json:"summary"`
}

// RowWindow is the part of a run that a row is about, or why it has none.
type RowWindow struct {
	timeline.Span
	Missing string
}

// Confine sets the window of a row. A row without a window counts as missing, since it is unknown
// what it measured.
func (r *Row) Confine(w RowWindow) {
	if w.Missing != "" && r.Missing == "" {
		r.Missing = w.Missing
	}
	r.FromMillis, r.ToMillis = Millis(w.From), Millis(w.To)
}

// SameCell reports whether two cells of a table mean the same: 4.0 is 4.
func SameCell(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y
}

// ScriptTable is the output of a script: its file or files with numbers, or the reason why there is
// none. It also has what ran on the machines by SSH.
type ScriptTable struct {
	Text     string       `json:"text,omitempty"`
	Missing  string       `json:"missing,omitempty"`
	Files    []ScriptFile `json:"files,omitempty"`
	Sessions []Session    `json:"sessions,omitempty"`
}

// ScriptFile is one of several files that a script left numbers in.
type ScriptFile struct {
	// Path of the file, absolute.
	Path string `json:"path"`
	// Text of the file, or why it is missing.
	Text    string `json:"text,omitempty"`
	Missing string `json:"missing,omitempty"`
}

// ScriptRun is what the script of a trial did by SSH, as a report shows it.
type ScriptRun struct {
	Trial      string    `json:"trial"`
	PointIndex int32     `json:"pointIndex"`
	Sessions   []Session `json:"sessions"`
	// SetUp says how the images of the machines were set up, where they say it.
	SetUp []string `json:"setUp,omitempty"`
	// Why the trial does not count; empty: it does.
	Why string `json:"why,omitempty"`
	// LeftOut is how many sessions are not shown, and Refused how many connections were refused.
	LeftOut int `json:"leftOut,omitempty"`
	Refused int `json:"refused,omitempty"`
}

// RefusedConnections is how many connections the machines of a trial refused, since they used other
// keys than the trial's own.
func RefusedConnections(all []Session) (n int) {
	for _, s := range all {
		if s.Kind == "refused" {
			n += max(s.Count, 1) // records from before counts have a line for each
		}
	}
	return n
}

// EndSessions says of sessions without an end which fault ended them: the first after their
// beginning that killed or reset their machine.
func EndSessions(all []Session, faults []FaultRecord) {
	machines := map[string]string{}
	for _, s := range all {
		if s.Kind == "start" && s.Pod != "" {
			machines[s.Pod] = s.Machine
		}
	}
	for i := range all {
		s := &all[i]
		if s.Kind != "session" || s.EndMillis != nil {
			continue
		}
		for _, f := range faults {
			kills := f.Kind == string(timeline.Kill) || f.Kind == string(timeline.Reset)
			if !kills || f.Skipped || f.Error != "" || machines[f.Pod] != s.Machine || f.ConfirmedMillis < s.BeginMillis {
				continue
			}
			if s.Fault == "" || f.ConfirmedMillis < s.FaultMillis {
				s.Fault, s.FaultMillis = f.Fault, f.ConfirmedMillis
			}
		}
	}
}

// ReasonRowMissing is the reason of a row that a script did not write.
const ReasonRowMissing = "RowMissing"

// RowName is the name of a trial's results for one point, if the trial has results for several
// points.
func RowName(trial string, point int32) string { return fmt.Sprintf("%s.%d", trial, point) }

// ByRow splits a trial whose script has rows into one trial for each row. Any other trial stays as
// it is. The trial of a missing row is invalid.
func (t Trial) ByRow() []Trial {
	if len(t.Rows) == 0 {
		return []Trial{t}
	}
	out := make([]Trial, len(t.Rows))
	for i, r := range t.Rows {
		of := t
		of.Name, of.Script, of.Rows, of.ClosedLoop = RowName(t.Name, r.PointIndex), t.Name, nil, nil
		if r.ToMillis > r.FromMillis {
			of.MeasureNanos = int64((r.ToMillis - r.FromMillis) * 1e6)
		}
		of.PointIndex, of.Coordinates, of.Summary = r.PointIndex, maps.Clone(r.Coordinates), r.Summary
		if r.Missing != "" && t.Outcome == outcomeSucceeded {
			of.Outcome, of.Reason, of.Message = outcomeInvalid, ReasonRowMissing, r.Missing
		}
		out[i] = of
	}
	return out
}

// ByRow splits several trials by their rows.
func ByRow(trials []Trial) []Trial {
	var out []Trial
	for _, t := range trials {
		out = append(out, t.ByRow()...)
	}
	return out
}

// The outcomes of a trial, in the words of package stats, which imports this one.
const (
	outcomeSucceeded = "Succeeded"
	outcomeInvalid   = "Invalid"
)

// Measuring are the trials that were made to be measured: all but those for flame graphs.
func Measuring(trials []Trial) []Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return t.NotMeasuring })
}
