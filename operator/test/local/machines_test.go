package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// A script that hangs is killed at its deadline. The report names the command that it waited for.
// keepFailed keeps the machines for a time, and a person can open a shell on them.
func TestAScriptThatHangs(t *testing.T) {
	dir := t.TempDir()
	cmd := command(t.Context(), t, dir, "run", "--wait", "-f", "testdata/hung.yaml")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	trial := awaitInvalid(t, dir, "hung")
	shell := func(machine, line string) (string, int) {
		c := exec.CommandContext(t.Context(), os.Getenv("ASSAY_LOCAL_PROGRAM"), "ssh", trial, machine, "--local="+dir, "--", line)
		out, _ := c.CombinedOutput() // the process state has the same information
		return string(out), c.ProcessState.ExitCode()
	}
	if out, code := shell("m1", `read line < booted; echo "$line on $HOSTNAME as $USER in $PWD"; exit 4`); code != 4 || !strings.HasPrefix(out, "up on m1 as author in /home/author\n") {
		t.Errorf("a command on m1 exited with %d: %s", code, out)
	}
	if out, code := shell("m7", "true"); code != 2 || !strings.Contains(out, "there are: m0, m1") {
		t.Errorf("a command on no machine exited with %d: %s", code, out)
	}
	_ = cmd.Wait() // it ends with a failed trial
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("the run exited with %d, want 5", code)
	}
	if out, code := shell("m1", "true"); code != 1 || !strings.Contains(out, "has ended (Invalid), and its machines are gone") {
		t.Errorf("a command after the end exited with %d: %s", code, out)
	}
	report, _, _ := run(t, dir, "report", "hung")
	for _, want := range []string{"does not count: ClientFailed", "boot: bash -c echo up >> booted", "`ssh m1 sleep 600` has run for 5"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
}

// awaitInvalid returns the name of an experiment's first trial that is not valid.
func awaitInvalid(t *testing.T, dir, experiment string) string {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for name, trial := range trialsOf(t, dir, experiment) {
			if meta.IsStatusConditionFalse(trial.Status.Conditions, v1alpha1.TrialValid) {
				return name
			}
		}
	}
	t.Fatal("no trial of " + experiment + " was judged")
	return ""
}

// A fault kills the machine of one of the script's sessions. The trial's record names the fault
// that ended the session, and has when the script's ssh ended, as seen by the script.
func TestTheScriptsSSHSeesAFault(t *testing.T) {
	dir := t.TempDir()
	out, said, code := run(t, dir, "run", "--wait", "-f", "testdata/lost.yaml")
	if code != 0 || !strings.Contains(out, "1 of 1 planned trial valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	trial := validTrial(t, filepath.Join(dir, "lost", "configmaps"))
	row := trial.Rows[0].Summary
	if row.Throughput != 255 {
		t.Errorf("ssh exited with %v, want 255", row.Throughput)
	}
	found := false
	for _, s := range trial.Sessions {
		if s.Command != "sleep 60" {
			continue
		}
		found = true
		if s.Fault != "crash" || s.EndMillis != nil || s.ClosedMillis == nil || *s.ClosedMillis < s.FaultMillis {
			t.Errorf("the session that the fault ended is %+v", s)
			continue
		}
		// A session begins when its client has connected. If ssh gives up before the machine has
		// booted, the kernel keeps ssh's socket. It closes the socket when a retransmitted packet
		// gets an answer: here at most 3.2 s later.
		took := *s.ClosedMillis - s.BeginMillis
		if took > row.P50Millis+3200 || took < row.P50Millis-2000 {
			t.Errorf("the record has %.0f ms of the session; the script saw %.0f ms", took, row.P50Millis)
		}
		t.Logf("m1 was dead at %.1f ms; ssh ended %.1f ms later", s.FaultMillis, *s.ClosedMillis-s.FaultMillis)
	}
	if !found {
		t.Errorf("the record lacks the session: %+v", trial.Sessions)
	}
	report, _, _ := run(t, dir, "report", "lost")
	for _, want := range []string{"its ssh ended", "after the fault crash of m1", "255", "fault crash: Kill"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

// Machines of a script are in regions. Their links have the same delays as those of replicas, and
// the same proof.
func TestMachinesFarApart(t *testing.T) {
	dir := t.TempDir()
	out, said, code := run(t, dir, "run", "--wait", "-f", "testdata/wan.yaml")
	if code != 0 || !strings.Contains(out, "2 of 2 planned trials valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	trial := validTrial(t, filepath.Join(dir, "wan", "configmaps"))
	near, far := trial.Rows[0].Summary.P50Millis, trial.Rows[1].Summary.P50Millis
	// TCP, versions, keys, the user and the command take at least six round trips.
	if far-near < 6*40 {
		t.Errorf("ssh m1 true takes %v ms and ssh m2 true %v ms, want six round trips of 40 ms more", near, far)
	}
	shaped := 0
	for _, link := range trial.Network.Links {
		if link.Out == (results.LinkAsked{}) {
			continue
		}
		if shaped++; link.MeasuredMillis < 40 || link.MeasuredMillis > 51 {
			t.Errorf("from %s to %s: a round trip of %.2f ms was measured, want 40", link.From, link.To, link.MeasuredMillis)
		}
	}
	if shaped != 2 { // from m2 to m0 and m1
		t.Errorf("%d links were shaped, want 2: %+v", shaped, trial.Network.Links)
	}
	t.Logf("ssh m1 true: %v ms, ssh m2 true: %v ms", near, far)
}

// Some clients report numbers of their whole run. Their pods' resources are measured over the whole
// run, too, and decide the trial's validity.
func TestWholeRunsAreMeasured(t *testing.T) {
	dir := t.TempDir()
	out, said, code := run(t, dir, "run", "--wait", "-f", "testdata/whole.yaml")
	if code != 0 || !strings.Contains(out, "1 of 1 planned trial valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	trial := validTrial(t, filepath.Join(dir, "whole", "configmaps"))
	for _, p := range trial.Pods {
		if p.Resources == nil || p.Resources.Seconds < 7.2 || p.Resources.Seconds > 12 {
			t.Errorf("of the run of nine seconds, with a window of two, %s says %+v", p.Name, p.Resources)
		}
	}
}

// A machine writes to a shared directory. All machines of its trial can read the file at once, and
// machines of the next trial cannot.
func TestMachinesShareDirectories(t *testing.T) {
	dir := t.TempDir()
	out, said, code := run(t, dir, "run", "--wait", "-f", "testdata/shared.yaml")
	if code != 0 || !strings.Contains(out, "6 of 6 planned trials valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	// The second trial must not see the lines that the first one left.
	for i, row := range validTrial(t, filepath.Join(dir, "shared", "configmaps")).Rows {
		if want := []float64{1, 2, 3}[i]; row.Summary.Throughput != want {
			t.Errorf("%v: %v lines in the shared directory, want %v", row.Coordinates, row.Summary.Throughput, want)
		}
	}
}
