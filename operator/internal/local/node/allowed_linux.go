package node

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// neededCapabilities are the capabilities that this process needs, with the reason.
var neededCapabilities = []struct{ name, why string }{
	{"SYS_ADMIN", "to make namespaces of the pods and to mount their file systems"},
	{"NET_ADMIN", "to connect the pods by a bridge, and to shape their links"},
	{"SETUID", "to run containers as users of their own"},
	{"SETGID", "to run containers as groups of their own"},
	{"CHOWN", "to unpack images, whose files have owners"},
	{"DAC_OVERRIDE", "to remove what containers of other users have written"},
	{"KILL", "to end processes of other users"},
}

// allowed lists the rights that pods need and the kernel denies to this process. Nil: none. It does
// not ask whether the process is root. Root of a user namespace may lack some, and an ordinary
// process may have them.
func allowed(own map[string]bool, cgroups []string, folder string, writable func(dir string) bool) error {
	var lacks []string
	for _, c := range neededCapabilities {
		if !own[c.name] {
			lacks = append(lacks, fmt.Sprintf("the capability CAP_%s, %s", c.name, c.why))
		}
	}
	for _, dir := range cgroups {
		if !writable(dir) {
			lacks = append(lacks, fmt.Sprintf("a writable %s, for a control group of each container", dir))
		}
	}
	if dir := existing(folder); !writable(dir) {
		lacks = append(lacks, fmt.Sprintf("a writable %s, for %s, where the pods' files are", dir, folder))
	}
	if len(lacks) == 0 {
		return nil
	}
	return errors.New("the kernel does not let this user make pods here. Run the command as root. What is missing:\n  " + strings.Join(lacks, "\n  "))
}

// Refusal says why this process cannot make pods. Nil: it can.
func Refusal(folder string) error {
	own, err := ownCapabilities()
	if err != nil {
		return err
	}
	return allowed(own, cgroupRoots(), folder, mayWrite)
}

// OwnCapabilities returns the capabilities of this process, sorted, without the prefix CAP_.
func OwnCapabilities() ([]string, error) {
	own, err := ownCapabilities()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(own, func(_ string, has bool) bool { return !has })
	return slices.Sorted(maps.Keys(own)), nil
}

// cgroupRoots returns the folders in which the machine makes control groups.
func (m *Machine) cgroupRoots() []string {
	if m.Rootless {
		return nil
	}
	return cgroupRoots()
}

// cgroupRoots returns the folders for control groups: one folder with cgroup v2, one for each
// controller with v1.
func cgroupRoots() []string {
	const root = "/sys/fs/cgroup"
	if unified() {
		return []string{root}
	}
	var roots []string
	for _, controller := range []string{"cpu", "memory", "freezer"} {
		if dir := filepath.Join(root, controller); exists(dir) {
			roots = append(roots, dir)
		}
	}
	return roots
}

// unified reports whether the kernel has only cgroup v2.
func unified() bool {
	var fs unix.Statfs_t
	return unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// existing returns a folder or, if it does not exist, the nearest folder above it that exists.
func existing(dir string) string {
	for !exists(dir) && dir != "/" {
		dir = filepath.Dir(dir)
	}
	return dir
}

// mayWrite reports whether this process may make files in a folder.
func mayWrite(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
}
