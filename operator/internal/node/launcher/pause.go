package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pauseTimeout bounds how long processes are given to stop, or to go on: a thread that waits for a
// disk does neither.
const pauseTimeout = 5 * time.Second

// pauses of one launcher. The signals themselves are sent under signalling. So a pause that is
// signalled again, for processes that were born meanwhile, cannot undo a resume. The launcher's own
// children are born under it, too: one that is stopped before it has become a program stops the
// launcher, too, which waits for that (vfork). It is locked before the launcher's mutex.
type pauses struct {
	signalling sync.Mutex
	// Guarded by the launcher's mutex.
	planned map[string]*plannedPause // pauses and resumes, by ID
	inForce map[string]bool          // pauses
}

// plannedPause is a Pause or a Resume.
type plannedPause struct {
	begun  bool
	known  chan struct{} // closed when the request has come
	done   chan struct{}
	result PauseResult
}

// pauseArrival is how long after the instant of a Resume its Pause may come: an agent that was
// restarted sends both at the same time.
const pauseArrival = time.Second

// pauseOf finds or makes the pause or resume of that ID. The caller holds l.mu.
func (l *Launcher) pauseOf(id string) *plannedPause {
	p := l.pauses.planned[id]
	if p == nil {
		p = &plannedPause{known: make(chan struct{}), done: make(chan struct{})}
		l.pauses.planned[id] = p
	}
	return p
}

// pause arms a pause, or joins the one of the same ID, and waits for its end.
func (l *Launcher) pause(request Pause) PauseResult {
	return l.planPause(request.ID, func() (PauseResult, error) {
		alarms := l.setAlarms(request.AtMonotonicNanos, unix.SIGSTOP, func() bool { return true })
		defer alarms.close()
		if SleepUntil(l.planned, request.AtMonotonicNanos) != nil {
			l.takeBack(alarms)
			return PauseResult{}, errCalledOff
		}
		return l.carryOutPause(request.ID, alarms)
	})
}

// takeBack makes alarms stop no process, and lets those go on that they have stopped.
func (l *Launcher) takeBack(set *alarms) {
	set.disarm()
	l.pauses.signalling.Lock()
	defer l.pauses.signalling.Unlock()
	if set.struck() != 0 {
		l.signalEach(unix.SIGCONT)
	}
}

// resume arms the end of a pause, or joins the one of the same ID, and waits until it has happened.
func (l *Launcher) resume(request Resume) PauseResult {
	return l.planPause(request.ID, func() (PauseResult, error) {
		if SleepUntil(l.planned, request.AtMonotonicNanos) != nil {
			return PauseResult{}, errCalledOff
		}
		l.mu.Lock()
		begun := l.pauseOf(request.Pause)
		l.mu.Unlock()
		select {
		case <-begun.known:
		case <-time.After(pauseArrival):
			return PauseResult{}, fmt.Errorf("nothing to resume: this launcher knows no pause %q", request.Pause)
		case <-l.planned.Done():
			return PauseResult{}, errCalledOff
		}
		select {
		case <-begun.done: // within pauseTimeout of its instant, which lies before this one
		case <-l.planned.Done():
			return PauseResult{}, errCalledOff
		}
		return l.carryOutResume(request.Pause)
	})
}

func (l *Launcher) planPause(id string, carryOut func() (PauseResult, error)) PauseResult {
	l.mu.Lock()
	p := l.pauseOf(id)
	if !p.begun {
		p.begun = true
		close(p.known)
		go func() {
			defer close(p.done)
			var err error
			if p.result, err = carryOut(); err != nil {
				p.result.Error = err.Error()
			}
		}()
	}
	l.mu.Unlock()
	<-p.done
	return p.result
}

// carryOutPause holds no lock that others hold for long while it signals: nothing may delay a
// pause.
func (l *Launcher) carryOutPause(id string, set *alarms) (result PauseResult, err error) {
	l.pauses.signalling.Lock()
	if l.planned.Err() != nil {
		l.pauses.signalling.Unlock()
		l.takeBack(set)
		return result, errCalledOff
	}
	result.SignalledAt = Monotonic()
	l.signalEach(unix.SIGSTOP)
	if struck := set.struck(); struck != 0 {
		result.SignalledAt = struck
	}
	l.mu.Lock()
	l.pauses.inForce[id] = true
	l.tell()
	l.mu.Unlock()
	l.pauses.signalling.Unlock()
	result.ConfirmedAt, err = l.awaitStates(true, func() { l.signalAgain(id) })
	return result, err
}

// signalAgain stops what was born after the first signal, as long as the pause is in force.
func (l *Launcher) signalAgain(id string) {
	l.pauses.signalling.Lock()
	defer l.pauses.signalling.Unlock()
	l.mu.Lock()
	inForce := l.pauses.inForce[id]
	l.mu.Unlock()
	if inForce {
		l.signalEach(unix.SIGSTOP)
	}
}

