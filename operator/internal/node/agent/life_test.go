package agent_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

func signalContext() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM)
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestAReplicaLivesFromItsFilesToItsEnd(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.launch("helper")
	p.startAgent()

	c.files = []protocol.File{{Path: p.config + "/peers/list", Mode: 0o640, Content: []byte("a b c\n")}}
	c.await("tells the clock's offset", func(r protocol.Report) bool { return r.ClockError > 0 && r.NamesResolved })
	c.direct(func(d *protocol.Directive) {
		d.FilesDigest = protocol.FilesDigest(c.files)
		d.Resolve = []string{"localhost"}
		d.Containers = []protocol.Container{
			{Name: "replica", Command: shell(`echo "starting as $WHO in $PWD"; cat "$CONFIG/peers/list"; sleep 0.2; echo 'ready to serve' >&2; exec sleep 1000`),
				Env: []string{"WHO=me"}, Dir: "/"},
			{Name: "helper", Command: shell(`exec sleep 1000`)},
		}
		d.Gates = []protocol.Gate{
			{Log: "^ready to", Stream: "Stderr", Container: "replica"},
			{Address: c.address},
			{Command: shell(`test "$WHO" = me`), Container: "replica"},
		}
		d.Stop = protocol.Stop{Signal: "SIGTERM", Grace: patience}
	})
	c.await("has the files and no process", func(r protocol.Report) bool {
		return r.FilesDigest == protocol.FilesDigest(c.files) && len(r.Containers) == 2 && r.Containers[0].State == protocol.StateWaiting && !r.Ready
	})
	c.direct(func(d *protocol.Directive) { d.Start = true })
	ready := c.await("is ready", func(r protocol.Report) bool { return r.Ready })
	want := "starting as me in /\na b c\n"
	if got := p.reads("out/replica.stdout", func(content string) bool { return content == want }); got != want {
		t.Errorf("the replica printed %q, want %q", got, want)
	}
	if ready.Containers[1].State != protocol.StateRunning || ready.Containers[1].Starts != 1 {
		t.Errorf("the helper is %+v, want it running", ready.Containers[1])
	}

	c.direct(func(d *protocol.Directive) {
		d.Commands = []protocol.Command{
			{ID: "load", Command: shell(`echo loaded $WHO`), Until: "ExitZero", Timeout: patience},
			{ID: "check", Command: shell(`exit 3`), Until: "AnyExit", Timeout: patience},
		}
	})
	done := c.await("has both commands done", func(r protocol.Report) bool { return len(r.Commands) == 2 })
	if got := done.Commands[0]; got.ID != "load" || got.ExitCode != 0 || got.Output != "loaded me\n" {
		t.Errorf("the first command's result is %+v", got)
	}
	if got := done.Commands[1]; got.ID != "check" || got.ExitCode != 3 {
		t.Errorf("the second command's result is %+v", got)
	}

	c.direct(func(d *protocol.Directive) { d.Finish = true })
	end := c.await("is finished", func(r protocol.Report) bool { return r.Finished })
	for _, container := range end.Containers {
		if container.State != protocol.StateExited || !container.Expected || container.ExitCode != 128+15 {
			t.Errorf("after Finish, %s is %+v; want it to have exited with 143 as expected", container.Name, container)
		}
	}
	if end.Failure != "" {
		t.Errorf("the agent failed: %s", end.Failure)
	}
}

func init() {
	roles["printer"] = playPrinter
	roles["loadgen"] = playLoadgen
}

