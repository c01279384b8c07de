package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// lay writes files below a directory; a name that ends in / is a directory.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	otherMounts = "22 29 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n25 29 0:23 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"
	// A pod of cgroup v1, whose runtime mounts the pod's own directories: one for each hierarchy,
	// or cpu and cpuacct in one.
	firstOfPod = otherMounts +
		"1050 1045 0:26 /kubelet/kubepods/burstable/pod1/c1 /sys/fs/cgroup/cpu ro,nosuid,relatime - cgroup cgroup rw,cpu\n" +
		"1051 1045 0:27 /kubelet/kubepods/burstable/pod1/c1 /sys/fs/cgroup/cpuacct ro,nosuid,relatime - cgroup cgroup rw,cpuacct\n" +
		"1052 1045 0:28 /kubelet/kubepods/burstable/pod1/c1 /sys/fs/cgroup/memory ro,nosuid,relatime - cgroup cgroup rw,memory\n"
	firstTogether = otherMounts +
		"31 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 25 0:28 / /sys/fs/cgroup/memory rw,relatime shared:10 - cgroup cgroup rw,memory\n" +
		"33 25 0:29 / /sys/fs/cgroup/unified rw,relatime shared:11 - cgroup2 cgroup2 rw\n"
	second = otherMounts + "30 22 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n"
)

func TestFindGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		self, mounts string
		files        []string
		want         group
		wantErr      error
	}{
		"version 1, in a pod": {
			self:   "4:memory:/kubelet/kubepods/burstable/pod1/c1\n2:cpuacct:/kubelet/kubepods/burstable/pod1/c1\n1:cpu:/kubelet/kubepods/burstable/pod1/c1\n0::/\n",
			mounts: firstOfPod, want: group{1, "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpuacct", "sys/fs/cgroup/memory"},
		},
		"version 1, on a machine": {
			self: "4:memory:/user.slice\n2:cpu,cpuacct:/user.slice/one\n0::/user.slice\n", mounts: firstTogether,
			files: []string{"sys/fs/cgroup/cpu,cpuacct/user.slice/one/", "sys/fs/cgroup/memory/user.slice/"},
			want:  group{1, "sys/fs/cgroup/cpu,cpuacct/user.slice/one", "sys/fs/cgroup/cpu,cpuacct/user.slice/one", "sys/fs/cgroup/memory/user.slice"},
		},
		"version 1, that sees its own group as the root": {
			self: "4:memory:/\n2:cpu,cpuacct:/\n", mounts: firstTogether,
			want: group{1, "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/memory"},
		},
		"version 2, in a pod": {
			self: "0::/\n", mounts: second, files: []string{"sys/fs/cgroup/cpu.stat"},
			want: group{2, "sys/fs/cgroup", "sys/fs/cgroup", "sys/fs/cgroup"},
		},
		"version 2, on a machine": {
			self: "0::/user.slice/one\n", mounts: second, files: []string{"sys/fs/cgroup/cpu.stat", "sys/fs/cgroup/user.slice/one/cpu.stat"},
			want: group{2, "sys/fs/cgroup/user.slice/one", "sys/fs/cgroup/user.slice/one", "sys/fs/cgroup/user.slice/one"},
		},
		"none": {self: "0::/\n", mounts: otherMounts, wantErr: errNoGroup},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"proc/self/cgroup": tc.self, "proc/self/mountinfo": tc.mounts}
			for _, f := range tc.files {
				files[f] = ""
			}
			root := lay(t, files)
			got, err := findGroup(root)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error = %v, want %v", err, tc.wantErr)
			}
			for _, dir := range []*string{&got.cpu, &got.cpuacct, &got.memory} {
				*dir = strings.TrimPrefix(strings.TrimPrefix(*dir, root), "/")
			}
			if got != tc.want {
				t.Errorf("the group is %+v, want %+v", got, tc.want)
			}
		})
	}
}

