package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTimeout is how long killed processes may take to end.
const sweepTimeout = 10 * time.Second

// sweep removes all remains of a killed process. The caller holds the lock of the machine.
func (m *Machine) sweep(ctx context.Context, program string) error {
	if m.Rootless {
		return sweepFiles(ctx, m.Dir)
	}
	return sweep(ctx, program, m.Dir)
}

// sweepFiles removes the mounts of this process, and all files. Pods of an earlier process ended
// with it. They may still write for a moment. Their mounts are gone with them.
func sweepFiles(ctx context.Context, dir string) error {
	if err := unmountBelow(dir); err != nil {
		return err
	}
	err := os.RemoveAll(dir)
	for waited := time.Duration(0); err != nil && waited < sweepTimeout && pause(ctx, 10*time.Millisecond); waited += 10 * time.Millisecond {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove what was left: %w", err)
	}
	return nil
}

// sweep removes containers, control groups, network namespaces, mounts and files. All that Assay
// makes is in one folder, or in one control group of each hierarchy.
func sweep(ctx context.Context, program, dir string) error {
	if err := killGroups(ctx); err != nil {
		return err
	}
	state := filepath.Join(dir, "runtime")
	containers, err := os.ReadDir(state)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look for what was left: %w", err)
	}
	for _, c := range containers {
		// The runtime does not know half-made containers. Their files are removed with the folder.
		_ = exec.CommandContext(ctx, program, "--root", state, "delete", "--force", c.Name()).Run() // #nosec G204 -- the runtime that the user chose
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove what was left: %w", err)
	}
	return removeGroups("")
}

// groups returns Assay's control groups, the innermost first.
func groups() (all []string) {
	parents, err := filepath.Glob(filepath.Join("/sys/fs/cgroup/*", cgroupParent))
	if err != nil {
		return nil
	}
	for _, parent := range append(parents, filepath.Join("/sys/fs/cgroup", cgroupParent)) {
		inner, err := os.ReadDir(parent)
		if err != nil {
			continue
		}
		for _, d := range inner {
			if d.IsDir() {
				all = append(all, filepath.Join(parent, d.Name()))
			}
		}
		all = append(all, parent)
	}
	return all
}

// processes returns the processes in Assay's control groups.
func processes() (pids []int) {
	for _, g := range groups() {
		text, err := os.ReadFile(filepath.Join(g, "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// killGroups ends all processes in Assay's control groups, frozen ones too.
func killGroups(ctx context.Context) error {
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		pids := processes()
		if len(pids) == 0 {
			return nil
		}
		if waited > sweepTimeout {
			return fmt.Errorf("processes %v of an earlier run do not end", pids)
		}
		for _, g := range groups() {
			_ = os.WriteFile(filepath.Join(g, "freezer.state"), []byte("THAWED"), 0) // only cgroup v1 has this file
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("end process %d of an earlier run: %w", pid, err)
			}
		}
		if !pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// removeGroups removes Assay's control groups, or those of one container.
func removeGroups(id string) error {
	for _, g := range groups() {
		if id != "" && filepath.Base(g) != id {
			continue
		}
		// The kernel counts a process to its group for a moment after reporting its end.
		err := unix.Rmdir(g)
		for tries := 0; errors.Is(err, unix.EBUSY) && tries < 100; tries++ {
			time.Sleep(time.Millisecond)
			err = unix.Rmdir(g)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove control group %s: %w", g, err)
		}
	}
	return nil
}

// unmountBelow removes all mounts in a folder, the newest first.
func unmountBelow(dir string) error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	var points []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	for _, at := range points {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", at, err)
		}
	}
	return nil
}
