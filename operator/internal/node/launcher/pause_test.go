package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// counters starts processes that count in files: the main one, its child, a daemon in a session of
// its own, and one that forks all the time.
const counters = `
count() { i=0; while [ $i -lt 6000 ]; do i=$((i+1)); echo $i > $DIR/$1; sleep 0.01; done; }
count child &
(setsid sh -c 'i=0; while [ $i -lt 6000 ]; do i=$((i+1)); echo $i > $DIR/daemon; sleep 0.01; done' &)
(while :; do (echo x >> $DIR/forks); done) &
count main`

var counted = []string{"child", "daemon", "forks", "main"}

func (b *box) sizes() string {
	var text strings.Builder
	for _, name := range counted {
		content, _ := os.ReadFile(filepath.Join(b.dir, name))
		fmt.Fprintf(&text, "%s %d %q; ", name, len(content), content[max(0, len(content)-20):])
	}
	return text.String()
}

func (b *box) awaitProgress() {
	b.t.Helper()
	for _, name := range counted {
		if err := os.Remove(filepath.Join(b.dir, name)); err != nil && !os.IsNotExist(err) {
			b.t.Fatal(err)
		}
	}
	for _, name := range counted {
		b.awaitFile(name)
	}
}

func TestAPauseStopsTheWholeTreeAtItsInstantAndAResumeLetsItGoOn(t *testing.T) {
	for name, first := range map[string]bool{"as process 1 of a container": true, "as a reaper among other processes": false} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, boxOptions{first: first})
			b.start(counters)
			const shots = 7
			var late, took, back []time.Duration
			for shot := range shots {
				b.awaitProgress()
				id := fmt.Sprint("pause-", shot)
				at := Monotonic() + int64(20*time.Millisecond)
				result := b.call(Request{Pause: &Pause{ID: id, AtMonotonicNanos: at}}).Pause
				if result.Error != "" || result.SignalledAt < at || result.ConfirmedAt < result.SignalledAt {
					t.Fatalf("shot %d: %+v, want it signalled at %d and confirmed after that", shot, result, at)
				}
				before := b.sizes()
				if state := b.state(); !state.Paused || state.Process != Running {
					t.Fatalf("shot %d: the state is %+v, want it Running and paused", shot, state)
				}
				if run := b.call(Request{Run: &Run{ID: id, Command: []string{"true"}}}).Run; !strings.Contains(run.Error, "paused") {
					t.Errorf("shot %d: a command during the pause: %+v", shot, run)
				}
				end := Monotonic() + int64(20*time.Millisecond)
				resume := Resume{ID: fmt.Sprint("resume-", shot), Pause: id, AtMonotonicNanos: end}
				if after := b.sizes(); after != before {
					t.Fatalf("shot %d: something went on while all was stopped:\n%s\n%s", shot, before, after)
				}
				resumed := b.call(Request{Resume: &resume}).Resume
				if resumed.Error != "" || resumed.SignalledAt < end || resumed.ConfirmedAt < resumed.SignalledAt {
					t.Fatalf("shot %d: %+v, want it signalled at %d and confirmed after that", shot, resumed, end)
				}
				late = append(late, time.Duration(result.SignalledAt-at))
				took = append(took, time.Duration(result.ConfirmedAt-at))
				back = append(back, time.Duration(resumed.ConfirmedAt-end))
			}
			b.awaitProgress()
			for what, figures := range map[string][]time.Duration{"signalled": late, "all stopped": took, "all running": back} {
				slices.Sort(figures)
				t.Logf("%s after the instant: median %v, worst %v", what, figures[shots/2], figures[shots-1])
			}
			// The time for the rest depends on the machine: it may have fewer processors than the
			// tree has busy processes.
			if late[shots/2] > 100*time.Millisecond {
				t.Errorf("signalled %v after the instant in half of the cases", late[shots/2])
			}
		})
	}
}

