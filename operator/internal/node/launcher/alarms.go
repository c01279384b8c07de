package launcher

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// alarmLead is how long before its instant an alarm is set. It is much longer than a thread
	// waits for a processor on a busy node. It is so short that the process usually is still the
	// same at the instant.
	alarmLead = 500 * time.Millisecond
	// alarmLast is how long before its instant it is too late to set one.
	alarmLast = 5 * time.Millisecond
	// rehearsing is how long a rehearsal may take.
	rehearsing = 2 * rehearsals * rehearsalLead
	// permitPoll is how often to look for the permit.
	permitPoll = time.Millisecond
	// redundant is how many alarms are set for one signal, on different processors if there are
	// several. The kernel runs such a timer at the end of an interrupt. But a processor with too
	// much work from interrupts runs it in a thread, which waits like any other thread. The first
	// alarm that strikes counts.
	redundant = 2
)

// rehearsal finds out, once, whether alarms work here.
type rehearsal struct {
	once  sync.Once
	tried atomic.Bool
	// failed is why alarms do not work.
	failed error
	// say prints a line for the user.
	say func(line string)
}

// works reports whether alarms work. It rehearses them once, if there is time for that.
func (r *rehearsal) works(instant int64) bool {
	if left := time.Duration(instant - Monotonic()); left < alarmLast || !r.tried.Load() && left < rehearsing {
		return false
	}
	r.once.Do(func() {
		if r.failed = rehearse(); r.failed != nil {
			r.say(fmt.Sprintf("faults go by its own timer: %v", r.failed))
		}
		r.tried.Store(true)
	})
	return r.failed == nil
}

// alarms are set for the same signal.
type alarms struct {
	group int
	each  []*alarm
}

// setAlarms waits until shortly before the instant, and has the kernel signal the container's main
// process and its group at the instant. It sets none if alarms do not work, if it is too late, or
// if the signal is not permitted by then. The launcher's own timer acts in any case. The caller
// closes the alarms.
func (l *Launcher) setAlarms(instant int64, number unix.Signal, permitted func() bool) *alarms {
	set := &alarms{}
	if !l.rehearsal.works(instant) || SleepUntil(l.planned, instant-int64(alarmLead)) != nil {
		return set
	}
	for !permitted() {
		time.Sleep(permitPoll)
		if l.planned.Err() != nil || time.Duration(instant-Monotonic()) < alarmLast {
			return set
		}
	}
	l.mu.Lock()
	set.group = l.main
	l.mu.Unlock()
	if set.group == 0 {
		return set
	}
	for _, processor := range someProcessors(redundant) {
		a, err := newAlarm()
		if err != nil {
			return set
		}
		// If this fails, there are the other alarm and the launcher's own timer.
		if err := onProcessor(processor, func() error { return a.set(instant, set.group, number) }); err != nil {
			a.close()
			continue
		}
		set.each = append(set.each, a)
	}
	return set
}

// struck returns when the first of them struck, or 0 if none has yet.
func (s *alarms) struck() int64 {
	first := int64(0)
	for _, a := range s.each {
		if at := a.struck(); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// disarm makes sure that no process gets a signal any more.
func (s *alarms) disarm() {
	for _, a := range s.each {
		_ = a.disarm() // the kernel refuses this for no descriptor of ours
	}
}

func (s *alarms) close() {
	for _, a := range s.each {
		a.close()
	}
}

// someProcessors returns some of the processors that this process may use. The clock decides where
// to begin, so that pods of one node do not all choose the same ones.
func someProcessors(n int) []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return []int{-1}
	}
	var usable []int
	for i := 0; len(usable) < set.Count(); i++ {
		if set.IsSet(i) {
			usable = append(usable, i)
		}
	}
	first := int(Monotonic()/int64(time.Microsecond)) % len(usable)
	return slices.Concat(usable[first:], usable[:first])[:min(n, len(usable))]
}

// onProcessor runs a function on a processor, or on the current one if that is not possible.
func onProcessor(processor int, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, there unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err == nil && processor >= 0 {
		there.Set(processor)
		if unix.SchedSetaffinity(0, &there) == nil {
			defer func() { _ = unix.SchedSetaffinity(0, &before) }() // the kernel allowed these processors before
		}
	}
	return do()
}