// playPrinter is a client like the programs of artifacts. It runs as soon as it is started, prints
// a line for each transaction, prints that it is done, and never ends by itself.
func playPrinter() {
	for i := range 40 {
		fmt.Printf("rw,2000000,%d,0\n", launcher.Monotonic())
		if i == 35 {
			fmt.Fprintln(os.Stderr, "Finished cooldown period")
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Hour)
}

// playLoadgen is a client that waits at the barrier and leaves a report that only its user can
// read.
func playLoadgen() {
	run, out := os.Getenv("RUN"), os.Getenv("OUT")
	write(run+"/ready", "", 0o644)
	var start protocol.StartSignal
	for {
		content, err := os.ReadFile(run + "/start")
		if err == nil {
			if err := json.Unmarshal(content, &start); err != nil {
				panic(err)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			panic(err)
		}
		time.Sleep(time.Millisecond)
	}
	release := start.ZeroMonotonicNanos - int64(start.WarmUp)
	if err := launcher.SleepUntil(context.Background(), release); err != nil {
		panic(err)
	}
	began := launcher.Monotonic()
	write(run+"/progress.json", `{"committed":7,"perSecond":5}`, 0o644)
	time.Sleep(700 * time.Millisecond)
	skew := time.Now().UnixNano() + start.ZeroMonotonicNanos - launcher.Monotonic() - start.ZeroUnixNanos
	recorder := results.Client{Format: results.ClientFormat, Index: 1, FirstClient: 4, Clients: 2, StartedNanos: began - release,
		MeasureNanos: int64(start.Measure), Driver: map[string]int64{"skewMillis": skew / 1e6}}
	recorder.Timeline.IntervalMillis = 100
	content, err := json.Marshal(recorder)
	if err != nil {
		panic(err)
	}
	write(out+"/result.json", string(content), 0o600)
}

func write(path, content string, mode os.FileMode) {
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		panic(err)
	}
}

// runSoon agrees on a run whose load begins in lead.
func runSoon(c *fakeCoordinator, lead time.Duration, actions ...timeline.Action) *protocol.Run {
	run := &protocol.Run{
		Windows: timeline.Windows{WarmUp: 100 * time.Millisecond, Measure: 300 * time.Millisecond, CoolDown: 50 * time.Millisecond, Drain: 50 * time.Millisecond},
		Actions: actions,
	}
	run.ZeroUnixNanos = time.Now().Add(lead + run.WarmUp).UnixNano()
	c.direct(func(d *protocol.Directive) { d.Run = run })
	return run
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// sentResults waits for the client's results and reads them.
func sentResults(t *testing.T, c *fakeCoordinator) results.Client {
	t.Helper()
	c.await("has sent its results", func(r protocol.Report) bool { return r.Sent })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.results) != 1 {
		t.Fatalf("the coordinator took %d results, want 1", len(c.results))
	}
	zip, err := gzip.NewReader(bytes.NewReader(c.results[0]))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	var client results.Client
	if err := json.Unmarshal(content, &client); err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAClientHeldByItsLauncherRunsFromTheReleaseToItsLastLine(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	c.refusals = 2
	p := newPod(t, c)
	p.launch("client")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "client", Command: []string{self(t)}, Env: []string{roleVariable + "=printer"}}}
		d.Client = &protocol.Client{Format: "TransactionLines", Source: "Stdout", Index: 0, FirstClient: 0, Clients: 1,
			EndLog: &protocol.Gate{Log: "^Finished cooldown", Stream: "Stderr", Container: "client"}}
		d.Stop = protocol.Stop{Signal: "SIGKILL"}
		d.Commands = []protocol.Command{{ID: "populate", Command: shell("echo populated"), Until: "ExitZero", Timeout: patience}}
	})
	c.await("has run the step before the client starts", func(r protocol.Report) bool {
		return len(r.Commands) == 1 && !r.AtBarrier && r.Containers[0].Starts == 0
	})
	c.direct(func(d *protocol.Directive) { d.Start = true })
	c.await("is at the barrier with the client not started", func(r protocol.Report) bool {
		return r.AtBarrier && r.Containers[0].State == protocol.StateWaiting
	})
	run := runSoon(c, 300*time.Millisecond)
	over := c.await("is over", func(r protocol.Report) bool { return r.Over })
	if state := over.Containers[0]; state.State != protocol.StateExited || !state.Expected || state.ExitCode != 137 {
		t.Errorf("the client is %+v, want it killed as expected", state)
	}
	// A check of the files that the run has left comes when the client is over.
	c.direct(func(d *protocol.Directive) {
		d.Commands = append(slices.Clone(d.Commands), protocol.Command{ID: "check/lines", Command: shell(`test -s "$OUT/client.stdout" && exit 7`), Until: "AnyExit", Timeout: patience})
	})
	if checked := c.await("has run the check", func(r protocol.Report) bool { return len(r.Commands) == 2 }); checked.Commands[1].ExitCode != 7 {
		t.Errorf("the check after the run came to %+v", checked.Commands[1])
	}
	client := sentResults(t, c)
	if client.Counters.Committed > 31 {
		t.Errorf("%d transactions were committed in the window, want at most one each 10 ms", client.Counters.Committed)
	}
	// The first line says that its transaction was issued 2 ms before it was printed.
	started := time.Duration(client.StartedNanos)
	if started < -10*time.Millisecond {
		t.Errorf("the first request was %v before the release", -started)
	}
	if started > 2*time.Second {
		t.Errorf("the first request was %v after the release, want soon after", started)
	}
	// On a machine that others share it may start when most of the window is over.
	if inWindow := run.WarmUp + run.Measure - started; inWindow > 100*time.Millisecond && client.Counters.Committed < 1 {
		t.Errorf("no transaction was committed in the window, of which %v were left", inWindow)
	}
}

