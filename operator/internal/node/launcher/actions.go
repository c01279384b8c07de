package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var errCalledOff = errors.New("called off, since the container was stopped before")

// kill arms a kill, or joins the one of the same ID, and waits for its end.
func (l *Launcher) kill(request Kill) KillResult {
	return l.kills.do(request.ID, func() KillResult {
		result, err := l.carryOutKill(request)
		if err != nil {
			result.Error = err.Error()
		}
		return result
	})
}

func (l *Launcher) carryOutKill(request Kill) (result KillResult, err error) {
	alarms := l.setAlarms(request.AtMonotonicNanos, unix.SIGKILL, func() bool {
		return !request.AwaitPermit || l.permit.given(request.AtMonotonicNanos)
	})
	defer alarms.close()
	if len(alarms.each) > 0 {
		l.struckAt.Store(request.AtMonotonicNanos)
		defer l.struckAt.Store(0)
	}
	// One thread from the wait to the signal: the thread that wakes also kills.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if SleepUntil(l.planned, request.AtMonotonicNanos) != nil || request.AwaitPermit && l.awaitPermit(request.AtMonotonicNanos) != nil {
		return result, errCalledOff
	}
	l.holding.Store(true)
	result.KilledAt = Monotonic()
	struck := alarms.struck()
	if struck != 0 {
		result.KilledAt = struck
		if !l.processes.allIn(alarms.group) {
			struck = 0 // some processes get their signal only now
		}
	}
	if result.ConfirmedAt, result.ReapedAt, err = l.killAll(struck, killTimeout); err != nil {
		return result, err
	}
	l.mu.Lock()
	clear(l.pauses.inForce) // no process is left that a resume could continue
	if l.state.Process != Held {
		// No process ran when the kill came. The container counts as held down all the same.
		l.state.Process, l.state.Asked = Held, true
		l.connections.tell()
	}
	l.mu.Unlock()
	return result, empty(request.Empty)
}

// awaitPermit polls often at first. Usually the permit has come long before. It is late when the
// agent is late or was restarted.
func (l *Launcher) awaitPermit(instant int64) error {
	const often, seldom, hurry = 50 * time.Microsecond, 5 * time.Millisecond, 100 * time.Millisecond
	began := Monotonic()
	for !l.permit.given(instant) {
		if err := l.planned.Err(); err != nil {
			return err
		}
		pause := often
		if time.Duration(Monotonic()-began) > hurry {
			pause = seldom
		}
		// This uses the kernel's sleep. The runtime's sleep would release the thread.
		ts := unix.NsecToTimespec(int64(pause))
		_ = unix.Nanosleep(&ts, nil) // a sleep that ends early only makes this check early
	}
	return nil
}

// revive starts the killed process again, once for each ID.
func (l *Launcher) revive(request Revive) ReviveResult {
	l.pauses.signalling.Lock()
	defer l.pauses.signalling.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if done, ok := l.revives[request.ID]; ok {
		return done
	}
	switch {
	case l.stopping:
		return ReviveResult{Error: errCalledOff.Error()}
	case l.state.Process != Held:
		return ReviveResult{Error: fmt.Sprintf("nothing to revive: the process is %s, not %s", l.state.Process, Held)}
	case l.spec == nil:
		return ReviveResult{Error: "nothing to revive: the process was never started"}
	}
	l.holding.Store(false)
	l.launch()
	result := ReviveResult{StartedAt: l.state.StartedAt}
	if l.state.Process != Running {
		result = ReviveResult{Error: "the command could not be started again: " + l.output.tail.String()}
	}
	l.revives[request.ID] = result
	return result
}

