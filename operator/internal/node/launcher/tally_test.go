package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// stat is a line of /proc/PID/stat with these times.
func stat(pid int, name string, utime, stime, cutime, cstime int) string {
	return fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 99 98 97 96 %d %d %d %d 20 0 1 0 5 6 7\n", pid, name, utime, stime, cutime, cstime)
}

// Without a control group, the use of a container is added up over its processes. The use of a
// process that has ended stays in the sum.
func TestTally(t *testing.T) {
	page := int64(os.Getpagesize())
	root := lay(t, map[string]string{
		"1/stat": stat(1, "launcher", 3, 2, 10, 5), "1/statm": "900 100 50 1 0 80 0\n",
		"7/stat": stat(7, "a) S (b", 100, 50, 0, 0), "7/statm": "900 1000 50 1 0 80 0\n",
		"9/stat": stat(9, "gone", 0, 0, 0, 0), "self/stat": stat(1, "launcher", 99, 99, 99, 99), "stat": "cpu 1 2 3\n",
	})
	var all tally
	u, err := all.read(root)
	if err != nil || u.CPUNanos != 170*tick || u.MemoryBytes != 1100*page || u.AtMonotonicNanos == 0 {
		t.Fatalf("%+v, %v; want 1.7 s and 1100 pages", u, err)
	}
	// Process 7 is in no sum: it ended after its parent was read.
	if err := os.RemoveAll(root + "/7"); err != nil {
		t.Fatal(err)
	}
	if u, err = all.read(root); err != nil || u.CPUNanos != 170*tick || u.MemoryBytes != 100*page {
		t.Errorf("%+v, %v; the time must not fall", u, err)
	}
	write(t, root, "1/stat", stat(1, "launcher", 3, 2, 110, 65))
	if u, err = all.read(root); err != nil || u.CPUNanos != 180*tick {
		t.Errorf("%+v, %v; want 1.8 s", u, err)
	}
	write(t, root, "1/stat", "1 (launcher) S 1\n")
	if _, err := all.read(root); err == nil || !strings.Contains(err.Error(), "it has 2 fields") {
		t.Errorf("error %v", err)
	}
	if _, err := all.read(t.TempDir()); err == nil {
		t.Error("an empty /proc has a sum")
	}
}

// The kernel's numbers are right for a process that is known to have used the processor.
func TestTallyOfThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc")
	}
	proc := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // only this ends it
		_ = cmd.Wait()
	}()
	if err := os.Symlink(fmt.Sprint("/proc/", cmd.Process.Pid), fmt.Sprint(proc, "/", cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	var all tally
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		u, err := all.read(proc)
		if err != nil {
			t.Fatal(err)
		}
		if u.CPUNanos >= int64(100*time.Millisecond) && u.MemoryBytes > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a process that does nothing but work used %+v", u)
		}
	}
}
