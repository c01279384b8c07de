package launcher

import (
	"strings"
	"testing"
	"time"
)

// awaitStarts waits for the n-th start of the process and returns its process ID.
func (b *box) awaitStarts(n int) string {
	b.t.Helper()
	var pids []string
	b.await("the process has written its ID once more", func(State) bool {
		pids = strings.Fields(b.read("pids"))
		return len(pids) == n
	})
	return pids[n-1]
}

func TestAProcessThatASignalEndsIsStartedAgain(t *testing.T) {
	b := newBox(t, boxOptions{})
	script := `echo "${ASSAY_RESPAWNED:-0}" >> "$DIR/again"; echo $$ >> "$DIR/pids"; trap "" TERM; sleep 60 & wait; wait`
	b.call(Request{Start: &Start{Command: []string{"/bin/sh", "-c", script}, Env: []string{"DIR=" + b.dir}, Respawn: true}})
	b.awaitFile("pids")
	first := b.awaitStarts(1)
	b.call(Request{Run: &Run{ID: "kill", Command: []string{"/bin/sh", "-c", "kill -9 " + first}, Timeout: time.Second}})
	b.awaitStarts(2)
	if s := b.state(); s.Process != Running || s.Starts != 2 || s.ExitedAt != 0 {
		t.Errorf("the state is %+v, want the process Running after 2 starts", s)
	}
	// A process stays down after a fault has killed it, or a Stop has ended it.
	b.call(Request{Kill: &Kill{ID: "crash"}})
	time.Sleep(200 * time.Millisecond)
	if s := b.state(); s.Process != Held || s.Starts != 2 {
		t.Errorf("after a kill the state is %+v, want Held after 2 starts", s)
	}
	b.call(Request{Revive: &Revive{ID: "back"}})
	b.awaitStarts(3)
	if again := b.read("again"); again != "0\n1\n0\n" {
		t.Errorf("the starts were told %q; want that the second one alone was that of a process which a signal had ended", again)
	}
	b.call(Request{Stop: &Stop{Signal: "SIGTERM", Grace: 50 * time.Millisecond}})
	if s := b.state(); !s.Stopped || s.Starts != 3 {
		t.Errorf("after a stop the state is %+v, want Stopped after 3 starts", s)
	}
}

func TestAProcessThatExitsIsNotStartedAgain(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.call(Request{Start: &Start{Command: []string{"/bin/sh", "-c", "exit 137"}, Respawn: true}})
	b.await("the process has exited", func(s State) bool { return s.Process == Exited })
	time.Sleep(100 * time.Millisecond)
	if s := b.state(); s.Starts != 1 || s.ExitCode != 137 {
		t.Errorf("the state is %+v, want one start and exit code 137", s)
	}
}