func TestAPauseAndItsEndMayBePlannedTogetherAndAreNotRepeated(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start(`exec sleep 1000`)
	at := Monotonic() + int64(50*time.Millisecond)
	answers := make(chan Response, 4)
	for range 2 { // an agent, and then its successor
		client := b.dial()
		for _, request := range []Request{
			{Resume: &Resume{ID: "r", Pause: "p", AtMonotonicNanos: at + int64(30*time.Millisecond)}},
			{Pause: &Pause{ID: "p", AtMonotonicNanos: at}},
		} {
			go func() {
				response, err := client.Call(t.Context(), request)
				if err != nil {
					response.Error = err.Error()
				}
				answers <- response
			}()
		}
	}
	var pauses, resumes []PauseResult
	for range 4 {
		switch response := <-answers; {
		case response.Pause != nil:
			pauses = append(pauses, *response.Pause)
		case response.Resume != nil:
			resumes = append(resumes, *response.Resume)
		default:
			t.Fatalf("an answer is %+v", response)
		}
	}
	if pauses[0].Error != "" || pauses[0] != pauses[1] || resumes[0].Error != "" || resumes[0] != resumes[1] {
		t.Errorf("the answers are %+v and %+v, want each twice the same", pauses, resumes)
	}
	if resumes[0].SignalledAt < pauses[0].ConfirmedAt {
		t.Errorf("resumed at %d, before all had stopped at %d", resumes[0].SignalledAt, pauses[0].ConfirmedAt)
	}
	if b.state().Paused {
		t.Error("still paused")
	}
}

func TestPausesThatOverlapLastUntilTheLastOneEnds(t *testing.T) {
	b := newBox(t, boxOptions{first: true})
	b.start(counters)
	b.awaitProgress()
	b.call(Request{Pause: &Pause{ID: "a"}})
	b.call(Request{Pause: &Pause{ID: "b"}})
	before := b.sizes()
	if result := b.call(Request{Resume: &Resume{ID: "end-a", Pause: "a"}}).Resume; result.Error != "" {
		t.Errorf("the first resume: %s", result.Error)
	}
	if after := b.sizes(); after != before || !b.state().Paused {
		t.Errorf("after the first of two resumes something goes on:\n%s\n%s", before, after)
	}
	if result := b.call(Request{Resume: &Resume{ID: "end-b", Pause: "b"}}).Resume; result.Error != "" {
		t.Errorf("the second resume: %s", result.Error)
	}
	b.awaitProgress()
	if result := b.call(Request{Resume: &Resume{ID: "end-c", Pause: "c"}}).Resume; !strings.Contains(result.Error, `knows no pause "c"`) {
		t.Errorf("a resume of nothing: %+v", result)
	}
}

func TestAStopReachesAPausedProcess(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start(`trap 'echo goodbye; exit 3' TERM; touch $DIR/grown; while :; do sleep 0.01; done`)
	b.awaitFile("grown")
	if result := b.call(Request{Pause: &Pause{ID: "p"}}).Pause; result.Error != "" {
		t.Fatal(result.Error)
	}
	later := make(chan Response, 1)
	go func() {
		response, _ := b.client.Call(t.Context(), Request{Pause: &Pause{ID: "later", AtMonotonicNanos: Monotonic() + int64(time.Hour)}})
		later <- response
	}()
	b.call(Request{Stop: &Stop{Signal: "SIGTERM", Grace: patience}})
	if state := b.state(); state.ExitCode != 3 || state.Paused {
		t.Errorf("after the stop the state is %+v, want the exit code 3 of a process that was asked", state)
	}
	if got := b.read("c.stdout"); got != "goodbye\n" {
		t.Errorf("the process printed %q", got)
	}
	if response := <-later; response.Pause == nil || !strings.Contains(response.Pause.Error, "called off") {
		t.Errorf("a pause that was planned for later: %+v", response.Pause)
	}
}

