package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// mostSessions is how many sessions of a script are shown. The longest sessions, and those that
// failed or ended the run, are among them.
const mostSessions = 80

// addScript takes in the sessions of a script. It keeps those of the first valid trial of each kind
// of run, and of the first trial that does not count. They show the step that a hung script waited
// for, and the session that failed.
func (d *Details) addScript(t results.Trial) {
	if len(t.Sessions) == 0 {
		return
	}
	run := results.ScriptRun{Trial: t.Name, PointIndex: t.PointIndex}
	if t.Outcome != stats.Succeeded {
		run.Why = cmp.Or(t.Reason, t.Outcome) + ": " + t.Message
	}
	i := slices.IndexFunc(d.scripts, func(s results.ScriptRun) bool {
		return s.PointIndex == t.PointIndex && (s.Why == "") == (run.Why == "")
	})
	run.Sessions, run.LeftOut = shownSessions(withFaults(t))
	run.Refused = results.RefusedConnections(t.Sessions)
	for _, s := range t.Sessions {
		if s.Kind == "start" && s.Message != "" && !slices.Contains(run.SetUp, s.Message) {
			run.SetUp = append(run.SetUp, s.Message)
		}
	}
	switch {
	case i < 0:
		d.scripts = append(d.scripts, run)
	case t.Name < d.scripts[i].Trial:
		d.scripts[i] = run
	}
}

// withFaults are the sessions of a trial, and between them its marks and the actions of its faults.
func withFaults(t results.Trial) []results.Session {
	all := slices.Clone(t.Sessions)
	machines := map[string]string{}
	for _, s := range t.Sessions {
		if s.Kind == "start" && s.Pod != "" {
			machines[s.Pod] = s.Machine
		}
	}
	for _, m := range t.Marks {
		all = append(all, results.Session{Kind: "mark", BeginMillis: m.AtMillis, EndMillis: &m.AtMillis, Message: "mark: " + m.Line})
	}
	for _, f := range t.Faults {
		if f.Skipped || f.Error != "" {
			continue
		}
		at := f.ConfirmedMillis
		if timeline.Kind(f.Kind).Ends() {
			at = f.StartedMillis
		}
		text := fmt.Sprintf("fault %s: %s", f.Fault, WithObject(f.Kind, f.Object))
		if f.Mark != "" {
			text += fmt.Sprintf(", %.3f s after the mark %s", (at-f.MarkMillis)/1000, f.Mark)
		}
		all = append(all, results.Session{Kind: "fault", Machine: cmp.Or(machines[f.Pod], f.Pod), BeginMillis: at, EndMillis: &at, Message: text})
	}
	slices.SortStableFunc(all, func(a, b results.Session) int { return cmp.Compare(a.BeginMillis, b.BeginMillis) })
	return all
}

// shownSessions are the sessions that tell most about a run, in their order.
func shownSessions(all []results.Session) (shown []results.Session, leftOut int) {
	var kept []results.Session
	up := map[string]bool{}
	for _, s := range all {
		if s.Kind != "start" || up[s.Machine] { // the script does not cause the first start of a machine
			kept = append(kept, s)
		}
		up[s.Machine] = up[s.Machine] || s.Kind == "start"
	}
	order := make([]int, len(kept))
	for i := range order {
		order[i] = i
	}
	weight := func(s results.Session) float64 {
		if s.Kind != "session" || s.EndMillis == nil || s.ExitCode != nil && *s.ExitCode != 0 {
			return math.Inf(1)
		}
		return *s.EndMillis - s.BeginMillis
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(kept[b]), weight(kept[a])) })
	order = order[:min(len(order), mostSessions)]
	slices.Sort(order)
	for _, i := range order {
		shown = append(shown, kept[i])
	}
	return shown, len(kept) - len(shown)
}