// The two versions of control groups print this for the same container: a limit of 0.5 cores,
// throttled in 231 of 240 periods.
var (
	firstFiles = map[string]string{
		"cpu.stat":                  "nr_periods 240\nnr_throttled 231\nthrottled_time 21876543210\nnr_bursts 0\nburst_time 0\n",
		"cpu.cfs_quota_us":          "50000\n",
		"cpu.cfs_period_us":         "100000\n",
		"cpuacct.usage":             "12003456789\n",
		"memory.usage_in_bytes":     "104857600\n",
		"memory.max_usage_in_bytes": "209715200\n",
		"memory.limit_in_bytes":     "268435456\n",
		"memory.stat": "cache 41943040\nrss 62914560\ninactive_file 1\nactive_file 2\nhierarchical_memory_limit 9223372036854771712\ntotal_cache 41943040\n" +
			"total_inactive_file 20971520\ntotal_active_file 20971520\n",
	}
	secondFiles = map[string]string{
		"cpu.stat": "usage_usec 12003456\nuser_usec 11000000\nsystem_usec 1003456\nnice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods 240\nnr_throttled 231\n" +
			"throttled_usec 21876543\nnr_bursts 0\nburst_usec 0\n",
		"cpu.max":        "50000 100000\n",
		"memory.current": "104857600\n",
		"memory.peak":    "209715200\n",
		"memory.max":     "268435456\n",
		"memory.stat":    "anon 62914560\nfile 41943040\nkernel 1\ninactive_anon 62914560\nactive_anon 0\ninactive_file 20971520\nactive_file 20971520\n",
	}
	wantUsage = Usage{
		CPUNanos: 12003456789, QuotaNanos: 50e6, PeriodNanos: 100e6, Periods: 240, ThrottledPeriods: 231, ThrottledNanos: 21876543210,
		MemoryBytes: 80 << 20, PeakBytes: 200 << 20, LimitBytes: 256 << 20, CacheBytes: 40 << 20,
	}
)

func TestReadGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		version int
		files   map[string]string
		without string // file that does not exist
		with    map[string]string
		want    func(*Usage)
		wantErr string
	}{
		"version 1": {version: 1, files: firstFiles},
		"version 2": {version: 2, files: secondFiles, want: func(u *Usage) { u.CPUNanos, u.ThrottledNanos = 12003456000, 21876543000 }},
		"version 1 without a limit": {version: 1, files: firstFiles, with: map[string]string{"cpu.cfs_quota_us": "-1\n"},
			want: func(u *Usage) { u.QuotaNanos, u.PeriodNanos = 0, 0 }},
		"version 2 without a limit": {version: 2, files: secondFiles, with: map[string]string{"cpu.max": "max 100000\n"},
			want: func(u *Usage) {
				u.CPUNanos, u.ThrottledNanos, u.QuotaNanos, u.PeriodNanos = 12003456000, 21876543000, 0, 0
			}},
		"version 1 without a limit of memory": {version: 1, files: firstFiles, with: map[string]string{"memory.limit_in_bytes": "9223372036854771712\n"},
			want: func(u *Usage) { u.LimitBytes = 0 }},
		"version 2 without a limit of memory": {version: 2, files: secondFiles, with: map[string]string{"memory.max": "max\n"},
			want: func(u *Usage) { u.CPUNanos, u.ThrottledNanos, u.LimitBytes = 12003456000, 21876543000, 0 }},
		"version 2 before Linux 5.19": {version: 2, files: secondFiles, without: "memory.peak",
			want: func(u *Usage) { u.CPUNanos, u.ThrottledNanos, u.PeakBytes = 12003456000, 21876543000, 0 }},
		"version 2, the root": {version: 2, files: map[string]string{"cpu.stat": "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"},
			want: func(u *Usage) { *u = Usage{CPUNanos: 5000} }},
		"version 1, cut":       {version: 1, files: firstFiles, without: "cpuacct.usage", wantErr: "cpuacct.usage"},
		"version 1, nonsense":  {version: 1, files: firstFiles, with: map[string]string{"cpu.stat": "nr_periods many\n"}, wantErr: "cpu.stat: nr_periods"},
		"version 2, no number": {version: 2, files: secondFiles, with: map[string]string{"cpu.max": "50 x\n"}, wantErr: "cpu.max"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for file, content := range tc.files {
				if file != tc.without {
					files[file] = content
				}
			}
			for file, content := range tc.with {
				files[file] = content
			}
			dir := lay(t, files)
			got, err := group{tc.version, dir, dir, dir}.read()
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := wantUsage
			if tc.want != nil {
				tc.want(&want)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Usage{}, "AtMonotonicNanos")); diff != "" || got.AtMonotonicNanos == 0 {
				t.Errorf("at %d (-want +got):\n%s", got.AtMonotonicNanos, diff)
			}
		})
	}
}

// BenchmarkMeasure measures what a reading of this process's own group costs the launcher.
func BenchmarkMeasure(b *testing.B) {
	before := processorTime(b)
	for b.Loop() {
		if _, err := measure(); err != nil {
			b.Skip(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime that this process has used. A busy machine lengthens a benchmark's wall time, but
// not this time.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