// stop ends all processes: first with the requested signal, then with SIGKILL.
func (l *Launcher) stop(request Stop) error {
	number, err := signalNumber(request.Signal)
	if err != nil {
		return err
	}
	l.pauses.signalling.Lock()
	l.mu.Lock()
	l.stopping = true
	l.callOff()
	l.endPauses() // a stopped process reacts to no signal but SIGKILL
	process, exited, flushed := l.main, l.exited, l.flushed
	if process != 0 && number != syscall.SIGKILL {
		// The lock keeps the process from being reaped, so the number still is its own.
		_ = unix.Kill(process, number)
	}
	l.mu.Unlock()
	l.pauses.signalling.Unlock()
	if process != 0 && number != syscall.SIGKILL {
		select {
		case <-exited:
		case <-time.After(request.Grace):
		}
	}
	if _, _, err := l.killAll(0, killTimeout); err != nil {
		return err
	}
	if flushed != nil {
		select {
		case <-flushed:
		case <-time.After(outputTimeout):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Stopped = true
	l.connections.tell()
	return nil
}

// auxiliary is the process of a Run.
type auxiliary struct {
	ended   chan struct{} // closed when the process is reaped
	printed chan struct{} // closed when its output has ended
	done    chan struct{}
	code    int
	tail    tail
	result  RunResult
}

// run starts a command, or joins the one of the same ID, and waits for its end.
func (l *Launcher) run(request Run) RunResult {
	l.pauses.signalling.Lock()
	l.mu.Lock()
	r := l.runs[request.ID]
	if r == nil {
		r = &auxiliary{ended: make(chan struct{}), printed: make(chan struct{}), done: make(chan struct{})}
		l.runs[request.ID] = r
		pid, err := l.launchAuxiliary(r, request)
		if err != nil {
			r.result = RunResult{ExitCode: 127, Error: err.Error()}
			close(r.done)
		} else {
			r.result.StartedAt = Monotonic()
			l.byPID[pid] = r
			go r.watch(pid, request.Timeout)
		}
	}
	l.mu.Unlock()
	l.pauses.signalling.Unlock()
	<-r.done
	return r.result
}

// RunsNoCommand ends the error of a command in a container that a fault has killed or paused.
const RunsNoCommand = " and runs no command"

func (l *Launcher) launchAuxiliary(r *auxiliary, request Run) (int, error) {
	if l.holding.Load() {
		return 0, errors.New("the container is held down by a fault" + RunsNoCommand)
	}
	if len(l.pauses.inForce) > 0 {
		return 0, errors.New("the container is paused by a fault" + RunsNoCommand)
	}
	read, write, err := pipe()
	if err != nil {
		return 0, err
	}
	defer unix.Close(write)
	pid, err := spawn(request.Command, environment(request.Env), request.Dir, write, write)
	if err != nil {
		read.Close()
		return 0, err
	}
	go func() {
		defer close(r.printed)
		defer read.Close()
		buffer := make([]byte, 16<<10)
		for {
			n, err := read.Read(buffer)
			r.tail.write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	return pid, nil
}

// watch waits for a command, and gathers the result. It ends a command that takes too long, with
// its whole process group.
func (r *auxiliary) watch(pid int, timeout time.Duration) {
	defer close(r.done)
	expired := make(<-chan time.Time)
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-r.ended:
	case <-expired:
		r.result.Error = fmt.Sprintf("took longer than %v and was killed", timeout)
		_ = unix.Kill(-pid, unix.SIGKILL)
		<-r.ended
	}
	r.result.EndedAt = Monotonic()
	// A daemon that the command left behind may hold its output open for ever.
	select {
	case <-r.printed:
	case <-time.After(outputTimeout / 4):
	}
	r.result.ExitCode, r.result.Output = r.code, r.tail.String()
}

// pack archives a directory for the agent.
func (l *Launcher) pack(request Archive) (string, error) {
	file := filepath.Join(l.options.OutDir, l.options.Name+".tar.gz")
	return file, archive(request.Path, file, request.Limit)
}

// share lets all users read a file.
func share(request Share) error {
	info, err := os.Stat(request.Path)
	if err != nil {
		return err
	}
	return os.Chmod(request.Path, info.Mode().Perm()|0o444)
}
