package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/node/launcher"
)

// A machine that dies writes no end of its sessions, and a machine that is down writes nothing. The
// trial's results have what the script's ssh saw in both cases.
func TestTheScriptsSSHSeesAMachineDie(t *testing.T) {
	script := &Script{Command: []string{"bash", "-c", `
		ssh m1 'echo $$ > up; exec sleep 60'; echo "$? $EPOCHREALTIME" > saw
		ssh -o ConnectTimeout=5 m1 true; echo "$?" >> saw
		ssh -o ConnectTimeout=5 m1 true; echo "$?" >> saw
		until test -e go; do sleep 0.1; done
		timeout 1 ssh m1 'sleep 2'; ssh m1 true
		exit 0`}, Deadline: 2 * time.Minute}
	l := newLab(t, 2, script)
	left := filepath.Join(l.machines[0].run, "results")
	script.ResultsTo = left
	root := image(t)
	for _, i := range []int{1, 0} {
		l.machines[i].uid = 65532 // the kernel reports closed sockets to ordinary users, too
		l.machines[i].boot(root)
	}
	m0, m1 := l.machines[0], l.machines[1]
	awaitPID(t, filepath.Join(m1.config.Home, "up"))
	killed := time.Now()
	m1.call(launcher.Request{Kill: &launcher.Kill{ID: "crash"}})
	saw := filepath.Join(m0.config.Home, "saw")
	await(t, "the script has tried again twice", func() bool {
		text, err := os.ReadFile(saw)
		return err == nil && strings.Count(string(text), "\n") == 3
	})
	text, err := os.ReadFile(saw)
	if err != nil {
		t.Fatal(err)
	}
	var codes [3]int
	var at float64
	if _, err := fmt.Sscan(string(text), &codes[0], &at, &codes[1], &codes[2]); err != nil || codes != [3]int{255, 255, 255} {
		t.Fatalf("the script saw %q (%v), want 255 three times", text, err)
	}
	m1.call(launcher.Request{Revive: &launcher.Revive{ID: "boot"}})
	m1.awaitSSH()
	if err := os.WriteFile(filepath.Join(m0.config.Home, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	m0.awaitEnd()
	var seen []string
	for _, s := range sessionsLeft(t, left) {
		switch {
		case s.Kind == "unanswered":
			seen = append(seen, fmt.Sprintf("%d unanswered by %s", s.Count, s.Machine))
		case s.Kind == "session" && strings.Contains(s.Command, "sleep 60"):
			seen = append(seen, fmt.Sprintf("lost, with the exit code %v", s.ExitCode))
			if s.EndMillis != nil || s.ClosedMillis == nil || *s.ClosedMillis < float64(killed.UnixMilli()) || *s.ClosedMillis > 1000*at+50 {
				t.Errorf("the session that was lost is %+v; the machine was killed at %v and ssh ended before %.3f", s, killed.UnixMilli(), 1000*at)
			}
		case s.Command == "sleep 2":
			seen = append(seen, "left early")
			if s.ClosedMillis == nil || s.EndMillis != nil && *s.ClosedMillis > *s.EndMillis-500 {
				t.Errorf("the session whose client left after a second is %+v", s)
			}
		case s.Kind == "session":
			seen = append(seen, fmt.Sprintf("%s exited with %d, and its connection ended: %v", s.Command, *s.ExitCode, s.ClosedMillis != nil))
		}
	}
	want := []string{"lost, with the exit code <nil>", "2 unanswered by m1", "left early", "true exited with 0, and its connection ended: true"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the results tell (-want +got):\n%s", diff)
	}
}

// Ends of connections belong to the sessions on them. Several sessions may share a connection, and
// a port may be used again.
func TestEndsOfConnectionsBelongToSessions(t *testing.T) {
	const second = int64(time.Second)
	session := func(at int64, to, from string, port int) Event {
		return Event{Kind: "session", Machine: to, From: from, Port: port, BeginUnixNanos: at * second}
	}
	closed := func(at int64, from, to string, port int) Event {
		return Event{Kind: "closed", Machine: from, To: to, Port: port, BeginUnixNanos: at * second}
	}
	got := withConnections([]Event{
		closed(1, "m0", "m1", 7), closed(2, "m0", "m1", 8),
		session(3, "m1", "m0", 40), session(4, "m1", "m0", 40), session(5, "m2", "m0", 40), session(6, "m1", "m2", 41),
		closed(7, "m0", "m1", 40), closed(8, "m0", "m1", 9), closed(9, "m0", "m2", 40), session(20, "m1", "m0", 40), closed(21, "m0", "m1", 40),
		session(22, "m1", "m0", 43), {Kind: "deadline", Machine: "m0", BeginUnixNanos: 23 * second}, closed(24, "m0", "m1", 43),
	})
	var told []string
	for _, e := range got {
		told = append(told, fmt.Sprintf("%d %s on %s: closed at %d, %d", e.BeginUnixNanos/second, e.Kind, e.Machine, e.ClosedUnixNanos/second, e.Count))
	}
	want := []string{
		"1 unanswered on m1: closed at 0, 2", "3 session on m1: closed at 7, 0", "4 session on m1: closed at 7, 0", "5 session on m2: closed at 9, 0",
		"6 session on m1: closed at 0, 0", "8 unanswered on m1: closed at 0, 1", "20 session on m1: closed at 21, 0",
		"22 session on m1: closed at 0, 0", "23 deadline on m0: closed at 0, 0",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
