package launcher

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The test binary is also the launcher, in a process of its own: a launcher reaps every child of
// its process.
const launchVariable = "ASSAY_TEST_LAUNCH"

func TestMain(m *testing.M) {
	dir := os.Getenv(launchVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	os.Unsetenv(launchVariable)
	if os.Getpid() == 1 {
		// As in a container, /proc shows the launcher's own PID namespace.
		err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("proc", "/proc", "proc", 0, ""))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	limit, _ := strconv.ParseInt(os.Getenv("LIMIT"), 10, 64)
	err := Serve(ctx, Options{Name: "c", RunDir: dir, OutDir: dir, OutputLimit: limit, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// box is a launcher under test.
type box struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stdout *bytes.Buffer
	client *Client
}

// patience is how long an expected event may take on a machine that is busy with other tests.
const patience = time.Minute

// options of a box.
type boxOptions struct {
	first bool // as process 1 of a new PID namespace
	limit int
}

func newBox(t *testing.T, o boxOptions) *box {
	t.Helper()
	dir, err := os.MkdirTemp("", "box") // sockets have short paths only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if o.limit == 0 {
		o.limit = 1 << 20
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, dir: dir, cmd: exec.Command(self), stdout: &bytes.Buffer{}}
	b.cmd.Env = append(os.Environ(), launchVariable+"="+dir, fmt.Sprintf("LIMIT=%d", o.limit), "FROM=image")
	b.cmd.Stdout = b.stdout
	if o.first {
		b.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	}
	if err := b.cmd.Start(); err != nil {
		if o.first && os.IsPermission(err) {
			t.Skipf("a new PID namespace needs root: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Its processes would outlive it: outside a PID namespace, they do not end with it.
		left := descendants(b.cmd.Process.Pid)
		b.cmd.Process.Kill()
		b.cmd.Wait()
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	b.client = b.dial()
	return b
}

func (b *box) dial() *Client {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		client, err := Dial(b.t.Context(), filepath.Join(b.dir, "c.sock"), func(State) {})
		if err == nil {
			b.t.Cleanup(func() { client.Close() })
			return client
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the launcher does not answer: %v", err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (b *box) call(r Request) Response {
	b.t.Helper()
	response, err := b.client.Call(b.t.Context(), r)
	if err != nil {
		b.t.Fatalf("request %+v: %v", r, err)
	}
	return response
}

func (b *box) start(script string) {
	b.t.Helper()
	b.call(Request{Start: &Start{Command: []string{"/bin/sh", "-c", script}, Env: []string{"DIR=" + b.dir}}})
}

func (b *box) state() State {
	b.t.Helper()
	return *b.call(Request{Look: &Look{}}).State
}

func (b *box) await(what string, holds func(State) bool) State {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		state := b.state()
		if holds(state) {
			return state
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("in %v the process did not become %s: %+v", patience, what, state)
		}
		time.Sleep(time.Millisecond)
	}
}

func (b *box) awaitFile(name string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if _, err := os.Stat(filepath.Join(b.dir, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the file %s was not made in %v", name, patience)
		}
		time.Sleep(time.Millisecond)
	}
}

func (b *box) read(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// tree starts a child, a grandchild whose parent exits at once (a daemon in a session of its own),
// and a zombie.
const tree = `sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; (true &) ; touch $DIR/grown; exec sleep 1000`

func TestAKillEndsTheWholeTreeAtItsInstant(t *testing.T) {
	for name, first := range map[string]bool{"as process 1 of a container": true, "as a reaper among other processes": false} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, boxOptions{first: first})
			b.start(tree)
			const shots = 25
			var late, took []time.Duration
			for shot := range shots {
				b.awaitFile("grown")
				id := fmt.Sprint("kill-", shot)
				at := Monotonic() + int64(30*time.Millisecond)
				result := b.call(Request{Kill: &Kill{ID: id, AtMonotonicNanos: at}}).Kill
				if result.Error != "" {
					t.Fatalf("shot %d: %s", shot, result.Error)
				}
				if left := descendants(b.cmd.Process.Pid); len(left) > 0 {
					t.Fatalf("shot %d: %d processes are left after the confirmation", shot, len(left))
				}
				late = append(late, time.Duration(result.KilledAt-at))
				took = append(took, time.Duration(result.ConfirmedAt-result.KilledAt))
				if state := b.state(); state.Process != Held || state.ExitCode != 137 || !state.Asked {
					t.Fatalf("shot %d: the process is %+v, want it Held with 137", shot, state)
				}
				if err := os.Remove(filepath.Join(b.dir, "grown")); err != nil {
					t.Fatal(err)
				}
				if revived := b.call(Request{Revive: &Revive{ID: id}}).Revive; revived.Error != "" {
					t.Fatalf("shot %d: revive: %s", shot, revived.Error)
				}
			}
			if got := b.state().Starts; got != shots+1 {
				t.Errorf("the process was started %d times, want %d", got, shots+1)
			}
			slices.Sort(late)
			slices.Sort(took)
			t.Logf("SIGKILL after the instant: median %v, worst %v; the last of 6 processes reaped: median %v, worst %v later",
				late[shots/2], late[shots-1], took[shots/2], took[shots-1])
			if late[0] < 0 {
				t.Errorf("a kill came %v before its instant", -late[0])
			}
			if median := late[shots/2]; median > 50*time.Millisecond {
				t.Errorf("half of the kills came more than %v after their instants", median)
			}
		})
	}
}

func TestAKillWaitsForItsPermit(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start("exec sleep 1000")
	instant := Monotonic()
	b.client.Permit(instant - 1) // of an earlier kill
	done := make(chan KillResult, 1)
	go func() {
		response, err := b.client.Call(t.Context(), Request{Kill: &Kill{ID: "k", AtMonotonicNanos: instant, AwaitPermit: true}})
		if err == nil && response.Kill != nil {
			done <- *response.Kill
		}
	}()
	time.Sleep(100 * time.Millisecond)
	if state := b.state(); state.Process != Running {
		t.Fatalf("without a permit the process is %s", state.Process)
	}
	permitted := Monotonic()
	b.client.Permit(instant)
	result := <-done
	if result.KilledAt < permitted || result.Error != "" {
		t.Errorf("the kill was at %d, before its permit at %d (error %q)", result.KilledAt, permitted, result.Error)
	}
	if result.ConfirmedAt < result.KilledAt || result.ReapedAt < result.ConfirmedAt {
		t.Errorf("killed at %d, dead at %d, reaped at %d; want that order", result.KilledAt, result.ConfirmedAt, result.ReapedAt)
	}
}

func TestAPermitIsForOneKillAndThoseBeforeIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c"+permitSuffix)
	ours, err := openPermit(path, os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := openPermit(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		give int64
		want [3]bool // results of kills at 10, 20 and 30
	}{{0, [3]bool{}}, {20, [3]bool{true, true, false}}, {10, [3]bool{true, true, false}}, {30, [3]bool{true, true, true}}} {
		theirs.give(step.give)
		if got := [3]bool{ours.given(10), ours.given(20), ours.given(30)}; got != step.want {
			t.Errorf("after a permit for %d: %v, want %v", step.give, got, step.want)
		}
	}
	theirs.close()
	theirs.close()
	theirs.give(40)
	if ours.given(40) {
		t.Error("a closed permit was given")
	}
}

func TestWhatWasDoneIsNotDoneAgainForAnAgentThatComesBack(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start("echo started; exec sleep 1000")
	run := Request{Run: &Run{ID: "once", Command: []string{"/bin/sh", "-c", "echo x >> $DIR/count; echo done; exit 4"}, Env: []string{"DIR=" + b.dir}}}
	first := b.call(run).Run
	kill := Request{Kill: &Kill{ID: "k", AtMonotonicNanos: Monotonic()}}
	killed := b.call(kill).Kill
	revived := b.call(Request{Revive: &Revive{ID: "r"}}).Revive

	b.client.Close()
	b.client = b.dial()
	b.start("echo started again")
	if diff := cmp.Diff(first, b.call(run).Run); diff != "" {
		t.Errorf("the command's result differs the second time (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(killed, b.call(kill).Kill); diff != "" {
		t.Errorf("the kill's result differs the second time (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(revived, b.call(Request{Revive: &Revive{ID: "r"}}).Revive); diff != "" {
		t.Errorf("the revival's result differs the second time (-first +second):\n%s", diff)
	}
	if state := b.state(); state.Process != Running || state.Starts != 2 {
		t.Errorf("the process is %s after %d starts, want it Running after 2", state.Process, state.Starts)
	}
	if got := b.read("count"); got != "x\n" {
		t.Errorf("the command ran %d times, want once", strings.Count(got, "x"))
	}
	if first.ExitCode != 4 || first.Output != "done\n" {
		t.Errorf("the command's result is %+v", first)
	}
}

func TestAHeldProcessStaysDown(t *testing.T) {
	var b *box
	planned(t, func() int64 {
		b = newBox(t, boxOptions{})
		at := Monotonic() + int64(200*time.Millisecond)
		// The start is later, so the kill comes first.
		b.call(Request{Start: &Start{Command: []string{"/bin/sh", "-c", "exec sleep 1000"}, AtMonotonicNanos: at}})
		b.call(Request{Kill: &Kill{ID: "k", AtMonotonicNanos: Monotonic()}})
		return at
	})
	if state := b.state(); state.Process != Held || state.Starts != 0 {
		t.Errorf("the process is %+v, want it Held and never started", state)
	}
	if result := b.call(Request{Run: &Run{ID: "x", Command: []string{"true"}}}).Run; result.Error == "" {
		t.Errorf("a command ran in a container that is held down: %+v", result)
	}
}

// planned calls prepare until it has finished before the instant that it returns. planned itself
// returns well after that instant.
func planned(t *testing.T, prepare func() int64) {
	t.Helper()
	for range 20 {
		at := prepare()
		if Monotonic() >= at { // the machine stood still, so the order is chance
			continue
		}
		if err := SleepUntil(t.Context(), at+int64(60*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("this machine stands still all the time")
}

func TestAStartWaitsForItsInstant(t *testing.T) {
	b := newBox(t, boxOptions{})
	at := Monotonic() + int64(100*time.Millisecond)
	b.call(Request{Start: &Start{Command: []string{"sleep", "1000"}, AtMonotonicNanos: at}})
	if state := b.state(); state.Process != Waiting {
		t.Fatalf("before its instant the process is %s", state.Process)
	}
	state := b.await("running", func(s State) bool { return s.Process == Running })
	late := time.Duration(state.StartedAt - at)
	if late < 0 {
		t.Errorf("the process started %v before its instant", -late)
	}
	if late > time.Second {
		t.Fatalf("the process started %v after its instant", late)
	}
}

func TestOutputIsKeptByteForByte(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start(`printf 'a\n\000\377b\nno end'; printf 'oops\n' >&2; exit 3`)
	state := b.await("complete", func(s State) bool { return s.Process == Exited && s.OutputComplete })
	if state.ExitCode != 3 || state.Asked {
		t.Errorf("the process is %+v, want it to have exited with 3 unasked", state)
	}
	if diff := cmp.Diff("a\n\x00\xffb\nno end", b.read("c.stdout")); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("oops\n", b.read("c.stderr")); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	if !strings.Contains(state.Tail, "oops\n") || !strings.Contains(state.Tail, "no end") {
		t.Errorf("the tail is %q, want both streams in it", state.Tail)
	}
	b.cmd.Process.Signal(syscall.SIGTERM)
	b.cmd.Wait()
	if diff := cmp.Diff("a\n\x00\xffb\nno end", b.stdout.String()); diff != "" {
		t.Errorf("the copy of stdout for the container's log (-want +got):\n%s", diff)
	}
}

func TestAFullOutputFileEndsWithAWholeLine(t *testing.T) {
	const limit = 10_000
	b := newBox(t, boxOptions{limit: limit})
	b.start(`i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done`)
	state := b.await("complete", func(s State) bool { return s.OutputComplete })
	kept := b.read("c.stdout")
	if len(kept) > limit || len(kept) < limit-20 || !strings.HasSuffix(kept, "\n") {
		t.Errorf("%d bytes were kept, ending with %q; want whole lines up to %d bytes", len(kept), kept[len(kept)-10:], limit)
	}
	var printed int64
	for i := range 3000 {
		printed += int64(len(fmt.Sprintf("line %d\n", i)))
	}
	if got, want := int64(len(kept))+state.LeftOut, printed; got != want {
		t.Errorf("%d bytes kept and left out, %d printed", got, want)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	b := newBox(t, boxOptions{first: true})
	b.start(`i=0; while [ $i -lt 30 ]; do (sh -c true &); i=$((i+1)); done; touch $DIR/grown; exec sleep 1000`)
	b.awaitFile("grown")
	deadline := time.Now().Add(patience)
	for {
		left := descendants(b.cmd.Process.Pid)
		if len(left) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left, want the main one only: the others are zombies", len(left))
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAStopIsPoliteFirst(t *testing.T) {
	cases := map[string]struct {
		script   string
		stop     Stop
		wantCode int
		wantOut  string
	}{
		"a process that prints on SIGTERM": {
			`trap 'echo last words; exit 5' TERM; echo up; touch $DIR/grown; while :; do sleep 0.01; done`,
			Stop{Signal: "SIGTERM", Grace: patience}, 5, "up\nlast words\n"},
		"a process that ignores SIGTERM": {
			`trap '' TERM; echo up; touch $DIR/grown; while :; do sleep 0.01; done`,
			Stop{Signal: "SIGTERM", Grace: 50 * time.Millisecond}, 137, "up\n"},
		"a process that would print on SIGTERM but gets SIGKILL": {
			`trap 'echo last words; exit 5' TERM; echo up; touch $DIR/grown; while :; do sleep 0.01; done`,
			Stop{Signal: "SIGKILL", Grace: patience}, 137, "up\n"},
		"a process that leaves a daemon behind": {
			`(setsid sleep 1000 &); echo up; touch $DIR/grown; exec sleep 1000`,
			Stop{Grace: patience}, 143, "up\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, boxOptions{})
			b.start(tc.script)
			b.awaitFile("grown")
			b.call(Request{Stop: &tc.stop})
			state := b.state()
			if state.Process != Exited || state.ExitCode != tc.wantCode || !state.Asked || !state.Stopped || !state.OutputComplete {
				t.Errorf("the process is %+v, want it to have exited with %d as asked", state, tc.wantCode)
			}
			if got := b.read("c.stdout"); got != tc.wantOut {
				t.Errorf("it printed %q, want %q", got, tc.wantOut)
			}
			if left := descendants(b.cmd.Process.Pid); len(left) > 0 {
				t.Errorf("%d processes are left", len(left))
			}
		})
	}
}

func TestAStopCallsOffWhatIsPlanned(t *testing.T) {
	var b *box
	planned(t, func() int64 {
		b = newBox(t, boxOptions{})
		at := Monotonic() + int64(200*time.Millisecond)
		b.call(Request{Start: &Start{Command: []string{"touch", b.dir + "/started"}, AtMonotonicNanos: at}})
		killed := make(chan KillResult, 1)
		go func() {
			response, err := b.client.Call(t.Context(), Request{Kill: &Kill{ID: "k", AtMonotonicNanos: Monotonic() + int64(time.Hour)}})
			if err == nil && response.Kill != nil {
				killed <- *response.Kill
			}
		}()
		time.Sleep(20 * time.Millisecond)
		b.call(Request{Stop: &Stop{}})
		if result := <-killed; result.Error == "" || result.KilledAt != 0 {
			t.Errorf("the planned kill's result is %+v, want it called off", result)
		}
		return at
	})
	if _, err := os.Stat(b.dir + "/started"); err == nil {
		t.Error("the process was started after the stop")
	}
}

func TestACommandThatTakesTooLongIsKilledWithItsChildren(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start("exec sleep 1000")
	result := b.call(Request{Run: &Run{ID: "slow", Command: []string{"/bin/sh", "-c", "echo begun; sleep 1000 & sleep 1000"}, Timeout: 2 * time.Second}}).Run
	if !strings.Contains(result.Error, "took longer than 2s") || result.ExitCode != 137 || result.Output != "begun\n" {
		t.Errorf("the result is %+v", result)
	}
	b.await("alone", func(State) bool { return len(descendants(b.cmd.Process.Pid)) == 1 })
}

func TestAProcessSeesTheImagesEnvironmentWithTheAdditions(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.call(Request{Start: &Start{
		Command: []string{"sh", "-c", `echo "$FROM $NEW $PWD"; env | grep -c ^FROM=`}, Env: []string{"NEW=1", "FROM=spec"}, Dir: "/usr",
	}})
	b.await("complete", func(s State) bool { return s.OutputComplete })
	if got, want := b.read("c.stdout"), "spec 1 /usr\n1\n"; got != want {
		t.Errorf("the process saw %q, want %q", got, want)
	}
}

func TestACommandThatCannotStartSaysWhy(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.call(Request{Start: &Start{Command: []string{"no-such-program"}}})
	state := b.await("exited", func(s State) bool { return s.Process == Exited })
	if state.ExitCode != 127 || !strings.Contains(state.Tail, "no-such-program: not found in PATH") {
		t.Errorf("the state is %+v, want exit code 127 and the reason", state)
	}
}

func TestAScriptThatKillsItsGroupDoesNotHitTheLauncher(t *testing.T) {
	b := newBox(t, boxOptions{first: true})
	b.start("kill -TERM 0")
	b.await("exited", func(s State) bool { return s.Process == Exited && s.ExitCode == 143 })
}

func deletePod(t *testing.T, first bool) error {
	t.Helper()
	b := newBox(t, boxOptions{first: first})
	b.start(`trap '' TERM; ` + tree)
	b.awaitFile("grown")
	tree := descendants(b.cmd.Process.Pid)
	began := time.Now()
	b.cmd.Process.Signal(syscall.SIGTERM)
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("the launcher ended with %v, want exit code 0", err)
	}
	took := time.Since(began)
	t.Logf("ended in %v", took)
	// Processes of a launcher that is not process 1 may not have ended yet.
	deadline := time.Now().Add(patience)
	for _, pid := range tree {
		for _, alive := parentOf(pid); alive; _, alive = parentOf(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d outlives the launcher", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if took > 5*time.Second {
		return fmt.Errorf("the launcher took %v to end", took)
	}
	return nil
}

func TestDeletingThePodEndsTheLauncherAtOnce(t *testing.T) {
	for name, first := range map[string]bool{"as process 1": true, "as a reaper": false} {
		t.Run(name, func(t *testing.T) {
			if err := deletePod(t, first); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOutputOfAPrepareStepIsPackedByItsOwnUser(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start(`mkdir -p $DIR/keys/sub; umask 077; echo secret > $DIR/keys/0.priv; echo x > $DIR/keys/sub/y; ln -s 0.priv $DIR/keys/link; exec sleep 1000`)
	b.awaitFile("keys/link")
	file := b.call(Request{Archive: &Archive{Path: b.dir + "/keys", Limit: 1 << 20}}).File
	want := map[string]string{"0.priv": "600 secret\n", "link": "777 -> 0.priv", "sub/": "755 ", "sub/y": "600 x\n"}
	if diff := cmp.Diff(want, unpack(t, file)); diff != "" {
		t.Errorf("the archive (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the archive's mode is %v (%v), want that the agent can read it", info.Mode(), err)
	}
	_, err := b.client.Call(t.Context(), Request{Archive: &Archive{Path: b.dir + "/keys", Limit: 20}})
	if err == nil || !strings.Contains(err.Error(), "more than 20 bytes") {
		t.Errorf("an archive over the limit: %v, want the limit named", err)
	}
	b.call(Request{Share: &Share{Path: b.dir + "/keys/0.priv"}})
	if info, err := os.Stat(b.dir + "/keys/0.priv"); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the shared file's mode is %v (%v), want 0644", info.Mode(), err)
	}
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for pack := tar.NewReader(zip); ; {
		header, err := pack.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(pack)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = fmt.Sprintf("%o %s", header.Mode, content)
		if header.Linkname != "" {
			got[header.Name] = fmt.Sprintf("%o -> %s", header.Mode, header.Linkname)
		}
	}
}

func TestAMirrorWhoseReaderIsStuckLosesOutputAndReportsIt(t *testing.T) {
	read, write := io.Pipe()
	m := newMirror(write)
	line := []byte(strings.Repeat("x", 99) + "\n")
	written := 3 * mirrorLimit / len(line)
	for range written {
		m.write(line) // the reader has not begun yet, and write must not wait
	}
	m.close()
	go func() {
		<-m.done
		write.Close()
	}()
	got, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	if kept := bytes.Count(got, line); kept == 0 || kept >= written {
		t.Errorf("%d of %d lines were copied, want some", kept, written)
	}
	if !strings.Contains(string(got), "bytes left out of this log") {
		t.Error("the copy does not say that something is missing")
	}
}
