// Package stalltest lets tests judge instants on a machine that stands still now and then: its processor is given to another machine, its disk is written
// back, all of it waits for a second. A trial that went wrong meanwhile proves nothing and is repeated. For tests only.
package stalltest

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// attempts is how often a trial is made that the machine disturbs.
	attempts = 8
	// proof is how many trials must go wrong undisturbed: there is more to stand still than is watched.
	proof = 2
	// nap is what a thread on each processor wants to sleep, again and again.
	nap = 2 * time.Millisecond
	// between writings of a file.
	between = 20 * time.Millisecond
)

// Try makes a trial until it returns no error: what it returns is wrong with instants, durations and how much was done in a time. Everything else is for the
// trial to report itself, at once. A trial that goes wrong while the machine stands still for longer than the excuse is made again, from the beginning.
func Try(t testing.TB, excuse time.Duration, trial func() error) {
	t.Helper()
	if os.Getenv("ASSAY_VM") != "" { // the machine of hack/vm, whose time passes by its own instructions only, which to watch takes
		if err := trial(); err != nil {
			t.Error(err)
		}
		return
	}
	var wrong []error
	undisturbed := 0
	for range attempts {
		w := watch(t)
		err := trial()
		still := w.longest()
		w.end()
		if err == nil {
			return
		}
		wrong = append(wrong, err)
		if t.Logf("the machine stood still for %v, and: %v", still.Round(time.Microsecond), err); still > excuse {
			time.Sleep(min(10*still, 5*time.Second)) // such times pass
			continue
		}
		if undisturbed++; undisturbed == proof {
			break
		}
	}
	t.Error(errors.Join(wrong...))
}

// watcher watches for how long something takes that takes no time on a machine that does not stand still.
type watcher struct {
	begun   atomic.Int64  // when it has begun, or 0: it is not about it
	most    atomic.Int64  // ns
	watches chan struct{} // closed when it has begun for the first time
	once    sync.Once
}

func (w *watcher) time(usual time.Duration, do func()) {
	begun := now()
	w.begun.Store(begun + int64(usual))
	w.once.Do(func() { close(w.watches) })
	do()
	w.begun.Store(0)
	w.most.Store(max(w.most.Load(), now()-begun-int64(usual)))
}

// sofar includes what is under way: who asks may run again before those who watch.
func (w *watcher) sofar() time.Duration {
	most := w.most.Load()
	if begun := w.begun.Load(); begun != 0 {
		most = max(most, now()-begun)
	}
	return time.Duration(most)
}

// watching is one watcher for each processor and one for the disk.
type watching struct {
	watchers []*watcher
	over     chan struct{}
	all      sync.WaitGroup
}

func watch(t testing.TB) *watching {
	t.Helper()
	w := &watching{over: make(chan struct{})}
	var usable unix.CPUSet
	if err := unix.SchedGetaffinity(0, &usable); err != nil {
		t.Fatal(err)
	}
	for processor := 0; len(w.watchers) < usable.Count(); processor++ {
		if usable.IsSet(processor) {
			w.start(func(one *watcher) { w.processor(one, processor) })
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	w.start(func(one *watcher) { w.disk(one, file) })
	t.Cleanup(w.end) // a trial may end the test
	for _, one := range w.watchers {
		<-one.watches
	}
	return w
}

func (w *watching) start(do func(*watcher)) {
	one := &watcher{watches: make(chan struct{})}
	w.watchers = append(w.watchers, one)
	w.all.Go(func() { do(one) })
}

func (w *watching) processor(one *watcher, processor int) {
	// The thread must not end: it may be the one that has started processes which are to end with it (PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, there unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err == nil {
		there.Set(processor)
		_ = unix.SchedSetaffinity(0, &there) // one that is refused watches another processor
		defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	}
	for !w.isOver() {
		one.time(nap, func() {
			ts := unix.NsecToTimespec(int64(nap))
			_ = unix.Nanosleep(&ts, nil) // woken early, it begins anew
		})
	}
}

func (w *watching) disk(one *watcher, file string) {
	for {
		// Not its speed, which is another matter: that a file cannot be written for a while, as when the journal is full.
		one.time(0, func() { _ = errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Remove(file)) })
		select {
		case <-w.over:
			return
		case <-time.After(between):
		}
	}
}

func (w *watching) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// longest is for how long the machine has stood still, at most.
func (w *watching) longest() time.Duration {
	var all []time.Duration
	for _, one := range w.watchers {
		all = append(all, one.sofar())
	}
	return slices.Max(all)
}

func (w *watching) end() {
	if !w.isOver() {
		close(w.over)
		w.all.Wait()
	}
}

func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // the clock exists
	return ts.Nano()
}
