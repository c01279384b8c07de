package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// world is the simulated network and clock.
type world struct {
	rng   *rand.Rand
	now   int64
	queue events
	seq   uint64
	nodes map[node.ID]*simNode
	trace uint64 // hash of everything that was delivered

	// Until heal the network is asynchronous: it loses, delays and repeats messages.
	heal     int64
	loss     float64
	maxDelay time.Duration
	codec    bool // encode and decode every message

	observe func(from node.ID, m wire.Message)
	lost    func(m wire.Message) bool // nil: no message is lost for good
}

// simNode is one process. After a crash, the process has a new life, and its old timers do not fire
// in it.
type simNode struct {
	w      *world
	id     node.ID
	life   int
	down   bool // silent: no message goes in or out
	skew   time.Duration
	handle func(node.ID, wire.Message)
}

type event struct {
	at  int64
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

// epoch is the virtual time at which runs begin. It is far from zero, so that timestamps look like
// real ones.
const epoch = int64(1_700_000_000_000_000_000)

func newWorld(seed uint64) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 77)), now: epoch, nodes: map[node.ID]*simNode{}}
}

func (w *world) at(t int64, fn func()) {
	w.seq++
	heap.Push(&w.queue, event{t, w.seq, fn})
}

func (w *world) after(d time.Duration, fn func()) { w.at(w.now+int64(d), fn) }

// run processes events until done or the deadline; true if done.
func (w *world) run(limit time.Duration, done func() bool) bool {
	deadline := w.now + int64(limit)
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

func (w *world) add(id node.ID) *simNode {
	n := &simNode{w: w, id: id}
	w.nodes[id] = n
	return n
}

// Now implements node.Env.
func (n *simNode) Now() int64 { return n.w.now + int64(n.skew) }

// After implements node.Env.
func (n *simNode) After(d time.Duration, fn func()) {
	life := n.life
	n.w.after(d, func() {
		if n.life == life {
			fn()
		}
	})
}

// Send implements node.Env.
func (n *simNode) Send(to node.ID, m wire.Message) {
	w := n.w
	if n.down {
		return
	}
	w.observe(n.id, m)
	if w.lost != nil && w.lost(m) {
		return
	}
	asynchronous := w.now < w.heal
	if asynchronous && w.rng.Float64() < w.loss {
		return
	}
	delay := 50*time.Microsecond + time.Duration(w.rng.Int64N(int64(400*time.Microsecond)))
	if asynchronous && w.rng.IntN(4) == 0 {
		delay += time.Duration(w.rng.Int64N(int64(w.maxDelay)))
	}
	if w.codec {
		var err error
		if m, err = wire.Unmarshal(wire.Marshal(nil, m)); err != nil {
			panic(err)
		}
	}
	deliver := func() {
		if dst := w.nodes[to]; dst != nil && !dst.down {
			w.trace = w.trace*1099511628211 ^ uint64(w.now) ^ uint64(to)<<40 ^ uint64(n.id)<<50
			dst.handle(n.id, m)
		}
	}
	w.after(delay, deliver)
	if asynchronous && w.rng.IntN(50) == 0 {
		w.after(3*delay, deliver) // a duplicate
	}
}
