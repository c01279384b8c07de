package launcher

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper is a process in a group of its own, which only an alarm ends before the test does.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most are dead already
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(patience); !slices.Equal(states(cmd.Process.Pid), []string{"S"}); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the process does not fall asleep: its state is %v", states(cmd.Process.Pid))
		}
	}
	return cmd
}

func openAlarm(t *testing.T) *alarm {
	t.Helper()
	a := anAlarm(t)
	t.Cleanup(a.close)
	return a
}

// anAlarm is an alarm that the test closes.
func anAlarm(t *testing.T) *alarm {
	t.Helper()
	var err error
	for range 10 { // each has to run within milliseconds
		var a *alarm
		if err = rehearse(); err != nil {
			continue
		}
		if a, err = newAlarm(); err == nil {
			return a
		}
	}
	t.Fatalf("alarms do not work on this kernel: %v", err)
	return nil
}

func TestAnAlarmSignalsAtItsInstantAndSaysWhen(t *testing.T) {
	if err := shootAll(t); err != nil {
		t.Error(err)
	}
}

// shootAll returns an error if alarms were late.
func shootAll(t *testing.T) error {
	t.Helper()
	const shots = 15
	var off []time.Duration
	for tries := 0; len(off) < shots; tries++ {
		a, victim := openAlarm(t), sleeper(t)
		instant := Monotonic() + int64(60*time.Millisecond)
		err := a.set(instant, victim.Process.Pid, unix.SIGKILL)
		at := a.struck()
		if Monotonic() > instant-int64(alarmMargin) && tries < 10*shots {
			continue // this thread got no processor in time, to set it or to look before its instant
		}
		if err != nil {
			t.Fatal(err)
		}
		if at != 0 {
			t.Fatalf("it says that it struck, %v before its instant", time.Duration(instant-at))
		}
		var exit *exec.ExitError
		if err := victim.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the process ended with %v, want SIGKILL", err)
		}
		died := Monotonic()
		at = a.struck()
		if at == 0 || at > died {
			t.Fatalf("the process was reaped at %d, and the alarm says that it struck at %d", died, at)
		}
		off = append(off, time.Duration(at-instant))
	}
	slices.Sort(off)
	t.Logf("struck after the instant: least %v, median %v, worst %v", off[0], off[shots/2], off[shots-1])
	if off[0] < -rehearsalEarly {
		t.Errorf("one struck %v before its instant", -off[0])
	}
	if off[shots/2] > 20*time.Millisecond {
		return fmt.Errorf("half of them struck more than %v after their instants", off[shots/2])
	}
	return nil
}

func TestAnAlarmThatIsTakenBackSignalsNoProcess(t *testing.T) {
	for name, takeBack := range map[string]func(*alarm){
		"disarmed": func(a *alarm) {
			if err := a.disarm(); err != nil {
				t.Error(err)
			}
		},
		"closed": (*alarm).close,
	} {
		t.Run(name, func(t *testing.T) {
			var a *alarm
			var victim *exec.Cmd
			planned(t, func() int64 {
				a, victim = anAlarm(t), sleeper(t)
				instant := Monotonic() + int64(60*time.Millisecond)
				err := a.set(instant, victim.Process.Pid, unix.SIGKILL)
				takeBack(a)
				if name == "disarmed" {
					t.Cleanup(a.close)
				}
				if err != nil && Monotonic() < instant-int64(alarmMargin) {
					t.Fatal(err)
				}
				return instant - int64(alarmMargin) // an alarm may be early
			})
			if got := states(victim.Process.Pid); !slices.Equal(got, []string{"S"}) {
				t.Errorf("the process is in state %v, want it asleep", got)
			}
		})
	}
}

func TestAnAlarmCannotBeSetForAnInstantThatIsTooClose(t *testing.T) {
	a, victim := openAlarm(t), sleeper(t)
	if err := a.set(Monotonic()+int64(alarmMargin)/10, victim.Process.Pid, unix.SIGKILL); err == nil {
		t.Error("it was set")
	}
}

