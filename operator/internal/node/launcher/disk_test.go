package launcher

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A device mapper's device 253:0 on the disk 8:0, and a loop device, whose backing file is there,
// too.
var stackedDevices = map[string]string{
	"sys/dev/block/253:0/slaves/sda/": "", "sys/dev/block/8:0/queue/": "", "sys/dev/block/7:3/loop/backing_file": "/data/image\n",
}

func TestDisks(t *testing.T) {
	for name, tc := range map[string]struct {
		version int
		files   map[string]string
		want    Usage
		wantErr string
	}{
		"version 2: devices that pass on to others do not count": {version: 2, files: map[string]string{
			"group/io.stat": "8:0 rbytes=180224 wbytes=4096 rios=3 wios=1 dbytes=9 dios=9\n253:0 rbytes=180224 wbytes=4096\n7:3 rbytes=512 wbytes=512\n259:1 rbytes=1 wbytes=2\n",
		}, want: Usage{DiskReadBytes: 180225, DiskWrittenBytes: 4098, DiskFrom: DiskFromGroup}},
		"version 2: nothing was read or written": {version: 2, files: map[string]string{"group/io.stat": ""}, want: Usage{DiskFrom: DiskFromGroup}},
		"version 2: nonsense":                    {version: 2, files: map[string]string{"group/io.stat": "8:0 rbytes=x\n"}, wantErr: "io.stat: rbytes"},
		"version 2 without the controller": {version: 2, files: map[string]string{
			"group/cgroup.procs": "1\n", "proc/1/io": "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n",
		}, want: Usage{DiskReadBytes: 4096, DiskWrittenBytes: 8192, DiskFrom: DiskFromProcesses}},
		"version 1: processes, one of which has ended": {version: 1, files: map[string]string{
			"group/cgroup.procs": "1\n7\n9\n", "proc/1/io": "read_bytes: 1\nwrite_bytes: 2\n", "proc/7/io": "read_bytes: 10\nwrite_bytes: 20\n",
		}, want: Usage{DiskReadBytes: 11, DiskWrittenBytes: 22, DiskFrom: DiskFromProcesses}},
		"version 1: a kernel that does not count": {version: 1, files: map[string]string{"group/cgroup.procs": "1\n", "proc/1/io": "rchar: 9\n"}, wantErr: errNoDisk.Error()},
		"no control group where there was one":    {version: 1, wantErr: "find the container's processes"},
		"version 1: a process that its parent has not waited for": {version: 1, files: map[string]string{
			"group/cgroup.procs": "1\n7\n", "proc/1/io": "read_bytes: 1\nwrite_bytes: 2\n", "proc/7/io/unreadable": "", "proc/7/stat": "7 (sh) (x) Z 1 7 7",
		}, want: Usage{DiskReadBytes: 1, DiskWrittenBytes: 2, DiskFrom: DiskFromProcesses}},
		"version 1: a process that lives and tells nothing": {version: 1, files: map[string]string{
			"group/cgroup.procs": "1\n7\n", "proc/1/io": "read_bytes: 1\nwrite_bytes: 2\n", "proc/7/io/unreadable": "", "proc/7/stat": "7 (sh) S 1 7 7",
		}, wantErr: "the disk account of process 7"},
		"never a control group: all processes": {files: map[string]string{
			"proc/1/io": "read_bytes: 1\nwrite_bytes: 2\n", "proc/7/io": "read_bytes: 10\nwrite_bytes: 20\n", "proc/self/io": "read_bytes: 5\n",
		}, want: Usage{DiskReadBytes: 11, DiskWrittenBytes: 22, DiskFrom: DiskFromProcesses}},
	} {
		t.Run(name, func(t *testing.T) {
			root := lay(t, stackedDevices)
			for file, content := range tc.files {
				write(t, root, file, content)
			}
			var d disks
			var got Usage
			g := group{}
			if dir := filepath.Join(root, "group"); tc.version > 0 {
				g = group{tc.version, dir, dir, dir}
			}
			err := d.measure(root, g, &got)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

// Between the end of a process and its parent's wait, no file of the kernel has the bytes that the
// process read and wrote. The counters keep their values meanwhile, and add these bytes once
// afterwards.
func TestDisksOfAProcessThatEnds(t *testing.T) {
	root := lay(t, map[string]string{
		"group/cgroup.procs": "1\n7\n", "proc/1/io": "read_bytes: 1\nwrite_bytes: 2\n", "proc/7/io": "read_bytes: 10\nwrite_bytes: 20\n",
	})
	dir := filepath.Join(root, "group")
	var d disks
	for i, want := range []int64{22, 22, 27} {
		switch i {
		case 1:
			if err := os.RemoveAll(filepath.Join(root, "proc/7")); err != nil {
				t.Fatal(err)
			}
		case 2:
			write(t, root, "proc/1/io", "read_bytes: 11\nwrite_bytes: 27\n")
		}
		var u Usage
		if err := d.measure(root, group{1, dir, dir, dir}, &u); err != nil || u.DiskWrittenBytes != want {
			t.Errorf("reading %d: %d bytes, %v; want %d", i, u.DiskWrittenBytes, err, want)
		}
	}
}

// When a process has ended, and its parent has not waited for it, only root may read its account. A
// launcher that was not root then reported that its container's disks were unknown.
func TestDisksBeforeAProcessIsReaped(t *testing.T) {
	const user = 65532
	child := exec.Command("/bin/sh", "-c", "sleep 0.01 & exec sleep 1000")
	root := os.Getuid() == 0
	if root {
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, NoSetGroups: true}}
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	ended := 0
	for deadline := time.Now().Add(time.Minute); ended == 0; time.Sleep(10 * time.Millisecond) {
		for _, pid := range descendants(child.Process.Pid) {
			if awaited("/proc", strconv.Itoa(pid)) {
				ended = pid
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("no process ended and was left")
		}
	}
	dir, err := os.MkdirTemp("", "group")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	write(t, dir, "cgroup.procs", strconv.Itoa(child.Process.Pid)+"\n"+strconv.Itoa(ended)+"\n")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		err, own error
	}
	done := make(chan outcome)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var o outcome
		if root {
			o.own = unix.Setfsgid(user)
			if err := unix.Setfsuid(user); o.own == nil {
				o.own = err
			}
		}
		if o.own == nil {
			if _, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(ended), "io")); err == nil {
				t.Log("this kernel lets anyone read it")
			}
			_, _, o.err = ofProcesses("/proc", dir)
		}
		done <- o
	}()
	if o := <-done; o.own != nil || o.err != nil {
		t.Errorf("the accounts: %v; to be another user: %v", o.err, o.own)
	}
}
