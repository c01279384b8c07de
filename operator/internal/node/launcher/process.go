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

// errSurvivors says that some processes did not end in time after SIGKILL: they belong to another
// user, or are stuck in the kernel.
var errSurvivors = errors.New("some processes survive SIGKILL; the container must run as the one user that its processes have")

// spawn starts a program in a session of its own, so that a script's "kill 0" reaches the script's
// processes and not the launcher. Stdin is /dev/null. The caller holds l.mu, so that the child
// cannot be reaped before its ID is stored.
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

// lookPath finds a program as a shell would, in the PATH of the given environment.
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

// environment is the launcher's own with additions. The last value of each name counts. Duplicates
// must be removed, since each libc chooses another one.
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

// reap collects every process that has ended. It reports whether no process is left at all. Then
// wait4 answers ECHILD, since orphans become the launcher's children before their parent can be
// reaped.
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

// killAll ends every process but the launcher, and returns when none is left. It holds no lock
// while it signals, since a lock could delay the kill. At first it checks often, and signals again
// now and then, for processes that were born meanwhile. As process 1, one system call signals all
// processes (see processes.signal). SIGKILL can be neither caught nor blocked. The kernel checks
// for it before a thread returns to user mode, and a fork in progress fails. So after the call no
// thread returns to its program, and the processes count as dead. The proof comes later, when all
// processes are reaped: they also have to give back their memory, at some 60 us for each MiB. The
// time of death is the start of the call plus the processor time that it took, and not the time of
// its return. The call holds the kernel's lock of all processes, and is not preempted there. When
// it releases the lock, the dying threads take the processor first, for milliseconds. The caller is
// locked to its thread. struck is when an alarm had already signalled all processes, or 0.
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

// pipe makes a pipe. The runtime has the read end, and a child gets the write end. The pipe is as
// large as a user may make it. So the process can go on printing while the launcher gets no
// processor.
func pipe() (read *os.File, write int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("make a pipe: %w", err)
	}
	// Both calls only improve speed: a smaller pipe and a blocking reader work as well.
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
