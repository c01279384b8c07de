package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// newLimit makes a control group with a limit of a tenth of a processor, in the version that this
// machine has. It returns a function that puts a process into it.
func newLimit(t *testing.T) (admit func(pid int)) {
	t.Helper()
	const root = "/sys/fs/cgroup"
	name := fmt.Sprintf("assay-test-%d", os.Getpid())
	set := func(path, value string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			t.Skipf("no control group can be made here: %v", err)
		}
	}
	var dirs []string
	add := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Skipf("no control group can be made here: %v", err)
		}
		dirs = append(dirs, dir)
		t.Cleanup(func() {
			// The processes in it have been killed, and the kernel may not have removed them yet.
			for deadline := time.Now().Add(5 * time.Second); os.Remove(dir) != nil; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(dir); err != nil || time.Now().After(deadline) {
					return
				}
			}
		})
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		set(filepath.Join(root, "cgroup.subtree_control"), "+cpu +memory")
		add(filepath.Join(root, name))
		set(filepath.Join(root, name, "cpu.max"), "10000 100000")
	} else {
		for _, controller := range []string{"cpu", "cpuacct", "memory"} {
			add(filepath.Join(root, controller, name))
		}
		set(filepath.Join(root, "cpu", name, "cpu.cfs_quota_us"), "10000")
	}
	return func(pid int) {
		for _, dir := range dirs {
			set(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
		}
	}
}

// Before the run, when asked, an agent reports the load of its machine, and its own containers'
// part of the load, again and again. Then it stops.
func TestTheLoadIsReportedUntilTheRun(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(`while :; do :; done`)}}
		d.Start, d.SampleLoad = true, true
	})
	first := c.await("says its load", func(r protocol.Report) bool { return r.Load != nil }).Load
	if first.CPUs != runtime.NumCPU() || first.Machine == "" || first.Seconds < 0.9 || first.BusyCores <= 0 || first.StolenCores < 0 {
		t.Errorf("load %+v", first)
	}
	c.await("says what its container uses", func(r protocol.Report) bool { return r.Load != nil && *r.Load != *first && r.Load.OwnCores > 0.01 })
	fourLoads := func() time.Duration {
		began, last, changes := time.Now(), protocol.Load{}, 0
		c.await("says four loads", func(r protocol.Report) bool {
			if r.Load != nil && *r.Load != last {
				last, changes = *r.Load, changes+1
			}
			return changes == 4
		})
		return time.Since(began)
	}
	quietly := fourLoads()
	c.direct(func(d *protocol.Directive) { d.AwaitsIdle = true })
	if awaited := fourLoads(); awaited > quietly*3/4 {
		t.Errorf("four loads took %v, and %v while the trial waits for them; want each reading then", quietly, awaited)
	}
	c.direct(func(d *protocol.Directive) {
		d.Run = &protocol.Run{ZeroUnixNanos: time.Now().Add(time.Second).UnixNano(), Windows: timeline.Windows{Measure: time.Second}}
	})
	c.await("says no more", func(r protocol.Report) bool { return r.Load == nil })
}

// A container that needs a processor and may use a tenth of one is reported as throttled. The
// container beside it is not.
func TestAThrottledContainerIsSeen(t *testing.T) {
	admit := newLimit(t)
	if err := throttled(t, admit); err != nil {
		t.Error(err)
	}
}

