package local

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A script that hangs is killed at its deadline. The report says what it waited for. keepFailed
// keeps the machines, on which a person has a shell, until its time is over.
func TestAScriptThatHangs(t *testing.T) {
	dir := t.TempDir()
	cmd := command(t.Context(), t, dir, "run", "--wait", "-f", "testdata/hung.yaml")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	trial := awaitInvalid(t, dir, "hung")
	shell := func(machine, line string) (string, int) {
		c := exec.CommandContext(t.Context(), os.Getenv("ASSAY_LOCAL_PROGRAM"), "ssh", trial, machine, "--local="+dir, "--", line)
		out, _ := c.CombinedOutput() // its state says the same
		return string(out), c.ProcessState.ExitCode()
	}
	if out, code := shell("m1", `read line < booted; echo "$line on $HOSTNAME as $USER in $PWD"; exit 4`); code != 4 || !strings.HasPrefix(out, "up on m1 as author in /home/author\n") {
		t.Errorf("a command on m1 exited with %d: %s", code, out)
	}
	if out, code := shell("m7", "true"); code != 2 || !strings.Contains(out, "there are: m0, m1") {
		t.Errorf("a command on no machine exited with %d: %s", code, out)
	}
	_ = cmd.Wait() // with a failed trial
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
