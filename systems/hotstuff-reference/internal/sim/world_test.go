package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// world is the simulated network and clock.
type world struct {
	rng   *rand.Rand
	now   time.Duration
	queue events
	seq   uint64
	trace uint64 // hash of everything that was delivered

	// Until heal the network is asynchronous: it loses, delays and repeats messages, and splits.
	heal     time.Duration
	loss     float64
	maxDelay time.Duration
	side     func(node int) int // nodes on different sides get no messages from each other; nil: there are no sides
}

// node is a process: a replica from 0, or a client from firstClient.
type node struct {
	w    *world
	id   int
	down bool // silent: no message goes in or out
}

const firstClient = 1000

type event struct {
	at  time.Duration
	seq uint64
	fn  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return x
}

func (w *world) after(d time.Duration, fn func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, fn})
}

// run processes events until done or the limit; true if done.
func (w *world) run(limit time.Duration, done func() bool) bool {
	deadline := w.now + limit
	for !done() {
		if len(w.queue) == 0 || w.queue[0].at > deadline {
			w.now = deadline
			return done()
		}
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.fn()
	}
	return true
}

func (w *world) duration(most time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(most)))
}

// deliver calls fn at the other node after the network's delay, if the network does not lose it.
func (w *world) deliver(from, to *node, fn func()) {
	asynchronous := w.now < w.heal
	if from.down || asynchronous && (w.rng.Float64() < w.loss || w.apart(from.id, to.id)) {
		return
	}
	delay := 50*time.Microsecond + w.duration(400*time.Microsecond)
	if asynchronous && w.rng.IntN(4) == 0 {
		delay += w.duration(w.maxDelay)
	}
	arrive := func() {
		if !to.down {
			w.trace = w.trace*1099511628211 ^ uint64(w.now) ^ uint64(to.id)<<40 ^ uint64(from.id)<<50
			fn()
		}
	}
	w.after(delay, arrive)
	if asynchronous && w.rng.IntN(50) == 0 {
		w.after(3*delay, arrive) // a duplicate
	}
}

func (w *world) apart(a, b int) bool {
	return w.side != nil && a < firstClient && b < firstClient && w.side(a) != w.side(b)
}