func TestAlarmsResetNoConnection(t *testing.T) {
	resets := func() string {
		t.Helper()
		content, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); fields[0] == "Tcp:" && fields[1] != "RtoAlgorithm" {
				return fields[8] // EstabResets
			}
		}
		t.Fatal("the kernel does not count resets")
		return ""
	}
	// The test is in a network of its own, where no other process resets a connection. The thread
	// is never unlocked, so it ends with the test.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a new network namespace needs root: %v", err)
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("cannot set the loopback interface up: %v: %s", err, out)
	}
	for _, struck := range []bool{true, false} {
		a := anAlarm(t)
		instant := Monotonic() + int64(30*time.Millisecond)
		for err := a.set(instant, 0, 0); err != nil; err = a.set(instant, 0, 0) {
			if Monotonic() < instant-int64(alarmMargin) {
				t.Fatal(err)
			}
			a.close() // this thread got no processor in time
			a = anAlarm(t)
			instant = Monotonic() + int64(30*time.Millisecond)
		}
		if !struck {
			a.close()
		}
		if err := SleepUntil(t.Context(), instant+int64(30*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if struck {
			a.close()
		}
		if got := resets(); got != "0" {
			t.Errorf("struck %v: %s connections were reset", struck, got)
		}
	}
}

// An alarm must work without a launcher that gets a processor at the instant. Here the launcher is
// stopped.
func TestAKillDoesNotNeedTheLauncherAtItsInstant(t *testing.T) {
	for name, first := range map[string]bool{"as process 1 of a container": true, "as a reaper among other processes": false} {
		t.Run(name, func(t *testing.T) {
			onceIn(t, 5, func() error { return killWithoutItsLauncher(t, first) })
		})
	}
}

func killWithoutItsLauncher(t *testing.T, first bool) error {
	t.Helper()
	b := newBox(t, boxOptions{first: first})
	b.start("exec sleep 1000")
	victim := b.child()
	at := Monotonic() + int64(time.Second)
	b.client.Permit(at)
	done := b.send(Request{Kill: &Kill{ID: "k", AtMonotonicNanos: at, AwaitPermit: true}})
	var wrong error
	b.stopAround(at, func() {
		if got := awaitState(victim, "Z"); !slices.Equal(got, []string{"Z"}) {
			wrong = fmt.Errorf("while the launcher is stopped, the process is in state %v after the instant, want it dead", got)
		}
	})
	result := (<-done).Kill
	if result == nil || result.Error != "" {
		t.Fatalf("the kill: %+v", result)
	}
	if state := b.state(); state.Process != Held || state.ExitCode != 137 || !state.Asked {
		t.Errorf("the process is %+v, want it Held with 137", state)
	}
	if result.ConfirmedAt != result.KilledAt || result.ReapedAt < at+int64(stopped) {
		wrong = errors.Join(wrong, fmt.Errorf("%+v, want it confirmed when it was killed, and reaped when the launcher went on, %d", result, at+int64(stopped)))
	}
	return errors.Join(wrong, checkStruck(at, result.KilledAt))
}

func TestAKillIsConfirmedForProcessesOutsideOfTheGroup(t *testing.T) {
	onceIn(t, 5, func() error {
		b := newBox(t, boxOptions{first: true})
		b.start("setsid sleep 1000 & touch $DIR/grown; exec sleep 1000")
		b.awaitFile("grown")
		at := Monotonic() + int64(time.Second)
		done := b.send(Request{Kill: &Kill{ID: "k", AtMonotonicNanos: at}})
		b.stopAround(at, func() {})
		result := (<-done).Kill
		if result == nil || result.Error != "" {
			t.Fatalf("the kill: %+v", result)
		}
		var wrong error
		if result.ConfirmedAt < at+int64(stopped) {
			wrong = fmt.Errorf("confirmed %v after the instant, though one process was not in the group and the launcher was stopped for %v",
				time.Duration(result.ConfirmedAt-at), stopped)
		}
		return errors.Join(wrong, checkStruck(at, result.KilledAt))
	})
}

func TestAPauseDoesNotNeedTheLauncherAtItsInstant(t *testing.T) {
	onceIn(t, 5, func() error {
		b := newBox(t, boxOptions{first: true})
		b.start("exec sleep 1000")
		victim := b.child()
		at := Monotonic() + int64(time.Second)
		done := b.send(Request{Pause: &Pause{ID: "p", AtMonotonicNanos: at}})
		var wrong error
		b.stopAround(at, func() {
			if got := awaitState(victim, "T"); !slices.Equal(got, []string{"T"}) {
				wrong = fmt.Errorf("while the launcher is stopped, the process is in state %v after the instant, want it stopped", got)
			}
		})
		result := (<-done).Pause
		if result == nil || result.Error != "" {
			t.Fatalf("the pause: %+v", result)
		}
		b.call(Request{Resume: &Resume{ID: "r", Pause: "p"}})
		if got := states(victim); slices.Contains(got, "T") {
			t.Errorf("after the end the process is in state %v", got)
		}
		return errors.Join(wrong, checkStruck(at, result.SignalledAt))
	})
}

// onceIn fails unless a test of alarms passes in one of several attempts. A launcher that gets no
// processor in time cannot rehearse or set its alarm, and does without it. Alarms that never strike
// fail every attempt.
func onceIn(t *testing.T, attempts int, test func() error) {
	t.Helper()
	var wrong []error
	for range attempts {
		err := test()
		if err == nil {
			return
		}
		t.Log(err)
		wrong = append(wrong, err)
	}
	t.Error(errors.Join(wrong...))
}

// awaitState gives a process that has been sent a signal a second to get a processor and obey.
func awaitState(pid int, want string) []string {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		if got := states(pid); slices.Equal(got, []string{want}) || time.Now().After(deadline) {
			return got
		}
	}
}