func throttled(t *testing.T, admit func(pid int)) error {
	t.Helper()
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	admit(p.launch("replica").Process.Pid)
	p.launch("helper")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(`while :; do :; done`)}, {Name: "helper", Command: shell(`exec sleep 1000`)}}
		d.Start = true
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
	c.direct(func(d *protocol.Directive) {
		d.Run = &protocol.Run{ZeroUnixNanos: time.Now().Add(1200 * time.Millisecond).UnixNano(),
			Windows: timeline.Windows{WarmUp: time.Second, Measure: 3 * time.Second}}
	})
	r := c.await("says what was used", func(r protocol.Report) bool { return r.Resources != nil }).Resources
	// The process is in the control group of this test, beside processes whose disks it may not
	// read.
	unmeasured := slices.DeleteFunc(r.Unmeasured, func(why string) bool { return strings.HasPrefix(why, "container helper: disks: ") })
	if len(r.Containers) != 2 || len(unmeasured) != 0 || r.Seconds < 2.9 || r.Seconds > 3.001 { // readings that came late are left out
		return fmt.Errorf("resources are %+v", r)
	}
	busy, idle := r.Containers[0], r.Containers[1]
	// The shell needs a whole processor, and gets at most its tenth of each period. On a busy
	// machine it gets less, and hence is not always at its limit.
	if busy.Name != "replica" || busy.LimitCores != 0.1 || busy.CPUMeanCores > 0.13 || busy.CPUMeanCores <= 0 {
		t.Errorf("the container with a limit: %+v", busy)
	}
	if idle.ThrottledShare != 0 || idle.LimitCores != 0 {
		t.Errorf("the container without one: %+v", idle)
	}
	if r.ThrottledShare != busy.ThrottledShare {
		t.Errorf("the pod is throttled in %v, its worst container in %v", r.ThrottledShare, busy.ThrottledShare)
	}
	// Both run beside other processes, such as this test. A shell that is throttled most of the
	// time waits.
	if busy.LateShare == nil || busy.Wakes < 5 || idle.LateShare == nil || idle.Wakes < 5 {
		t.Errorf("the canaries of a container that is held back and of one that is not: %+v, %+v", busy, idle)
	}
	if busy.WaitedSeconds == nil || *busy.WaitedSeconds <= 0 || idle.WaitedSeconds == nil || r.AgentMeanCores <= 0 || r.Node.Machine == "" {
		t.Errorf("busy %+v, idle %+v, the agent used %v cores of machine %q", busy, idle, r.AgentMeanCores, r.Node.Machine)
	}
	if r.Node.CPUs != runtime.NumCPU() || r.Node.BusyShare <= 0 || r.Node.StealShare < 0 || r.Node.SwitchesPerSecond <= 0 {
		t.Errorf("the node: %+v", r.Node)
	}
	s := r.Series
	if s == nil || s.IntervalMillis != 1000 || s.FirstMillis != -1000 || len(s.CPUMillicores) != 5 {
		return fmt.Errorf("over time: %+v", s)
	}
	if busy.ThrottledShare < 0.1 || busy.ThrottledSeconds < 0.05 || s.ThrottledPermille[1]+s.ThrottledPermille[2]+s.ThrottledPermille[3] < 300 || s.MemoryKiB[2] <= 0 {
		return fmt.Errorf("the container with a limit: %+v, over time: %+v", busy, s)
	}
	return nil
}

// The bytes that a container's processes write to a disk are counted, also after a process has
// ended. The sizes of volumes are known when the readings are over.
func TestDisksAndVolumesAreMeasured(t *testing.T) {
	admit := newLimit(t)
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	admit(p.launch("replica").Process.Pid)
	p.startAgent()
	dir := t.TempDir()
	const block = 64 << 10
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(`while dd if=/dev/zero of=` + dir + `/f bs=64k count=1 conv=fsync 2>/dev/null; do echo >>` + dir + `/times; sleep 0.2; done`)}}
		d.Volumes = []protocol.Volume{{Name: "data", Path: dir}, {Name: "fast", Path: dir, Memory: true}, {Name: "gone", Path: dir + "/nothing"}}
		d.Start = true
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
	c.direct(func(d *protocol.Directive) {
		d.Run = &protocol.Run{ZeroUnixNanos: time.Now().Add(1200 * time.Millisecond).UnixNano(), Windows: timeline.Windows{WarmUp: time.Second, Measure: 4 * time.Second}}
	})
	r := c.await("says what was used", func(r protocol.Report) bool { return r.Resources != nil }).Resources
	if r.DiskReadBytes == nil || *r.DiskWrittenBytes < block || len(r.Series.DiskWrittenBytes) != len(r.Series.CPUMillicores) {
		t.Errorf("disks: %+v", r)
	}
	if len(r.Volumes) != 2 || r.Volumes[0].Name != "data" || r.Volumes[0].ContentBytes < block || r.Volumes[0].Bytes < block || r.Volumes[0].Files != 2 || r.Volumes[1].Unmeasured == "" {
		t.Errorf("volumes: %+v", r.Volumes)
	}
	if r.PageCacheMaxBytes < block {
		t.Errorf("a page cache of %d bytes, in which a file of %d is", r.PageCacheMaxBytes, block)
	}
}

