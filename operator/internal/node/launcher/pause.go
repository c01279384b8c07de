package launcher

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pauseTimeout bounds how long processes may take to stop, or to go on: a thread that waits for a
// disk does neither.
const pauseTimeout = 5 * time.Second

// pauses of one launcher. The mutex signalling is locked while signals are sent. So a pause that
// signals again, for processes that were born meanwhile, cannot undo a resume. The launcher also
// holds it while it makes a child. A child that is stopped before its exec would block the
// launcher, which waits for it (vfork). A caller locks it before the launcher's mutex.
type pauses struct {
	plans[PauseResult] // pauses and resumes

	signalling sync.Mutex
	// inForce has the pauses in force. The launcher's mutex guards it.
	inForce map[string]bool
}

// pauseArrival is how long after the instant of a Resume its Pause may arrive: a restarted agent
// sends both at the same time.
const pauseArrival = time.Second

// pause arms a pause, or joins the one of the same ID, and waits for its end.
func (l *Launcher) pause(request Pause) PauseResult {
	return l.pauses.do(request.ID, paused(func() (PauseResult, error) {
		alarms := l.setAlarms(request.AtMonotonicNanos, unix.SIGSTOP, func() bool { return true })
		defer alarms.close()
		if SleepUntil(l.planned, request.AtMonotonicNanos) != nil {
			l.takeBack(alarms)
			return PauseResult{}, errCalledOff
		}
		return l.carryOutPause(request.ID, alarms)
	}))
}

// paused puts an error into the result.
func paused(carryOut func() (PauseResult, error)) func() PauseResult {
	return func() PauseResult {
		result, err := carryOut()
		if err != nil {
			result.Error = err.Error()
		}
		return result
	}
}

// takeBack disarms the alarms, and continues the processes that they have stopped.
func (l *Launcher) takeBack(set *alarms) {
	set.disarm()
	l.pauses.signalling.Lock()
	defer l.pauses.signalling.Unlock()
	if set.struck() != 0 {
		l.processes.signal(unix.SIGCONT)
	}
}

// resume arms the end of a pause, or joins the one of the same ID, and waits until it has happened.
func (l *Launcher) resume(request Resume) PauseResult {
	return l.pauses.do(request.ID, paused(func() (PauseResult, error) {
		if SleepUntil(l.planned, request.AtMonotonicNanos) != nil {
			return PauseResult{}, errCalledOff
		}
		begun := l.pauses.of(request.Pause)
		select {
		case <-begun.known:
		case <-time.After(pauseArrival):
			return PauseResult{}, fmt.Errorf("nothing to resume: this launcher knows no pause %q", request.Pause)
		case <-l.planned.Done():
			return PauseResult{}, errCalledOff
		}
		select {
		case <-begun.done: // done within pauseTimeout of the pause's instant, which is before this one
		case <-l.planned.Done():
			return PauseResult{}, errCalledOff
		}
		return l.carryOutResume(request.Pause)
	}))
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
	l.processes.signal(unix.SIGSTOP)
	if struck := set.struck(); struck != 0 {
		result.SignalledAt = struck
	}
	l.mu.Lock()
	l.pauses.inForce[id] = true
	l.connections.tell()
	l.mu.Unlock()
	l.pauses.signalling.Unlock()
	result.ConfirmedAt, err = l.awaitStates(true, func() { l.signalAgain(id) })
	return result, err
}

// signalAgain stops processes that were born after the first signal, as long as the pause is in
// force.
func (l *Launcher) signalAgain(id string) {
	l.pauses.signalling.Lock()
	defer l.pauses.signalling.Unlock()
	l.mu.Lock()
	inForce := l.pauses.inForce[id]
	l.mu.Unlock()
	if inForce {
		l.processes.signal(unix.SIGSTOP)
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
		l.processes.signal(unix.SIGCONT)
	}
	l.pauses.signalling.Unlock()
	if others > 0 {
		result.ConfirmedAt = result.SignalledAt // this pause is over, and another one continues
		return result, nil
	}
	result.ConfirmedAt, err = l.awaitStates(false, func() {})
	l.mu.Lock()
	l.connections.tell()
	l.mu.Unlock()
	return result, err
}

// endPauses continues all processes. The caller holds both mutexes and has cancelled all planned
// orders.
func (l *Launcher) endPauses() {
	if len(l.pauses.inForce) > 0 {
		clear(l.pauses.inForce)
		l.processes.signal(unix.SIGCONT)
	}
}

// awaitStates returns when every thread of the container's other processes is stopped, or none is.
// It looks often at first, and calls again now and then.
//
// A pause counts as confirmed when one thread of each process was seen stopped. The thread that
// takes the signal marks all others of its process, and none of these returns to its program
// (do_signal_stop, kernel/signal.c). To prove it, awaitStates also waits until all threads stand
// still. That is milliseconds later on a busy node, since each thread, even an idle one, has to run
// once for it.
func (l *Launcher) awaitStates(stopped bool, again func()) (confirmed int64, err error) {
	const often, seldom, hurry = 100 * time.Microsecond, 5 * time.Millisecond, 100 * time.Millisecond
	began := Monotonic()
	// Looking takes the processor from the processes that are looked at.
	time.Sleep(often)
	seen := map[int]bool{} // processes that were found in the wanted state
	for {
		if !stopped || !l.processes.halted() {
			confirmed = 0
		} else if confirmed == 0 {
			confirmed = Monotonic()
		}
		pid, found := l.processes.straggler(stopped, seen)
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
			return 0, fmt.Errorf("process %d has the wrong state %v after the signal: stopped should be %v, but its state is %s",
				pid, pauseTimeout, stopped, strings.Join(states(pid), " "))
		case waited > hurry:
			time.Sleep(seldom)
			again()
		default:
			time.Sleep(often)
			if !l.processes.all {
				again()
			}
		}
	}
}
