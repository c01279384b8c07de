// Package local tests trials on one machine without a cluster, as users run them: with the program,
// and with images from archives. make test-local builds both. The tests run for root or for an
// ordinary user.
//
// These tests kill the program, so it is a process of its own.
package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// build is a program that includes the manager, and the folders of its images, separated by commas.
type build struct{ program, images string }

// ours is the build of this tree.
func ours(t *testing.T) build {
	t.Helper()
	b := build{program: os.Getenv("ASSAY_LOCAL_PROGRAM"), images: os.Getenv("ASSAY_LOCAL_IMAGES")}
	if b.program == "" {
		t.Fatal("ASSAY_LOCAL_PROGRAM names no kubectl-assay: run make test-local")
	}
	return b
}

// command is the program with arguments of this test, in a folder of its own.
func command(ctx context.Context, t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	return ours(t).command(ctx, dir, args...)
}

func (b build) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.program, append(args, "--local="+dir, "--local-images="+b.images)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// run it to its end. It returns what it printed, and its exit code.
func run(t *testing.T, dir string, args ...string) (out, said string, code int) {
	t.Helper()
	return ours(t).run(t, dir, args...)
}

func (b build) run(t *testing.T, dir string, args ...string) (out, said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := b.command(ctx, dir, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", args, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// small is an experiment of four short trials. In half of them a replica is killed. It tolerates
// disturbances by other programs, since the test is not about them.
var small = []string{
	"-f", "testdata/crash.yaml", "-f", "../../../experiments/systems/basil.yaml",
}

// trials of the experiment crash in the folder, by name.
func trials(t *testing.T, dir string) map[string]v1alpha1.Trial {
	t.Helper()
	return trialsOf(t, dir, "crash")
}

func trialsOf(t *testing.T, dir, experiment string) map[string]v1alpha1.Trial {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, experiment, "trials", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]v1alpha1.Trial{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var trial v1alpha1.Trial
		if err := json.Unmarshal(text, &trial); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		found[trial.Name] = trial
	}
	return found
}

// leftovers must not exist after a run: processes, control groups, mounts, files.
func leftovers(t *testing.T) (left []string) {
	t.Helper()
	groups, err := filepath.Glob("/sys/fs/cgroup/*/assay-local")
	if err != nil {
		t.Fatal(err)
	}
	left = append(left, groups...)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "/var/lib/assay/local/") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	if files, err := os.ReadDir("/var/lib/assay/local"); err == nil && len(files) > 0 {
		left = append(left, "/var/lib/assay/local")
	}
	return left
}

func outcomes(all map[string]v1alpha1.Trial) map[string]int {
	n := map[string]int{}
	for name := range all {
		trial := all[name]
		n[plan.Outcome(&trial)]++
	}
	return n
}

// judged reports whether a run ended with a verdict that does not refute the claim. Two rounds may
// leave it undecided.
func judged(code int) bool { return code == 0 || code == 4 }

