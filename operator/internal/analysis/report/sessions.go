package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// mostSessions are shown of a script. The longest sessions, and those that failed or ended the run,
// are among them.
const mostSessions = 80

// sessionsLegend says how to read the table.
const sessionsLegend = "What the script did on the trial's machines by SSH, in the order in which it began: in the first valid trial of each kind of run, and in the first one that does not count, whose reason comes first. " +
	"Times are in seconds from the start of the run, by each machine's own clock. No end: it ran until the run was over. Refused: connections without the trial's key, of which the machine let none in. " +
	"A session that a fault ended took as long as its connection was there for the script's machine, and its exit code is 255: that of OpenSSH's client when a connection is lost. " +
	"Connections without a session are those that the machine did not answer, of an ssh with a ConnectTimeout, or that ended before a command. " +
	"Marks are the lines from which faults and windows of rows count. Faults begin and end when that was confirmed; from a mark, it is said how long after its line."

// addScript takes in what a script did, of the first valid trial of its kind of run, and of the
// first one that does not count. It shows the step that a hung script waited for, and the session
// that failed.
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

// withFaults are the sessions of a trial, and between them its marks and what its faults did.
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
		text := fmt.Sprintf("fault %s: %s", f.Fault, withObject(f.Kind, f.Object))
		if f.Mark != "" {
			text += fmt.Sprintf(", %.3f s after the mark %s", (at-f.MarkMillis)/1000, f.Mark)
		}
		all = append(all, results.Session{Kind: "fault", Machine: cmp.Or(machines[f.Pod], f.Pod), BeginMillis: at, EndMillis: &at, Message: text})
	}
	slices.SortStableFunc(all, func(a, b results.Session) int { return cmp.Compare(a.BeginMillis, b.BeginMillis) })
	return all
}

// shownSessions are those that say most of a run, in their order.
func shownSessions(all []results.Session) (shown []results.Session, leftOut int) {
	var kept []results.Session
	up := map[string]bool{}
	for _, s := range all {
		if s.Kind != "start" || up[s.Machine] { // that a machine comes up first is none of the script's doing
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

// sessionsTable has a row for each session.
func sessionsTable(e results.Experiment) table {
	t := table{columns: []column{{"trial", false}, {"begin s", true}, {"took s", true}, {"machine", false}, {"from", false}, {"what", false}, {"exit code", true}}}
	for _, run := range e.Scripts {
		if run.Why != "" {
			t.rows = append(t.rows, []string{run.Trial, "", "", "", "", "does not count: " + shortened(run.Why), ""})
		}
		for _, said := range run.SetUp {
			t.rows = append(t.rows, []string{run.Trial, "", "", "", "", "image: " + said, ""})
		}
		for _, s := range run.Sessions {
			took, code := "-", "-"
			if end := cmp.Or(s.EndMillis, s.ClosedMillis); end != nil && s.Kind != "mark" && s.Kind != "fault" {
				took = number((*end-s.BeginMillis)/1000, 2)
			}
			switch {
			case s.ExitCode != nil:
				code = strconv.Itoa(*s.ExitCode)
			case s.Fault != "" && s.ClosedMillis != nil:
				code = "255"
			}
			t.rows = append(t.rows, []string{run.Trial, number(s.BeginMillis/1000, 2), took, cmp.Or(s.Machine, "-"), cmp.Or(s.From, "-"), sessionText(s), code})
		}
		if run.LeftOut > 0 {
			t.rows = append(t.rows, []string{run.Trial, "", "", "", "", fmt.Sprintf("and %d more; what failed or took longest is shown", run.LeftOut), ""})
		}
		if run.Refused > 0 {
			t.rows = append(t.rows, []string{run.Trial, "", "", "", "", refusedText(run.Refused), ""})
		}
	}
	return t
}

func refusedText(n int) string {
	if n == 1 {
		return "1 connection was refused in all"
	}
	return fmt.Sprintf("%d connections were refused in all", n)
}

// shortened is a text that fits in a table.
func shortened(text string) string {
	const most = 240
	if all := []rune(text); len(all) > most {
		return string(all[:most]) + "..."
	}
	return text
}

// gone is by how much a client must have left before its session ended, in milliseconds, to be
// told: clocks of machines differ.
const gone = 50

// lostText says of a session that its client did not see the end, and why.
func lostText(s results.Session) string {
	switch {
	case s.Fault != "" && s.ClosedMillis != nil:
		return fmt.Sprintf(": its ssh ended %s the fault %s of %s", after(*s.ClosedMillis-s.FaultMillis), s.Fault, s.Machine)
	case s.Fault != "":
		return fmt.Sprintf(": the fault %s ended it", s.Fault)
	case s.ClosedMillis != nil && (s.EndMillis == nil || *s.ClosedMillis < *s.EndMillis-gone):
		return fmt.Sprintf(": its client left after %s", shortTime(*s.ClosedMillis-s.BeginMillis))
	}
	return ""
}

// after says how long after something. Clocks of two machines may show that it was before.
func after(millis float64) string {
	if millis < 0 {
		return "with"
	}
	return shortTime(millis) + " after"
}

func shortTime(millis float64) string {
	if millis < 1000 {
		return number(millis, 1) + " ms"
	}
	return number(millis/1000, 2) + " s"
}

// sessionText says what a session did.
func sessionText(s results.Session) string {
	const most = 120
	command := []rune(strings.Join(strings.Fields(s.Command), " ")) // a script may be given in lines
	if len(command) > most {
		command = append(command[:most], []rune("...")...)
	}
	switch s.Kind {
	case "script":
		return "the script: " + string(command)
	case "boot":
		return "boot: " + string(command)
	case "session":
		return cmp.Or(string(command), s.What) + lostText(s)
	case "unanswered":
		if s.Count == 1 {
			return "1 connection without a session"
		}
		return fmt.Sprintf("%d connections without a session", s.Count)
	case "start":
		return "came up"
	case "refused":
		text := refusedText(max(s.Count, 1))
		text = strings.TrimSuffix(text, " in all")
		if s.Message != "" {
			text += ", the last one " + s.Message
		}
		return text
	}
	return cmp.Or(s.Message, s.Kind)
}