// The run of a script is over before its window is. The agent stops measuring then, and reports at
// once.
func TestMeasuringEndsWithTheScript(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("machine")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers, d.Start = []protocol.Container{{Name: "machine", Command: shell(`exec sleep 1000`)}}, true
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
	run := protocol.Run{ZeroUnixNanos: time.Now().Add(time.Second).UnixNano(), Windows: timeline.Windows{Measure: time.Hour}}
	c.direct(func(d *protocol.Directive) { d.Run = &run })
	time.Sleep(3 * time.Second) // the agent may read a second late when the run begins
	ended := run
	ended.Ended = time.Second
	c.direct(func(d *protocol.Directive) { d.Run = &ended })
	r := c.await("says what was used", func(r protocol.Report) bool { return r.Resources != nil && r.ResetsCounted }).Resources
	if r.Seconds < 1 || r.Seconds > 30 {
		t.Errorf("%v seconds were measured of a run of one", r.Seconds)
	}
}

// Some clients report numbers of their whole run. Then the report has the use of the whole run,
// from before the window until after it, instead of the window. A client that must end with the run
// reports its end after the last reading is due.
func TestWhatIsMeasuredOfAWholeRun(t *testing.T) {
	const warmUp = 3 * time.Second
	for name, tc := range map[string]struct {
		after         timeline.Windows // what follows the warm-up
		ended, told   time.Duration    // after t = 0: the end, and when the agent gets it
		atLeast, most float64          // seconds
	}{
		"that ends before its drain does": {timeline.Windows{Measure: time.Second, Drain: time.Minute}, 4 * time.Second, 4 * time.Second, 5.6, 7},
		"that ends as planned":            {timeline.Windows{Measure: time.Second, CoolDown: time.Second}, 2 * time.Second, 4 * time.Second, 4, 5},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeCoordinator(t, "127.0.0.1:0")
			p := newPod(t, c)
			p.launch("replica")
			p.startAgent()
			c.direct(func(d *protocol.Directive) {
				d.Containers, d.Start = []protocol.Container{{Name: "replica", Command: shell(`exec sleep 1000`)}}, true
			})
			c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
			run := protocol.Run{ZeroUnixNanos: time.Now().Add(4 * time.Second).UnixNano(), Windows: tc.after, ByParts: true, Whole: true}
			run.WarmUp = warmUp
			c.direct(func(d *protocol.Directive) { d.Run = &run })
			time.Sleep(time.Until(time.Unix(0, run.ZeroUnixNanos).Add(tc.told)))
			ended := run
			ended.Ended, ended.Measured = tc.ended, []timeline.Span{{From: -warmUp, To: tc.ended}}
			c.direct(func(d *protocol.Directive) { d.Run = &ended })
			r := c.await("says what was used", func(r protocol.Report) bool { return r.Resources != nil })
			if used := r.Resources; used.Seconds < tc.atLeast || used.Seconds > tc.most || used.Series == nil || len(r.Measured) > 0 {
				t.Errorf("%v seconds were measured, want %v to %v, and %d parts: %+v", used.Seconds, tc.atLeast, tc.most, len(r.Measured), used)
			}
		})
	}
}
