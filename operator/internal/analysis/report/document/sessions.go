package document

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// SessionsLegend says how to read the table.
const SessionsLegend = "What the script did on the trial's machines by SSH, in the order in which it began: in the first valid trial of each kind of run, and in the first one that does not count, whose reason comes first. " +
	"Times are in seconds from the start of the run, by each machine's own clock. No end: it ran until the run was over. Refused: connections without the trial's key, of which the machine let none in. " +
	"A session that a fault ended took as long as its connection was there for the script's machine, and its exit code is 255: that of OpenSSH's client when a connection is lost. " +
	"Connections without a session are those that the machine did not answer, of an ssh with a ConnectTimeout, or that ended before a command. " +
	"Marks are the lines from which faults and windows of rows count. Faults begin and end when that was confirmed; from a mark, it is said how long after its line."

// sessionsTable has a row for each session.
func sessionsTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"trial", false}, {"begin s", true}, {"took s", true}, {"machine", false}, {"from", false}, {"what", false}, {"exit code", true}}}
	for _, run := range e.Scripts {
		if run.Why != "" {
			t.Rows = append(t.Rows, []string{run.Trial, "", "", "", "", "does not count: " + shortened(run.Why), ""})
		}
		for _, said := range run.SetUp {
			t.Rows = append(t.Rows, []string{run.Trial, "", "", "", "", "image: " + said, ""})
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
			t.Rows = append(t.Rows, []string{run.Trial, number(s.BeginMillis/1000, 2), took, cmp.Or(s.Machine, "-"), cmp.Or(s.From, "-"), sessionText(s), code})
		}
		if run.LeftOut > 0 {
			t.Rows = append(t.Rows, []string{run.Trial, "", "", "", "", fmt.Sprintf("and %d more; what failed or took longest is shown", run.LeftOut), ""})
		}
		if run.Refused > 0 {
			t.Rows = append(t.Rows, []string{run.Trial, "", "", "", "", refusedText(run.Refused), ""})
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

// A client that left more than gone milliseconds before its session ended is mentioned. A shorter
// time says nothing, since clocks of machines differ.
const gone = 50

// lostText says that a session's client did not see its end, and why.
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

// after words a time after an event. By the clocks of two machines, it may be negative.
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
