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

// sweepTimeout is how long processes may take to end that were killed.
const sweepTimeout = 10 * time.Second

// sweep removes all that a process has left which was killed. The caller holds the lock of the
// machine.
func (m *Machine) sweep(ctx context.Context, program string) error {
	if m.Rootless {
		return sweepFiles(ctx, m.Dir)
	}
	return sweep(ctx, program, m.Dir)
}

// sweepFiles removes the mounts of this process and the files of all. Processes of an earlier run
// end with it. They may still write for a moment, and their mounts end with them.
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

// sweep removes containers, control groups, network namespaces, mounts and files. Everything of
// ours is under one folder, or under one control group in each hierarchy.
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
		// The runtime does not know what was left half made; its files go with the folder.
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

// groups are our control groups, the innermost first.
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

// processes of our control groups.
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

// killGroups ends all processes in our control groups, frozen ones too.
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
			_ = os.WriteFile(filepath.Join(g, "freezer.state"), []byte("THAWED"), 0) // where there is one
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

// removeGroups removes our control groups, or those of one container.
func removeGroups(id string) error {
	for _, g := range groups() {
		if id != "" && filepath.Base(g) != id {
			continue
		}
		// The kernel counts a process to its group for a moment after it has told about its end.
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

// unmountBelow removes all mounts in a folder, the last made first.
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