// A trial was invalid because all readings were taken while its pods started. The best one was
// known to within 16 ms, and the next ones were due after the trial.
func TestTheClockIsReadAgainSoonAfterSlowAnswers(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	c.slowClocks = 16 // two measurements
	p := newPod(t, c)
	p.startAgent()
	c.await("tells a clock of slow answers", func(r protocol.Report) bool { return r.ClockError > 0 })
	soon := time.Now().Add(20 * time.Second) // without haste the next measurement comes after 30 s
	c.awaitUntil(soon, "tells a better clock", func(r protocol.Report) bool { return r.ClockError < 30*time.Millisecond })
}

func TestAClientAtTheBarrierIsToldWhenToStartOnAClockTwoSecondsOff(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.offset = "2s"
	p.launch("client")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "client", Command: []string{self(t)}, Env: []string{roleVariable + "=loadgen"}}}
		d.Client = &protocol.Client{WaitReady: true, Format: "Assay", Source: "File", Path: p.out + "/result.json", Index: 1, FirstClient: 4, Clients: 2}
		d.Start = true
	})
	at := c.await("is at the barrier", func(r protocol.Report) bool { return r.AtBarrier })
	if at.Containers[0].State != protocol.StateRunning || !at.Ready {
		t.Errorf("at the barrier the client is %+v, ready %v", at.Containers[0], at.Ready)
	}
	off := at.ClockOffset + 2*time.Second
	runSoon(c, 300*time.Millisecond)
	c.await("tells the progress", func(r protocol.Report) bool {
		return r.Progress != nil && *r.Progress == protocol.Progress{Committed: 7, PerSecond: 5}
	})
	client := sentResults(t, c)
	c.await("has the end expected", func(r protocol.Report) bool {
		return r.Over && r.Containers[0].Expected && r.Containers[0].State == protocol.StateExited
	})
	started := time.Duration(client.StartedNanos)
	if started < 0 {
		t.Errorf("the client began %v before the release", -started)
	}
	// The client compared t = 0 on the pod's wall clock with the real one.
	if skew := client.Driver["skewMillis"]; off.Abs() > 500*time.Millisecond || started > 2*time.Second || skew > -1500 || skew < -2500 {
		t.Errorf("the clock's offset is reported as %v, want about -2s; the client began %v after the release; t = 0 on the pod's own wall clock is told %d ms off "+
			"the true clock, want -2000", at.ClockOffset, started, skew)
	}
}

