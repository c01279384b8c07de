package document

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// The sessions of a script by SSH are in the report: those of the first valid trial and of the
// first one that does not count. It has all long sessions and all failed ones, however many there
// are.
func TestReportsShowWhatTheScriptDid(t *testing.T) {
	session := func(begin, took float64, machine, command string, code int) results.Session {
		end := begin + took
		return results.Session{Kind: "session", Machine: machine, From: "node-0", What: "exec", Command: command, BeginMillis: begin, EndMillis: &end, ExitCode: &code}
	}
	end, zero := 9000.0, 0
	const mostSessions = 80
	all := []results.Session{
		{Kind: "start", Machine: "node-1", BeginMillis: 3, Message: "set up once, in 300.0 s"}, {Kind: "start", Machine: "node-2", BeginMillis: 4, Message: "set up once, in 300.0 s"},
		{Kind: "script", Machine: "node-0", Command: "./run.sh", EndMillis: &end, ExitCode: &zero},
		session(100, 5, "node-1", "pkill -f server.py", 1),
	}
	for range 200 {
		all = append(all, session(300, 20, "node-2", "true", 0))
	}
	all = append(all, session(2000, 6000, "node-2", "./slow.sh", 0), results.Session{Kind: "refused", Machine: "node-1", From: "10.0.0.9", BeginMillis: 8000, Count: 7, Message: "to root with the key SHA256:x"})
	var d model.Details
	for _, name := range []string{"e-1", "e-0"} {
		d.Add(results.Trial{Name: name, Outcome: "Succeeded", Sessions: all})
	}
	hung := results.Session{Kind: "deadline", Machine: "node-0", BeginMillis: 9500, Message: "the script did not end within 9.5s: `ssh node-1 pkill server` has run for 2m7s"}
	for _, name := range []string{"e-3", "e-2"} {
		d.Add(results.Trial{Name: name, PointIndex: 1, Outcome: "Invalid", Reason: "ClientFailed", Message: "It hung.", Sessions: []results.Session{session(100, 127000, "node-1", "pkill server", 255), hung}})
	}
	var e results.Experiment
	d.Into(&e)
	if len(e.Scripts) != 2 || e.Scripts[0].Trial != "e-0" || len(e.Scripts[0].Sessions) != mostSessions || e.Scripts[0].LeftOut != 204-mostSessions {
		t.Fatalf("of the scripts are kept %+v", e.Scripts)
	}
	var rows []string
	for _, row := range sessionsTable(e).Rows {
		if line := strings.Join(row, "|"); !strings.Contains(line, "|true|") {
			rows = append(rows, line)
		}
	}
	want := []string{
		"e-0|||||image: set up once, in 300.0 s|", "e-0|0.00|9.00|node-0|-|the script: ./run.sh|0", "e-0|0.10|0.01|node-1|node-0|pkill -f server.py|1", "e-0|2.00|6.00|node-2|node-0|./slow.sh|0",
		"e-0|8.00|-|node-1|10.0.0.9|7 connections were refused, the last one to root with the key SHA256:x|-",
		"e-0|||||and 124 more; what failed or took longest is shown|", "e-0|||||7 connections were refused in all|",
		"e-2|||||does not count: ClientFailed: It hung.|", "e-2|0.10|127.00|node-1|node-0|pkill server|255",
		"e-2|9.50|-|node-0|-|the script did not end within 9.5s: `ssh node-1 pkill server` has run for 2m7s|-",
	}
	if got := strings.Join(rows, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the rows are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// A session that a fault ended says so, and how long after the fault its ssh ended.
func TestSessionsSayWhatTheScriptSawOfAFault(t *testing.T) {
	at := func(millis float64) *float64 { return &millis }
	zero := 0
	sessions := []results.Session{
		{Kind: "start", Machine: "m1", Pod: "e-0-s0-local-0", BeginMillis: -500},
		{Kind: "session", Machine: "m1", From: "m0", Command: "./serve\n  --now", BeginMillis: 1000, ClosedMillis: at(2000.3)},
		{Kind: "session", Machine: "m1", From: "m2", Command: "tail", BeginMillis: 1500},
		{Kind: "session", Machine: "m2", From: "m0", Command: "long", BeginMillis: 1600, EndMillis: at(9000), ClosedMillis: at(2600), ExitCode: &zero},
		{Kind: "unanswered", Machine: "m1", From: "m0", BeginMillis: 2100, EndMillis: at(3000), Count: 3},
		{Kind: "session", Machine: "m1", From: "m0", Command: "true", BeginMillis: 3200, EndMillis: at(3210), ClosedMillis: at(3211), ExitCode: &zero},
		{Kind: "session", Machine: "m1", From: "m0", Command: "hang", BeginMillis: 4000, ClosedMillis: at(6500)},
	}
	faults := []results.FaultRecord{
		{Fault: "skipped", Kind: "Kill", Pod: "e-0-s0-local-0", ConfirmedMillis: 1800, Skipped: true},
		{Fault: "late", Kind: "Kill", Pod: "e-0-s0-local-0", ConfirmedMillis: 5000},
		{Fault: "crash", Kind: "Kill", Pod: "e-0-s0-local-0", ConfirmedMillis: 2000},
		{Fault: "other", Kind: "Kill", Pod: "e-0-s0-local-1", ConfirmedMillis: 1700},
	}
	results.EndSessions(sessions, faults)
	var rows []string
	for _, row := range sessionsTable(results.Experiment{Scripts: []results.ScriptRun{{Trial: "e-0", Sessions: sessions[1:]}}}).Rows {
		rows = append(rows, strings.Join(row[1:], "|"))
	}
	want := []string{
		"1.00|1.00|m1|m0|./serve --now: its ssh ended 0.3 ms after the fault crash of m1|255",
		"1.50|-|m1|m2|tail: the fault crash ended it|-",
		"1.60|7.40|m2|m0|long: its client left after 1.00 s|0",
		"2.10|0.90|m1|m0|3 connections without a session|-",
		"3.20|0.01|m1|m0|true|0",
		"4.00|2.50|m1|m0|hang: its ssh ended 1.50 s after the fault late of m1|255",
	}
	if got := strings.Join(rows, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the rows are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
