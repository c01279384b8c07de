package launcher

import (
	"os/exec"
	"slices"
	"testing"
)

func TestProcessesAreNamed(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	if found := (processes{}).named(); !slices.Contains(found, Process{child.Process.Pid, "sleep"}) {
		t.Errorf("%+v lacks process %d, which sleeps", found, child.Process.Pid)
	}
}