func TestAClientThatEndsBeforeTheStartIsOverWithoutResults(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("client")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "client", Command: shell("echo no such host; exit 1")}}
		d.Client = &protocol.Client{WaitReady: true, Format: "TransactionLines", Source: "Stdout", Clients: 1}
		d.Start = true
	})
	report := c.await("is over, and has the last words", func(r protocol.Report) bool { return r.Over && r.Containers[0].Tail != "" })
	if state := report.Containers[0]; report.Sent || report.AtBarrier || state.Expected || state.ExitCode != 1 || state.Tail != "no such host\n" {
		t.Errorf("the report is %+v; want an unexpected exit with 1 and its output", report)
	}
}

func TestAPrepareStepsOutputArrives(t *testing.T) {
	cases := map[string]struct {
		script      string
		timeout     time.Duration
		wantSent    bool
		wantFailure string
	}{
		"a step that succeeds":            {"mkdir -p $OUT/keys && echo k > $OUT/keys/0.priv", time.Minute, true, ""},
		"a step that fails":               {"echo no entropy; exit 2", time.Minute, false, "exited with 2; it printed: no entropy"},
		"a step that takes too long":      {"echo thinking; sleep 1000", 300 * time.Millisecond, false, "longer than 300ms; it printed: thinking"},
		"a step that makes far too much":  {"mkdir -p $OUT/keys && head -c 1000000 /dev/urandom > $OUT/keys/big", time.Minute, false, "more than 786432 bytes"},
		"a step that makes nothing there": {"true", time.Minute, false, "no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFakeCoordinator(t, "127.0.0.1:0")
			p := newPod(t, c)
			p.launch("keys")
			p.startAgent()
			c.direct(func(d *protocol.Directive) {
				d.Containers = []protocol.Container{{Name: "keys", Command: shell(tc.script)}}
				d.Prepare = &protocol.Prepare{OutputPath: p.out + "/keys", Timeout: tc.timeout}
				d.Start = true
			})
			report := c.await("is over", func(r protocol.Report) bool { return r.Over })
			c.mu.Lock()
			defer c.mu.Unlock()
			if report.Sent != tc.wantSent || tc.wantSent != (len(c.prepared) == 1) {
				t.Errorf("sent is %v with %d outputs taken, want %v", report.Sent, len(c.prepared), tc.wantSent)
			}
			if tc.wantFailure == "" && report.Failure != "" || !strings.Contains(report.Failure, tc.wantFailure) {
				t.Errorf("the failure is %q, want %q in it", report.Failure, tc.wantFailure)
			}
			if report.Unreadable == tc.wantSent { // a failed or missing result of a step is the fault of its system
				t.Errorf("unreadable is %v, and the output was sent: %v", report.Unreadable, tc.wantSent)
			}
			if strings.HasSuffix(report.Failure, "\n") { // a sentence follows it
				t.Errorf("the failure is %q, which ends a line", report.Failure)
			}
		})
	}
}

func TestACommandIsRepeatedUntilItSucceedsOrItsTimeIsUp(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell("exec sleep 1000")}}
		d.Start = true
		d.Commands = []protocol.Command{
			{ID: "ring", Command: shell("echo x >> $OUT/tries; test $(wc -l < $OUT/tries) -ge 2"), Until: "Retry", Timeout: patience},
			{ID: "never", Command: shell("exit 9"), Until: "Retry", Timeout: 4 * time.Second},
			{ID: "slow", Command: shell("sleep 1000"), Until: "ExitZero", Timeout: 100 * time.Millisecond},
		}
	})
	report := c.await("has all commands done", func(r protocol.Report) bool { return len(r.Commands) == 3 })
	if got := report.Commands[0]; got.ExitCode != 0 || got.Error != "" || p.read("out/tries") != "x\nx\n" {
		t.Errorf("the command that succeeds the second time: %+v after %q", got, p.read("out/tries"))
	}
	if got := report.Commands[1]; got.ExitCode != 9 || !strings.Contains(got.Error, "did not exit with 0 within 4s") {
		t.Errorf("the command that never succeeds: %+v", got)
	}
	if got := report.Commands[2]; !strings.Contains(got.Error, "took longer than 100ms") {
		t.Errorf("the command that takes too long: %+v", got)
	}
}