func TestAPausedProcessDiesAtAKillAndComesBackRunning(t *testing.T) {
	b := newBox(t, boxOptions{first: true})
	b.start(counters)
	b.awaitProgress()
	b.call(Request{Pause: &Pause{ID: "p"}})
	if result := b.call(Request{Kill: &Kill{ID: "k"}}).Kill; result.Error != "" {
		t.Fatal(result.Error)
	}
	if result := b.call(Request{Revive: &Revive{ID: "v"}}).Revive; result.Error != "" {
		t.Fatal(result.Error)
	}
	b.awaitProgress()
	if result := b.call(Request{Resume: &Resume{ID: "r", Pause: "p"}}).Resume; result.Error != "" || b.state().Paused {
		t.Errorf("the end of the pause: %+v, paused %v", result, b.state().Paused)
	}
}

func TestTheStatesOfAProcessAreThoseOfItsThreads(t *testing.T) {
	if got := states(os.Getpid()); len(got) < 2 || !slices.Contains(got, "R") {
		t.Errorf("this process has the states %v; it has several threads, and one runs", got)
	}
	if got := states(1 << 30); len(got) != 0 {
		t.Errorf("a process that does not exist has the states %v", got)
	}
	if !slices.Contains(numbers("/proc"), os.Getpid()) {
		t.Errorf("process %s is not listed", strconv.Itoa(os.Getpid()))
	}
}

func TestAPauseDoesNotHitAChildThatIsJustBorn(t *testing.T) {
	// A launcher waited for ever for a child that was stopped before its exec, and its callers
	// waited, too.
	b := newBox(t, boxOptions{first: true})
	b.start(counters)
	b.awaitProgress()
	runs := make(chan struct{})
	go func() {
		defer close(runs)
		for i := range 60 {
			_, _ = b.client.Call(t.Context(), Request{Run: &Run{ID: fmt.Sprint("run-", i), Command: []string{"true"}, Timeout: time.Second}})
		}
	}()
	for i := range 30 {
		pause, resume := fmt.Sprint("pause-", i), fmt.Sprint("resume-", i)
		if result := b.call(Request{Pause: &Pause{ID: pause}}).Pause; result.Error != "" {
			t.Fatal(result.Error)
		}
		if result := b.call(Request{Resume: &Resume{ID: resume, Pause: pause}}).Resume; result.Error != "" {
			t.Fatal(result.Error)
		}
	}
	<-runs
}

func TestAChildHasStoppedWhenAllItsThreadsHave(t *testing.T) {
	child := sleeper(t)
	pid := child.Process.Pid
	for _, want := range []bool{false, true, false, true} {
		signal := syscall.SIGCONT
		if want {
			signal = syscall.SIGSTOP
		}
		if err := child.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); childStopped(pid) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("long after signal %d it is said to be stopped: %v, want %v; its state is %v", signal, childStopped(pid), want, states(pid))
			}
		}
		if got := states(pid); (got[0] == "T") != want {
			t.Errorf("its state is %v", got)
		}
	}
	if childStopped(1) {
		t.Error("process 1, which is nobody's child here, is said to be stopped")
	}
}

// A process counts as halted as soon as one of its threads has stopped, and not before.
func TestAProcessIsHaltedWhenAThreadOfItHasStopped(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start("exec sleep 1000")
	pid := b.child()
	l := processes{} // it looks at its descendants, which are the box and its process
	if l.halted() {
		t.Error("halted while the process runs")
	}
	for _, stopped := range []int{b.cmd.Process.Pid, pid} {
		if l.halted() {
			t.Errorf("halted before process %d was stopped", stopped)
		}
		if err := syscall.Kill(stopped, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); !slices.Contains(states(stopped), "T"); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d does not stop: %v", stopped, states(stopped))
			}
		}
	}
	if !l.halted() {
		t.Errorf("not halted, though the processes are in the states %v and %v", states(b.cmd.Process.Pid), states(pid))
	}
}
