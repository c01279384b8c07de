package simulation

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"strings"
	"time"
)

// scheduler runs events in the order of their virtual instants. Events of one instant run in the
// order of their creation.
type scheduler struct {
	now     time.Time
	rng     *rand.Rand
	events  events
	made    uint64
	running *process // nil: the world itself runs
	idle    []*routine

	// hash is the hash of the whole trace. The lines are kept if a reader needs them.
	hash  uint64
	keep  bool
	lines []string
}

// began is the begin of every history.
var began = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

func newScheduler(seed uint64, keep bool) *scheduler {
	return &scheduler{now: began, rng: rand.New(rand.NewPCG(seed, 36)), keep: keep}
}

type event struct {
	at   time.Time
	made uint64
	do   func()
}

type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].made < e[j].made
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *events) Push(x any) { *e = append(*e, x.(event)) }

func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return last
}

// after calls do after a time.
func (s *scheduler) after(d time.Duration, do func()) {
	s.made++
	heap.Push(&s.events, event{s.now.Add(max(0, d)), s.made, do})
}

// run runs due events until an instant, or until stop returns true.
func (s *scheduler) run(until time.Time, stop func() bool) {
	for len(s.events) > 0 && !s.events[0].at.After(until) && !stop() {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	if s.now.Before(until) && !stop() {
		s.now = until
	}
}

// trace records an event. Two runs of a seed have the same hash.
func (s *scheduler) trace(format string, args ...any) {
	line := fmt.Sprintf("%12.6f  ", s.now.Sub(began).Seconds()) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprint(h, s.hash)
	h.Write([]byte(line))
	s.hash = h.Sum64()
	if s.keep {
		s.lines = append(s.lines, strings.TrimRight(line, "\n"))
	}
}

// between draws a time between two bounds.
func (s *scheduler) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(s.rng.Int64N(int64(b-a)))
}

// oneIn is true once in n times.
func (s *scheduler) oneIn(n int) bool { return n > 0 && s.rng.IntN(n) == 0 }

// process is code that must wait in its middle. It runs in a coroutine.
type process struct {
	*routine

	s    *scheduler
	of   *manager
	dead bool
}

// routine is a coroutine. It runs one process after the other, so that its stack grows once.
type routine struct {
	do    func() // of the present process; nil: it is over
	yield func(time.Duration) bool
	next  func() (time.Duration, bool)
	stop  func()
}

// routine returns an idle coroutine.
func (s *scheduler) routine() *routine {
	if n := len(s.idle); n > 0 {
		r := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return r
	}
	r := &routine{}
	r.next, r.stop = iter.Pull(func(yield func(time.Duration) bool) {
		r.yield = yield
		for r.run() && yield(0) {
		}
	})
	return r
}

// run runs a process to its end. It reports whether the coroutine goes on.
func (r *routine) run() (goesOn bool) {
	defer func() {
		if why := recover(); why != nil {
			if _, killed := why.(killedError); !killed {
				panic(why)
			}
		}
	}()
	r.do()
	r.do = nil
	return true
}

// end ends the idle coroutines.
func (s *scheduler) end() {
	for _, r := range s.idle {
		r.stop()
	}
	s.idle = nil
}

// killedError unwinds a process whose manager is gone.
type killedError struct{}

// spawn starts a process of a manager, and runs it until it waits for the first time.
func (s *scheduler) spawn(of *manager, f func()) *process {
	p := &process{routine: s.routine(), s: s, of: of}
	p.do = f
	if of != nil {
		of.processes = append(of.processes, p)
	}
	p.step()
	return p
}

// step runs the process until it waits or ends. If its manager is stopped, the process continues
// with the manager.
func (p *process) step() {
	if p.dead {
		return
	}
	if p.of != nil && p.s.now.Before(p.of.stoppedUntil) {
		p.s.after(p.of.stoppedUntil.Sub(p.s.now), p.step)
		return
	}
	before := p.s.running
	p.s.running = p
	wait, waits := p.next()
	p.s.running = before
	if waits && p.do != nil {
		p.s.after(wait, p.step)
		return
	}
	p.dead = true
	if waits {
		p.s.idle = append(p.s.idle, p.routine)
	}
	if p.of != nil {
		p.of.drop(p)
	}
}

// kill ends a process at its wait. It never runs its next step.
func (p *process) kill() {
	if p.dead {
		return
	}
	p.dead = true
	before := p.s.running
	p.s.running = p
	p.stop()
	p.s.running = before
}

// wait makes the running process wait. The world itself does not wait.
func (s *scheduler) wait(d time.Duration) {
	p := s.running
	if p == nil {
		return
	}
	if p.dead || !p.yield(d) {
		panic(killedError{})
	}
}