// A command of a fault begins at its instant and is confirmed when it has exited with 0. A command
// that fails, or takes too long, is not confirmed, and the record has its output.
func TestACommandRunsAtItsInstant(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell("exec sleep 1000"), Env: []string{"WHO=me"}}}
		d.Start = true
	})
	c.await("runs", func(r protocol.Report) bool {
		return len(r.Containers) == 1 && r.Containers[0].State == protocol.StateRunning
	})
	run := runSoon(c, 300*time.Millisecond,
		timeline.Action{ID: "grow/1/execute/replica", Kind: timeline.Execute, At: 200 * time.Millisecond, Command: shell("date +%s%N > $OUT/began; echo $WHO; sleep 0.3"), Timeout: patience},
		timeline.Action{ID: "fail/1/execute/replica", Kind: timeline.Execute, At: 300 * time.Millisecond, Command: shell("echo no quorum; exit 3"), Timeout: patience},
		timeline.Action{ID: "hang/1/execute/replica", Kind: timeline.Execute, At: 400 * time.Millisecond, Command: shell("sleep 1000"), Timeout: 100 * time.Millisecond},
	)
	report := c.await("has all records", func(r protocol.Report) bool { return len(r.Actions) == 3 })
	byID := map[string]protocol.ActionRecord{}
	for _, a := range report.Actions {
		byID[a.ID] = a
	}
	grow := byID["grow/1/execute/replica"]
	if grow.Error != "" || grow.Started < grow.Planned || grow.Confirmed-grow.Started < 300*time.Millisecond {
		t.Errorf("the record is %+v; want it begun after its instant and confirmed 300 ms later", grow)
	}
	nanos, err := strconv.ParseInt(strings.TrimSpace(p.read("out/began")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	// The shell starts date between these two instants.
	if at := time.Duration(nanos - run.ZeroUnixNanos); at < grow.Started || at > grow.Confirmed {
		t.Errorf("the command ran at %v, the record says from %v to %v", at, grow.Started, grow.Confirmed)
	}
	if got := byID["fail/1/execute/replica"].Error; !strings.Contains(got, "exited with 3") || !strings.Contains(got, "no quorum") {
		t.Errorf("a command that fails: %q", got)
	}
	if got := byID["hang/1/execute/replica"].Error; !strings.Contains(got, "took longer than 100ms") {
		t.Errorf("a command that hangs: %q", got)
	}
	t.Logf("begun %v after the instant", grow.Started-grow.Planned)
}

func TestAReplicaThatDiesByItselfIsReported(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell("echo panic: out of luck >&2; exit 2")}}
		d.Gates = []protocol.Gate{{Log: "never printed", Container: "replica"}}
		d.Start = true
	})
	report := c.await("has the exit", func(r protocol.Report) bool {
		return len(r.Containers) == 1 && r.Containers[0].State == protocol.StateExited && r.Containers[0].Tail != ""
	})
	if state := report.Containers[0]; state.Expected || state.ExitCode != 2 || state.Tail != "panic: out of luck\n" || report.Ready {
		t.Errorf("the container is %+v, ready %v; want an unexpected exit with 2 and the last words", state, report.Ready)
	}
	if !strings.Contains(report.WaitingFor, "replica, which exited with 2") {
		t.Errorf("the pod waits for %q", report.WaitingFor)
	}
}

