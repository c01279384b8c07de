package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In a group without real-time runtime, chrt fails with "operation not permitted", even for root.
func TestAGroupWithoutRealTimeIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, lines, runtime string
		group                string // the group without real-time runtime; empty: none
	}{
		"no time":                        {"cgroup", "3:cpu,cpuacct:/jobs/a\n2:cpuset:/b", "0", "/jobs/a"},
		"no time, at the root":           {"cgroup", "3:cpuset:/b\n1:cpu:/", "0", "/"},
		"time":                           {"cgroup", "1:cpu:/jobs/a", "950000", ""},
		"a kernel without the limit":     {"cgroup", "1:cpu:/jobs/a", "", ""},
		"groups of version 2":            {"cgroup2", "0::/jobs/a", "0", ""},
		"a group of the processors' set": {"cgroup", "2:cpuset:/jobs/a", "0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root := filepath.Join(dir, "cgroup")
			files := map[string]string{
				filepath.Join(dir, "mounts"):         "tmpfs " + dir + " tmpfs rw 0 0\ncgroup " + root + " " + tc.kind + " rw,relatime,cpu,cpuacct 0 0\n",
				filepath.Join(dir, "self", "cgroup"): tc.lines + "\n",
			}
			if tc.runtime != "" {
				files[filepath.Join(root, "cpu.rt_runtime_us")] = tc.runtime + "\n"
				files[filepath.Join(root, "jobs/a/cpu.rt_runtime_us")] = tc.runtime + "\n"
			}
			for path, text := range files {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command("bash", "-c", `set -euo pipefail; . ./realtime.sh; no_real_time "$0"`, dir).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := ""
			if tc.group != "" {
				file := filepath.Join(root, tc.group, "cpu.rt_runtime_us")
				want = "the control group " + tc.group + " has no time for programs of real-time priority: " + file + " is 0.\n" +
					"Move this shell to a group that has some: echo $$ >" + root + "/cgroup.procs\n" +
					"Or give it to this group, after the groups above it: echo 900000 >" + file
			}
			if got := strings.TrimSpace(string(out)); got != want {
				t.Errorf("it prints\n%s\nwant\n%s", got, want)
			}
		})
	}
}
