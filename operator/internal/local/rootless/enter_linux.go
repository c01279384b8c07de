package rootless

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ends is a file descriptor of the process in the namespace. Through it the process learns that its
// users are mapped, and later that its parent has died.
const ends = 3

// machine has the facts on which the namespace depends. Tests make their own.
type machine struct {
	uid, gid  int
	name      string
	read      func(path string) ([]byte, error)
	installed func(program string) bool
}

func thisMachine() machine {
	m := machine{uid: os.Getuid(), gid: os.Getgid(), read: os.ReadFile, installed: func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}}
	m.name = strconv.Itoa(m.uid)
	if u, err := user.LookupId(m.name); err == nil {
		m.name = u.Username
	}
	return m
}

// maps are the files with the ranges of users and groups, and the programs that apply them.
var maps = []struct{ file, program, option, what string }{
	{"/etc/subuid", "newuidmap", "--add-subuids", "users"},
	{"/etc/subgid", "newgidmap", "--add-subgids", "groups"},
}

// switches are files of the kernel that may deny user namespaces to ordinary users, and the value
// that denies them.
var switches = []struct{ file, denies, allow string }{
	{"/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile of AppArmor for this program"},
}

// lacks lists the steps that root must take once before the user can make pods. It also returns the
// arguments of the programs that map users and groups.
func (m machine) lacks() (list []string, args [2][]string) {
	for i, is := range maps {
		if !m.installed(is.program) {
			list = append(list, fmt.Sprintf("the program %s: install the package uidmap", is.program))
		}
		text, _ := m.read(is.file) // without the file, the user has no range
		own := uint32(m.uid)
		if i == 1 {
			own = uint32(m.gid)
		}
		spans, err := spansOf(strings.NewReader(string(text)), m.name, strconv.Itoa(m.uid))
		if err == nil {
			args[i], err = mapping(own, spans)
		}
		if err != nil {
			list = append(list, fmt.Sprintf("%d %s of %s in %s; there are %v: usermod %s 1000000000-1000065535 %s, or any range that is free",
				Users-1, is.what, m.name, is.file, err, is.option, m.name))
		}
	}
	for _, s := range switches {
		if text, err := m.read(s.file); err == nil && strings.TrimSpace(string(text)) == s.denies {
			list = append(list, fmt.Sprintf("user namespaces, which %s=%s denies: %s", strings.ReplaceAll(strings.TrimPrefix(s.file, "/proc/sys/"), "/", "."), s.denies, s.allow))
		}
	}
	return list, args
}

// Lacking lists the steps that root must take before an ordinary user can make pods.
type Lacking struct{ List []string }

func (l *Lacking) Error() string {
	return "this user can make no pods yet. Root must set up these once, or run the command:\n  " + strings.Join(l.List, "\n  ")
}

// Run runs the command again, in its own namespaces, with the streams of this process. When the
// context ends, Run interrupts the command. It returns the command's exit code.
func Run(ctx context.Context, arguments, environment []string) (code int, err error) {
	list, args := thisMachine().lacks()
	if len(list) > 0 {
		return 0, &Lacking{list}
	}
	reads, says, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("speak to the user namespace: %w", err)
	}
	defer says.Close()                    // closing it also ends the command, if it still runs
	cmd := exec.Command("/proc/self/exe") // #nosec G204 -- this program; the context must not kill it
	cmd.Args, cmd.Env, cmd.ExtraFiles = arguments, slices.Concat(environment, []string{Variable + "=" + Waiting}), []*os.File{reads}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC}
	err = cmd.Start()
	_ = reads.Close() // only the child uses it
	if err != nil {
		return 0, fmt.Errorf("make a user namespace: %w; run the command as root, or have the kernel allow them", err)
	}
	for i, is := range maps {
		out, err := exec.CommandContext(ctx, is.program, append([]string{strconv.Itoa(cmd.Process.Pid)}, args[i]...)...).CombinedOutput() // #nosec G204 -- of the package uidmap
		if err != nil {
			_ = cmd.Process.Kill() // the child still waits, and has done nothing
			_ = cmd.Wait()
			return 0, fmt.Errorf("map the %s of the user namespace: %w: %s", is.what, err, strings.TrimSpace(string(out)))
		}
	}
	if _, err := says.Write([]byte{'m'}); err != nil {
		return 0, fmt.Errorf("speak to the user namespace: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) }) // the command may have ended
	defer stop()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("run in the user namespace: %w", err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// Continue runs a step of a command that Run started. The first step returns only if it fails. exit
// ends the process when its parent has died.
func Continue(step string, arguments, environment []string, exit func(code int)) error {
	switch step {
	case Waiting:
		return become(arguments, environment)
	case Entered:
		return settle(exit)
	}
	return fmt.Errorf("%s is %q, and only this program sets it", Variable, step)
}

// become makes the process root of the namespace. The kernel gives its capabilities to a program
// that root executes.
func become(arguments, environment []string) error {
	if n, err := hear(); err != nil || n == 0 {
		return fmt.Errorf("wait for the users of the namespace: %w", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	environment = slices.DeleteFunc(environment, func(e string) bool { return strings.HasPrefix(e, Variable+"=") })
	return fmt.Errorf("become root of the user namespace: %w", syscall.Exec("/proc/self/exe", arguments, append(environment, Variable+"="+Entered)))
}

// hear waits for a byte of the parent. n is 0 if the parent has died.
func hear() (n int, err error) {
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		n, err = unix.Read(ends, make([]byte, 1))
	}
	return n, err
}

// settle prepares the namespaces for pods.
func settle(exit func(code int)) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("%s is set, but this process is not the first of its namespace; only this program sets it", Variable)
	}
	unix.CloseOnExec(ends)
	go func() {
		_, _ = hear()                 // the parent sends nothing more, so this returns when it dies
		exit(128 + int(unix.SIGKILL)) // this also ends all processes of the namespace
	}()
	// Runtimes read /proc about their own processes.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc for the pods' processes: %w; the kernel refuses it where parts of /proc are hidden, as in most containers", err)
	}
	// Runtimes make control groups if they can, and after a crash these would stay. So the folder
	// becomes read-only. Kernels before 5.12 cannot do that; there the modes of the directories
	// must suffice.
	_ = unix.MountSetattr(unix.AT_FDCWD, "/sys/fs/cgroup", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	return nil
}