// A fault of Chaos Mesh deleted a pod six seconds after the trial's start. Nothing else had
// happened in the pod, so the manager's last report of it was older than the first output of its
// process.
func TestFirstWordsAreReported(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	c.maxHold = time.Hour // no report goes out by the clock
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell("sleep 3; echo listening; exec sleep 1000")}}
		d.Start = true
	})
	c.await("has no words yet, and is ready", func(r protocol.Report) bool { return r.Ready && r.Containers[0].Tail == "" })
	// Without news the agent gives a request up after twice this time.
	c.awaitUntil(time.Now().Add(protocol.MaxHold), "has the first words", func(r protocol.Report) bool { return r.Containers[0].Tail == "listening\n" })
}

func TestAContainerThatWasRestartedCountsAsLost(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	process := p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell("exec sleep 1000")}}
		d.Start = true
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready })
	process.Process.Kill()
	process.Wait()
	p.launch("replica")
	report := c.await("has lost the process", func(r protocol.Report) bool { return r.Containers[0].State == protocol.StateLost })
	if state := report.Containers[0]; state.Expected || state.ExitCode != 137 || state.Starts != 1 {
		t.Errorf("the container is %+v, want it to have lost its process unexpectedly", state)
	}
}

// A manager that has just taken over knows the pod before it knows the pod's files, and gives none
// until then. The agent believed that there were no files, and started the process without them.
func TestOnlyTheFilesOfTheDirectiveCount(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	wanted := []protocol.File{{Path: p.config + "/cluster", Mode: 0o644, Content: []byte("a b\n")}}
	c.filesBefore = [][]protocol.File{nil, {{Path: p.config + "/cluster", Mode: 0o644, Content: []byte("c d\n")}}}
	c.files = wanted
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.FilesDigest, d.Start = protocol.FilesDigest(wanted), true
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(`cat "$CONFIG/cluster"; exec sleep 1000`)}}
	})
	c.await("runs", func(r protocol.Report) bool { return r.Ready })
	if got := p.reads("out/replica.stdout", func(content string) bool { return content != "" }); got != "a b\n" {
		t.Errorf("the process read %q", got)
	}
}

func TestFilesOutsideTheSharedVolumesAreRefused(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.files = []protocol.File{{Path: p.config + "/../escaped", Mode: 0o644, Content: []byte("x")}}
	c.direct(func(d *protocol.Directive) { d.FilesDigest = protocol.FilesDigest(c.files) })
	report := c.await("has failed", func(r protocol.Report) bool { return r.Failure != "" })
	if !strings.Contains(report.Failure, "none of the pod's shared volumes") || report.FilesDigest != "" {
		t.Errorf("the failure is %q with files %q", report.Failure, report.FilesDigest)
	}
	if _, err := os.Stat(p.dir + "/escaped"); err == nil {
		t.Error("the file was written")
	}
}

func TestTheAgentFollowsItsTokenAndTheLeader(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	reports := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.reports
	}
	c.await("is there", func(protocol.Report) bool { return true })
	steps := []struct {
		name          string
		break_, mends func()
	}{
		{"a token that is not known any more", func() { c.tokens = map[string]bool{"rotated": true} }, func() { p.write("token", []byte("rotated")) }},
		{"a manager that does not lead", func() { c.status = 503 }, func() { c.mu.Lock(); c.status = 0; c.mu.Unlock() }},
		{"a pod that the manager does not know yet", func() { c.status = 403 }, func() { c.mu.Lock(); c.status = 0; c.mu.Unlock() }},
	}
	for _, step := range steps {
		c.mu.Lock()
		step.break_()
		c.mu.Unlock()
		c.server.CloseClientConnections()
		time.Sleep(100 * time.Millisecond)
		before := reports()
		step.mends()
		deadline := time.Now().Add(patience)
		for reports() == before {
			if time.Now().After(deadline) {
				t.Fatalf("no report in %v after %s", patience, step.name)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