func TestAnExperimentOnOneMachine(t *testing.T) {
	dir := t.TempDir()
	if out, said, code := run(t, dir, append([]string{"plan"}, small...)...); code != 0 || !strings.Contains(out, "the largest trial fits on 1 node") {
		t.Errorf("the plan: exit code %d\n%s\n%s", code, said, out)
	}
	out, said, code := run(t, dir, append([]string{"run", "--wait"}, small...)...)
	if !judged(code) {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	for _, want := range []string{"both-work", "4 of 4 planned trials valid", "none: one machine, no cluster", "this-machine"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
	bundle := filepath.Join(t.TempDir(), "crash.tar.gz")
	if _, said, code := run(t, dir, "bundle", "crash", "-o", bundle); code != 0 {
		t.Fatalf("the bundle: exit code %d\n%s", code, said)
	}
	if out, said, code := run(t, dir, "report", "--file", bundle); code != 0 || !strings.Contains(out, "none: one machine, no cluster") {
		t.Errorf("the bundle's report: exit code %d\n%s\n%s", code, said, out)
	}
	if out, _, code := run(t, dir, "verify", bundle); code != 0 {
		t.Errorf("verify: exit code %d\n%s", code, out)
	}
	if _, said, code := run(t, dir, append([]string{"run"}, small...)...); code != 1 || !strings.Contains(said, "complete") {
		t.Errorf("a second run of the same name: exit code %d\n%s", code, said)
	}
}

// A run that is killed leaves processes behind. The next run removes them, and repeats only the
// interrupted trial.
func TestAKilledRunGoesOn(t *testing.T) {
	dir := t.TempDir()
	cmd := command(t.Context(), t, dir, append([]string{"run", "--wait"}, small...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(3 * time.Minute)
	for {
		n := outcomes(trials(t, dir))
		if n[v1alpha1.ReasonSucceeded] > 0 && n[v1alpha1.ReasonInProgress] > 0 && len(leftovers(t)) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no second trial began: %v", n)
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(3 * time.Second) // in the middle of the second trial
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	before := trials(t, dir)
	if len(leftovers(t)) == 0 {
		t.Fatal("nothing was left: the test killed nothing")
	}
	out, said, code := run(t, dir, append([]string{"run", "--wait"}, small...)...)
	if !judged(code) || !strings.Contains(out, "4 of 4 planned trials valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
	after := trials(t, dir)
	for name := range before {
		was, is := before[name], after[name]
		if plan.Outcome(&was) == v1alpha1.ReasonSucceeded && (is.UID != was.UID || is.ResourceVersion != was.ResourceVersion) {
			t.Errorf("trial %s was complete, and has changed", name)
		}
	}
	if n := outcomes(after); n[v1alpha1.ReasonSucceeded] != 4 || len(after) > 5 {
		t.Errorf("trials: %v; want 4 that succeeded, and the one that was cut: %q", n, reasons(after))
	}
}

// reasons say why trials do not count.
func reasons(all map[string]v1alpha1.Trial) (why []string) {
	for name, trial := range all {
		for _, kind := range []string{v1alpha1.TrialValid, v1alpha1.TrialComplete} {
			if c := meta.FindStatusCondition(trial.Status.Conditions, kind); c != nil && plan.Outcome(&trial) != v1alpha1.ReasonSucceeded {
				why = append(why, fmt.Sprintf("%s: %s: %s: %s", name, kind, c.Reason, c.Message))
			}
		}
	}
	return why
}

// kills is how often the run is killed: ASSAY_LOCAL_KILLS, or 2.
func kills(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ASSAY_LOCAL_KILLS"), "2"))
	if err != nil || n < 1 {
		t.Fatalf("ASSAY_LOCAL_KILLS is %q, and no number from 1", os.Getenv("ASSAY_LOCAL_KILLS"))
	}
	return n
}

// A run is killed at random instants. Complete trials stay as they are, no repetition is measured
// twice, and no process is left in the end. Another run follows each complete one, so that each
// kill hits a running one.
func TestKilledAtRandomInstants(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	killed, cut, runs := 0, 0, 0
	for ; killed < kills(t) && !t.Failed(); runs++ {
		c := &campaign{dir: t.TempDir(), random: random, complete: map[string]v1alpha1.Trial{}}
		killed += c.kill(t, kills(t)-killed)
		cut += c.end(t)
	}
	t.Logf("%d kills of %d runs: %d valid trials, %d that were cut", killed, runs, 4*runs, cut)
}

// campaign is one experiment that is killed again and again.
type campaign struct {
	dir      string
	random   *rand.Rand
	complete map[string]v1alpha1.Trial // as they were when they were first seen complete
}

// args of the run. No budget counts interrupted trials.
func (*campaign) args() []string {
	return append([]string{"run", "--wait", "--set", "disturbances.retryFor=0s"}, small...)
}

// kill the run at random instants, at most that often, until it is complete. It returns the number
// of kills.
func (c *campaign) kill(t *testing.T, most int) (killed int) {
	t.Helper()
	for killed < most {
		cmd := command(t.Context(), t, c.dir, c.args()...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // it was killed, or the run at the end reports the error
		}()
		select {
		case <-ended:
			return killed
		case <-time.After(200*time.Millisecond + time.Duration(c.random.Int64N(int64(14*time.Second)))):
			if cmd.Process.Kill() == nil {
				killed++
			}
			<-ended
		}
		c.check(t)
	}
	return killed
}

// check that complete trials have not changed.
func (c *campaign) check(t *testing.T) {
	t.Helper()
	after := trials(t, c.dir)
	for name, was := range c.complete {
		if is := after[name]; is.UID != was.UID || is.ResourceVersion != was.ResourceVersion {
			t.Errorf("trial %s was complete, and has changed", name)
		}
	}
	for name, trial := range after {
		if plan.Outcome(&trial) != v1alpha1.ReasonInProgress {
			c.complete[name] = trial
		}
	}
}

// end lets the run complete, and returns how many trials were interrupted.
func (c *campaign) end(t *testing.T) (cut int) {
	t.Helper()
	out, said, code := run(t, c.dir, c.args()...)
	if over := code == 1 && strings.Contains(said, "complete"); !over && !judged(code) {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	c.check(t)
	valid := map[string]int{}
	for _, trial := range c.complete {
		if plan.Outcome(&trial) == v1alpha1.ReasonSucceeded {
			valid[fmt.Sprint(trial.Spec.Point.Index, trial.Spec.Repetition)]++
			continue
		}
		cut++
		if valid := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid); valid == nil || valid.Reason != v1alpha1.ReasonInterrupted {
			t.Errorf("trial %s does not count: %v; want %s", trial.Name, valid, v1alpha1.ReasonInterrupted)
		}
	}
	for repetition, n := range valid {
		if n > 1 {
			t.Errorf("point and repetition %s have %d valid trials", repetition, n)
		}
	}
	if left := leftovers(t); len(valid) != 4 || len(left) > 0 {
		t.Errorf("%d valid trials, want 4; left: %q", len(valid), left)
	}
	return cut
}

func TestCtrlCCleansUp(t *testing.T) {
	dir := t.TempDir()
	cmd := command(t.Context(), t, dir, append([]string{"run", "--wait"}, small...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(leftovers(t)) < 10; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no pod began")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code has the reason
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left after Ctrl-C: %q", left)
	}
}
