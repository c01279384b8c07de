package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errSurvivors says that SIGKILL did not end everything in time: a process of another user, or one
// stuck in the kernel.
var errSurvivors = errors.New("some processes survive SIGKILL; the container must run as the one user that its processes have")

// spawn starts a program in a session of its own, so that a script's "kill 0" reaches the script's
// processes and not the launcher. Stdin is /dev/null. The caller holds l.mu, so that the child
// cannot be reaped before it is known.
func spawn(command, env []string, dir string, stdout, stderr int) (int, error) {
	if len(command) == 0 {
		return 0, errors.New("the command is empty")
	}
	path, err := lookPath(command[0], env, dir)
	if err != nil {
		return 0, err
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(null)
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Dir:   dir,
		Env:   env,
		Files: []uintptr{uintptr(null), uintptr(stdout), uintptr(stderr)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", path, err)
	}
	return pid, nil
}

// lookPath finds a program as a shell would, in the PATH of its own environment.
func lookPath(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		candidate := filepath.Join(folder, name)
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("start %s: not found in PATH %s", name, path)
}

// environment is the launcher's own with additions, the last one of each name. Duplicates must not
// stay: which one wins is up to the libc.
func environment(additions ...[]string) []string {
	all := slices.Concat(append([][]string{os.Environ()}, additions...)...)
	last := map[string]int{}
	for i, entry := range all {
		name, _, _ := strings.Cut(entry, "=")
		last[name] = i
	}
	var env []string
	for i, entry := range all {
		if name, _, _ := strings.Cut(entry, "="); last[name] == i {
			env = append(env, entry)
		}
	}
	return env
}

// reap collects every process that has ended. It reports whether no process is left at all: then
// wait4 answers ECHILD, since orphans become the launcher's children before their parent can be
// collected.
func (l *Launcher) reap() (none bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return true
		case pid == 0:
			return false
		default:
			l.ended(pid, status)
		}
	}
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// killAll ends every process but the launcher and returns when none is left. It holds no lock while
// it signals: nothing may delay a kill. It looks often at first, and signals again now and then,
// for those that were born meanwhile. The one system call that signals everybody (see
// processes.signal) has done so then, and no thread of them gets back to its program. SIGKILL can
// be neither caught nor blocked. The kernel looks for it before it leaves for user mode, and a fork
// in progress fails. That is when they count as dead. The proof comes later: reaped, they have
// given back their memory, too, which takes some 60 us for each MiB. The call has done so at its
// beginning plus the processor time that it took, and not when it returns. It signals under the
// kernel's lock of all processes, which nothing preempts. When it gives that back the dying threads
// take the processor first, for milliseconds. The caller is locked to its thread. struck is when an
// alarm had signalled everybody already, or 0.
func (l *Launcher) killAll(struck int64, timeout time.Duration) (dead, reaped int64, err error) {
	const often, seldom, hurry, again = 200 * time.Microsecond, 5 * time.Millisecond, 100 * time.Millisecond, 5 * time.Millisecond
	began := Monotonic()
	signalled := int64(0)
	dead = struck
	for {
		now := Monotonic()
		if now-signalled >= int64(again) {
			signalled = now
			took := threadTime()
			l.processes.signal(unix.SIGKILL)
			took = threadTime() - took
			if dead == 0 && l.processes.all {
				dead = now + took
			}
		}
		if l.reap() {
			reaped = Monotonic()
			if dead == 0 {
				dead = reaped
			}
			return dead, reaped, nil
		}
		switch waited := time.Duration(Monotonic() - began); {
		case waited > timeout:
			return 0, 0, errSurvivors
		case waited > hurry:
			time.Sleep(seldom)
		default:
			time.Sleep(often)
		}
	}
}

// pipe makes a pipe whose read end is the runtime's and whose write end is for a child. It is made
// as large as a user may, so that a launcher that is not scheduled for a while does not stop the
// process's printing.
func pipe() (read *os.File, write int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("make a pipe: %w", err)
	}
	// Both are improvements only: a smaller pipe and a blocking reader work as well.
	_, _ = unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, 1<<20)
	_ = unix.SetNonblock(ends[0], true)
	return os.NewFile(uintptr(ends[0]), "output"), ends[1], nil
}

// signalNumber of a name such as SIGTERM; empty is SIGTERM.
func signalNumber(name string) (syscall.Signal, error) {
	if name == "" {
		return syscall.SIGTERM, nil
	}
	if number := unix.SignalNum(name); number != 0 {
		return number, nil
	}
	return 0, fmt.Errorf("%q is no signal", name)
}