func (l *Launcher) carryOutResume(pause string) (result PauseResult, err error) {
	l.pauses.signalling.Lock()
	result.SignalledAt = Monotonic()
	l.mu.Lock()
	delete(l.pauses.inForce, pause)
	others := len(l.pauses.inForce)
	l.mu.Unlock()
	if others == 0 {
		l.signalEach(unix.SIGCONT)
	}
	l.pauses.signalling.Unlock()
	if others > 0 {
		result.ConfirmedAt = result.SignalledAt // this pause is over; another one goes on
		return result, nil
	}
	result.ConfirmedAt, err = l.awaitStates(false, func() {})
	l.mu.Lock()
	l.tell()
	l.mu.Unlock()
	return result, err
}

// endPauses lets everything go on. The caller holds both mutexes and has called off what is
// planned.
func (l *Launcher) endPauses() {
	if len(l.pauses.inForce) > 0 {
		clear(l.pauses.inForce)
		l.signalEach(unix.SIGCONT)
	}
}

// awaitStates returns when every thread of the container's other processes is stopped, or none is.
// It looks often at first, and calls again now and then.
//
// A pause counts as confirmed when one thread of each process was seen stopped. The one that takes
// the signal marks all others of its process, and none of these gets back to its program
// (do_signal_stop, kernel/signal.c). That all stand still proves it, and is awaited. It comes
// milliseconds later on a busy node, since each of them, the idle ones included, has to run once
// for that.
func (l *Launcher) awaitStates(stopped bool, again func()) (confirmed int64, err error) {
	const often, seldom, hurry = 100 * time.Microsecond, 5 * time.Millisecond, 100 * time.Millisecond
	began := Monotonic()
	// To look takes the processor from those that are to be seen.
	time.Sleep(often)
	seen := map[int]bool{} // processes that were found as they should be
	for {
		if !stopped || !l.halted() {
			confirmed = 0
		} else if confirmed == 0 {
			confirmed = Monotonic()
		}
		pid, found := l.straggler(stopped, seen)
		now := Monotonic()
		waited := time.Duration(now - began)
		switch {
		case !found && confirmed != 0:
			return confirmed, nil
		case !found:
			return now, nil
		case l.planned.Err() != nil:
			return 0, errCalledOff
		case l.holding.Load():
			return 0, errors.New("the processes were killed meanwhile")
		case waited > pauseTimeout:
			return 0, fmt.Errorf("process %d is not as it should be %v after the signal: stopped should be %v, but its state is %s",
				pid, pauseTimeout, stopped, strings.Join(states(pid), " "))
		case waited > hurry:
			time.Sleep(seldom)
			again()
		default:
			time.Sleep(often)
			if !l.first {
				again()
			}
		}
	}
}

// straggler returns a process that is not as it should be. Once a process has been seen so it is
// not looked at again.
func (l *Launcher) straggler(stopped bool, seen map[int]bool) (pid int, found bool) {
	for _, pid := range l.others() {
		if seen[pid] {
			continue
		}
		if stopped && childStopped(pid) {
			seen[pid] = true
			continue
		}
		for _, state := range states(pid) {
			// Dead threads and zombies do neither; "t" is stopped by a debugger.
			if state == "Z" || state == "X" {
				continue
			}
			isStopped := state == "T" || state == "t"
			if stopped && state == "D" && hasStoppedChild(pid) {
				// It waits for a child that was stopped before it became a program (vfork), and
				// will stop itself when that goes on.
				isStopped = true
			}
			if isStopped != stopped {
				return pid, true
			}
		}
		seen[pid] = true
	}
	return 0, false
}

// halted reports whether no thread gets back to its program: one of each process has stopped, or
// the process has ended.
func (l *Launcher) halted() bool {
	for _, pid := range l.others() {
		if childStopped(pid) {
			continue
		}
		live := func(state string) bool { return state != "Z" && state != "X" }
		of := states(pid)
		if slices.ContainsFunc(of, live) && !slices.Contains(of, "T") && !slices.Contains(of, "t") && !(slices.Contains(of, "D") && hasStoppedChild(pid)) {
			return false
		}
	}
	return true
}

// childStopped reports whether a process is a child of this one and has stopped with all of its
// threads. One system call says so; /proc takes two for each thread.
func childStopped(pid int) bool {
	const stopped = 5 // CLD_STOPPED, sigaction(2)
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0 && info.Code == stopped
}

func hasStoppedChild(parent int) bool {
	for _, pid := range numbers("/proc") {
		if is, ok := parentOf(pid); ok && is == parent && slices.Contains(states(pid), "T") {
			return true
		}
	}
	return false
}

// others lists the container's processes but this one.
func (l *Launcher) others() []int {
	if !l.first {
		return descendants(os.Getpid())
	}
	var found []int
	for _, pid := range numbers("/proc") {
		if pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// states returns the state of each thread of a process, as /proc/<pid>/task/<tid>/stat has it; none
// of one that is gone.
func states(pid int) []string {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	var found []string
	for _, thread := range numbers(tasks) {
		if fields := statFields(filepath.Join(tasks, strconv.Itoa(thread), "stat")); len(fields) > 0 {
			found = append(found, fields[0])
		}
	}
	return found
}

// numbers lists the entries of a directory that are numbers.
func numbers(folder string) []int {
	directory, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer directory.Close()
	names, err := directory.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var found []int
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			found = append(found, number)
		}
	}
	return found
}
