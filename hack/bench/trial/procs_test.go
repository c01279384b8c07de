package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stat is a line of /proc/<pid>/stat.
func stat(name string, parent, user, system string) string {
	return "7 (" + name + ") S " + parent + " 7 7 0 -1 4194560 1 2 3 4 " + user + " " + system + " 900 800 20 0 1 0 100 1000 10"
}

func TestParseStat(t *testing.T) {
	for name, tc := range map[string]struct {
		line  string
		want  process
		fails bool
	}{
		"own time, and the children's":   {stat("launcher", "1", "12", "30"), process{"launcher", 1, 420 * time.Millisecond, 17 * time.Second}, false},
		"a name like the rest of a line": {stat("a) S 9 (b", "1", "1", "0"), process{"a) S 9 (b", 1, 10 * time.Millisecond, 17 * time.Second}, false},
		"no name":                        {"7 launcher S 1", process{}, true},
		"half a line":                    {"7 (launcher) S 1 7", process{}, true},
		"no number":                      {stat("launcher", "1", "x", "0"), process{}, true},
	} {
		got, err := parseStat(tc.line)
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, tc.want)
		}
	}
}

func TestWhoIsALauncherOrOfTheKernel(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		"proc/2/stat": stat("kthreadd", "0", "1", "1"), "proc/3/stat": stat("kworker/0:1", "2", "0", "100"), "proc/4/stat": stat("jbd2/x", "2", "0", "50"),
		"proc/70/stat": stat("launcher", "9", "10", "0"), "proc/71/stat": stat("basil", "70", "900", "0"), "proc/uptime": "1",
		"cg/cgroup.procs": "70\n71\n72\n", "odd/cgroup.procs": "x\n",
	})
	if got, err := kernelThreads(dir + "/proc"); err != nil || got != 1500*time.Millisecond {
		t.Errorf("the kernel's threads used %v (%v), want 1.5s", got, err)
	}
	got, err := launchers(dir+"/proc", dir+"/cg") // 72 has ended
	if diff := cmp.Diff(map[int]time.Duration{70: 100 * time.Millisecond}, got); diff != "" || err != nil {
		t.Errorf("launchers (%v) (-want +got):\n%s", err, diff)
	}
	if got, err := launchers(dir+"/proc", dir+"/gone"); len(got) != 0 || err != nil {
		t.Errorf("of a cgroup that is gone: %v, %v", got, err)
	}
	if _, err := launchers(dir+"/proc", dir+"/odd"); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("of a list that cannot be read: %v", err)
	}
}

func TestServicesOfANode(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		"proc/1/stat": stat("systemd", "0", "10", "0"), "proc/5/stat": stat("kubelet", "1", "20", "0"), "proc/6/stat": stat("containerd", "1", "90", "0"),
		"proc/7/stat": stat("systemd-run", "5", "30", "0"), "proc/8/stat": stat("systemd-journal", "1", "40", "0"), "node/cgroup.procs": "1\n5\n6\n7\n8\n",
	})
	want := map[string]map[int]time.Duration{
		rowKubelet: {5: 17*time.Second + 200*time.Millisecond}, rowNodes: {1: 100 * time.Millisecond, 8: 400 * time.Millisecond},
	}
	got, err := services(dir+"/proc", dir+"/node")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("services (%v) (-want +got):\n%s", err, diff)
	}
}

func TestProcessorTimes(t *testing.T) {
	for name, tc := range map[string]struct {
		stat        string
		all, stolen time.Duration
		wrong       string
	}{
		"with guests":         {stat: "cpu  100 20 30 400 5 6 7 32 90 9\ncpu0 1 2 3\n", all: 6 * time.Second, stolen: 320 * time.Millisecond},
		"without guests":      {stat: "cpu 0 0 0 10 0 0 0 0\n", all: 100 * time.Millisecond},
		"of an old kernel":    {stat: "cpu 1 2 3 4\n", wrong: "want the times of all processors"},
		"of no kernel at all": {stat: "cpu 1 2 3 4 5 6 7 eight\n", wrong: "eight"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(tc.stat), 0o600); err != nil {
				t.Fatal(err)
			}
			all, stolen, err := processorTimes(dir)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil || all != tc.all || stolen != tc.stolen {
				t.Errorf("%v, of which %v stolen, %v; want %v and %v", all, stolen, err, tc.all, tc.stolen)
			}
		})
	}
}
