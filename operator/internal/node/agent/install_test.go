package agent

import (
	"os"
	"os/exec"
	"testing"
)

func TestInstallMakesTheBinariesRunnableByEveryone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/shared", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/launcher", []byte("#!/bin/true"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Install([]string{dir + "/launcher"}, dir+"/bin", []string{dir + "/shared"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir + "/bin/launcher"); err != nil || info.Mode() != 0o755 || info.Size() != 11 {
		t.Errorf("the installed binary is %v (%v)", info, err)
	}
	if info, err := os.Stat(dir + "/shared"); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the shared directory is %v (%v), want it open to all", info.Mode(), err)
	}
	if err := Install([]string{dir + "/missing"}, dir+"/bin", nil); err == nil {
		t.Error("a binary that is missing was installed")
	}
}

// A restarted container of an agent installs once more in the middle of a trial. Other containers
// run the installed programs at the time.
func TestInstallLeavesWhatIsInstalled(t *testing.T) {
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("there is no sleep to run")
	}
	if err := os.Mkdir(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	// An agent that was killed at its first start left half a binary.
	if err := os.WriteFile(dir+"/bin/sleep.new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Install([]string{sleep}, dir+"/bin", nil); err != nil {
		t.Fatal(err)
	}
	running := exec.CommandContext(t.Context(), dir+"/bin/sleep", "60")
	if err := running.Start(); err != nil {
		t.Fatalf("run what is installed: %v", err)
	}
	t.Cleanup(func() { _ = running.Wait() }) // it was killed when the test's context ended
	before, err := os.Stat(dir + "/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := Install([]string{sleep}, dir+"/bin", nil); err != nil {
		t.Errorf("install again while it runs: %v", err)
	}
	after, err := os.Stat(dir + "/bin/sleep")
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the binary was replaced (%v)", err)
	}
	if _, err := os.Stat(dir + "/bin/sleep.new"); err == nil {
		t.Error("half a binary is left")
	}
}
