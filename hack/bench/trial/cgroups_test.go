package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var idOf = func(c string) string { return strings.Repeat(c, 64) }

func TestFindHierarchy(t *testing.T) {
	v1 := "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
	v2 := "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
	for name, tc := range map[string]struct {
		mounts string
		want   hierarchy
		fails  bool
	}{
		"v1":            {"tmpfs /tmp tmpfs rw 0 0\n" + v1, hierarchy{root: "/sys/fs/cgroup/cpu,cpuacct"}, false},
		"v2":            {v2, hierarchy{root: "/sys/fs/cgroup/unified", unified: true}, false},
		"both":          {v2 + v1, hierarchy{root: "/sys/fs/cgroup/cpu,cpuacct"}, false},
		"v1 without it": {"cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n", hierarchy{}, true},
		"nothing":       {"", hierarchy{}, true},
	} {
		got, err := findHierarchy(tc.mounts)
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, tc.want)
		}
	}
}

func TestNodeDir(t *testing.T) {
	id := idOf("a")
	v1, v2 := hierarchy{root: "/cg"}, hierarchy{root: "/cg", unified: true}
	for name, tc := range map[string]struct {
		hierarchy hierarchy
		text      string
		want      string
	}{
		"v1, systemd has moved itself": {v1, "9:memory:/docker/" + id + "/x\n2:cpu,cpuacct:/docker/" + id + "/init.scope\n0::/\n", "/cg/docker/" + id},
		"v2 of docker by cgroupfs":     {v2, "0::/docker/" + id + "/init.scope\n", "/cg/docker/" + id},
		"v2 of docker by systemd":      {v2, "0::/system.slice/docker-" + id + ".scope/init.scope\n", "/cg/system.slice/docker-" + id + ".scope"},
		"another container":            {v1, "2:cpuacct:/docker/" + idOf("b") + "\n", ""},
		"v2 where v1 is asked for":     {v1, "0::/docker/" + id + "\n", ""},
	} {
		got, err := tc.hierarchy.nodeDir(tc.text, id)
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s: %q (%v), want %q", name, got, err, tc.want)
		}
	}
}

// tree writes files below a directory.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		"v1/cpuacct.usage": "1500000000\n", "v2/cpu.stat": "usage_usec 2500000\nuser_usec 1\n", "odd/cpu.stat": "user_usec 1\n", "odd/cpuacct.usage": "much\n",
	})
	for name, tc := range map[string]struct {
		unified bool
		dir     string
		want    time.Duration
		fails   bool
	}{
		"v1":               {false, "v1", 1500 * time.Millisecond, false},
		"v2":               {true, "v2", 2500 * time.Millisecond, false},
		"v1 of v2's":       {false, "v2", 0, true},
		"v2 without a sum": {true, "odd", 0, true},
		"v1, no number":    {false, "odd", 0, true},
	} {
		got, err := hierarchy{root: dir, unified: tc.unified}.usage(filepath.Join(dir, tc.dir))
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %v (%v), want %v", name, got, err, tc.want)
		}
	}
}

func TestReadTellsTheCgroupsOfANodeApart(t *testing.T) {
	node := t.TempDir()
	sandbox, main := idOf("1"), idOf("2")
	pod := "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podx.slice/"
	plain := "kubelet/kubepods/burstable/podx/"
	tree(t, node, map[string]string{
		"cpuacct.usage":                                               "100",
		"system.slice/cpuacct.usage":                                  "40",
		"system.slice/containerd.service/cpuacct.usage":               "30",
		"system.slice/containerd.service/shim/cpuacct.usage":          "5",
		"system.slice/systemd-journald.service/cpuacct.usage":         "4",
		"kubelet.slice/kubelet.service/cpuacct.usage":                 "20",
		"kubelet.slice/kubelet-kubepods.slice/cpuacct.usage":          "25",
		pod + "cpuacct.usage":                                         "24",
		pod + "cri-containerd-" + sandbox + ".scope/cpuacct.usage":    "1",
		pod + "cri-containerd-" + main + ".scope/cpuacct.usage":       "22",
		pod + "cri-containerd-" + main + ".scope/inner/cpuacct.usage": "7",
		"kubelet/kubepods/cpuacct.usage":                              "9",
		plain + main + "/cpuacct.usage":                               "8",
		plain + "cpuacct.usage":                                       "8",
	})
	read, err := hierarchy{root: node}.read(node)
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Kind kind
		ID   string
		Used time.Duration
	}
	got := map[string]seen{}
	for _, c := range read {
		got[strings.TrimPrefix(c.path, node)] = seen{c.kind, c.id, c.usage}
	}
	want := map[string]seen{
		"":                                      {whole, "", 100},
		"/system.slice/containerd.service":      {engine, "", 30},
		"/kubelet.slice/kubelet.service":        {kubelet, "", 20},
		"/kubelet.slice/kubelet-kubepods.slice": {pods, "", 25},
		"/" + pod + "cri-containerd-" + sandbox + ".scope": {container, sandbox, 1},
		"/" + pod + "cri-containerd-" + main + ".scope":    {container, main, 22},
		"/kubelet/kubepods": {pods, "", 9},
		"/" + plain + main:  {container, main, 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the cgroups (-want +got):\n%s", diff)
	}
	if _, err := (hierarchy{root: node}).read(node + "/gone"); err == nil {
		t.Error("a node that is not there was read")
	}
}