func TestAPauseThatIsCalledOffStopsNoProcess(t *testing.T) {
	b := newBox(t, boxOptions{first: true})
	b.start(`trap 'exit 3' TERM; touch $DIR/grown; while :; do sleep 0.01; done`)
	b.awaitFile("grown")
	at := Monotonic() + int64(600*time.Millisecond)
	done := b.send(Request{Pause: &Pause{ID: "p", AtMonotonicNanos: at}})
	if err := SleepUntil(t.Context(), at-int64(alarmLead)/2); err != nil { // the alarm is set by now
		t.Fatal(err)
	}
	b.call(Request{Stop: &Stop{Signal: "SIGTERM", Grace: patience}})
	if state := b.state(); state.ExitCode != 3 {
		t.Errorf("the process ended with %d, want the 3 of its own", state.ExitCode)
	}
	if result := (<-done).Pause; result == nil || result.Error != errCalledOff.Error() {
		t.Fatalf("the pause: %+v, want it called off", result)
	}
}

const (
	// stopped is how long after the instant a launcher stays stopped.
	stopped = 100 * time.Millisecond
)

// stopAround stops the launcher shortly before the instant, and continues it afterwards. In
// between, after the instant, it calls look.
func (b *box) stopAround(instant int64, look func()) {
	b.t.Helper()
	if err := SleepUntil(b.t.Context(), instant-int64(alarmLead)/2); err != nil {
		b.t.Fatal(err)
	}
	if err := b.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		b.t.Fatal(err)
	}
	if err := SleepUntil(b.t.Context(), instant+int64(stopped)); err != nil {
		b.t.Fatal(err)
	}
	look()
	if err := b.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		b.t.Fatal(err)
	}
}

func checkStruck(instant, struck int64) error {
	if off := time.Duration(struck - instant); off < -rehearsalEarly || off >= stopped {
		return fmt.Errorf("signalled %v after the instant, want it at the instant, when the launcher was stopped", off)
	}
	return nil
}

// send sends a request and returns at once.
func (b *box) send(r Request) <-chan Response {
	done := make(chan Response, 1)
	go func() {
		response, err := b.client.Call(b.t.Context(), r)
		if err != nil {
			response.Error = fmt.Sprint(err)
		}
		done <- response
	}()
	return done
}

// child is the ID of the launcher's only process, as seen from outside its namespace.
func (b *box) child() int {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if found := descendants(b.cmd.Process.Pid); len(found) == 1 {
			return found[0]
		}
		if time.Now().After(deadline) {
			b.t.Fatal("the process does not start")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAlarmsAreSetOnDifferentProcessors(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var usable unix.CPUSet
	if err := unix.SchedGetaffinity(0, &usable); err != nil {
		t.Fatal(err)
	}
	chosen := someProcessors(redundant)
	if want := min(redundant, usable.Count()); len(chosen) != want {
		t.Fatalf("processors %v of %d usable ones, want %d", chosen, usable.Count(), want)
	}
	seen := map[int]bool{}
	for _, processor := range chosen {
		if !usable.IsSet(processor) || seen[processor] {
			t.Errorf("processor %d is not usable, or chosen twice", processor)
		}
		seen[processor] = true
		var there unix.CPUSet
		if err := onProcessor(processor, func() error { return unix.SchedGetaffinity(0, &there) }); err != nil {
			t.Fatal(err)
		}
		if there.Count() != 1 || !there.IsSet(processor) {
			t.Errorf("it ran on any of %d processors, want it on %d only", there.Count(), processor)
		}
	}
	var after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != usable {
		t.Errorf("the thread may use other processors now than before (%v)", err)
	}
}
