package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/wire"
)

// scenario is one run. The seed determines all of it.
type scenario struct {
	*world
	mut    mutation
	layout quorum.Layout
	keys   []wire.Key

	replicas []*simReplica
	clients  []*simClient
	probe    *simNode
	retain   time.Duration
	batch    int
	coverage coverage

	history history
}

// coverage counts which paths a run has taken. The test requires that the seeds together reach
// every path.
type coverage struct {
	commits, aborts, slow, fallbacks, recoveries, recovered, deps, decFB, learned, settled, timeouts uint64

	stalledEarly, stalledLate, equivocated uint64
}

type simReplica struct {
	*simNode
	s       *scenario
	correct bool // keeps its promises and is up at the end
	lies    bool
	r       *replica.Replica
}

type simClient struct {
	*simNode
	c        *client.Client
	correct  bool
	left     int // transactions still to commit
	attempts int
	finished bool

	misbehavior client.Misbehavior
	frequency   int // it misbehaves in one of so many transactions
}

func newChecker(l quorum.Layout) *quorum.Checker {
	return &quorum.Checker{Layout: l, Verifier: auth.NewVerifier(auth.MAC{}, l.Replicas())}
}

func newScenario(seed uint64, mut mutation) *scenario {
	s := &scenario{world: newWorld(seed), mut: mut}
	r := s.rng
	f := 1
	if r.IntN(20) == 0 {
		f = 2
	}
	s.layout = quorum.Layout{Sizes: quorum.For(f), Shards: 1 + r.IntN(2)}
	if mut.sizes != nil {
		mut.sizes(&s.layout.Sizes)
	}
	for i := range 3 + r.IntN(6) {
		s.keys = append(s.keys, wire.TableKey(1, uint64(i)))
	}
	s.codec = seed%8 == 0
	s.heal = s.now + int64(time.Duration(r.IntN(1500))*time.Millisecond)
	s.loss = []float64{0, 0.02, 0.1, 0.25}[r.IntN(4)]
	s.maxDelay = []time.Duration{time.Millisecond, 10 * time.Millisecond, 60 * time.Millisecond}[r.IntN(3)]
	s.batch = 1 + r.IntN(4)
	s.retain = 30 * time.Second
	if r.IntN(5) == 0 {
		s.retain = 300 * time.Millisecond
	}
	s.history = newHistory(newChecker(s.layout))
	s.observe = s.history.observe
	s.lost = mut.lost
	s.probe = s.add(node.FirstClient + 1000)
	s.probe.handle = func(node.ID, wire.Message) {}
	s.addReplicas()
	s.addClients()
	return s
}

func (s *scenario) addReplicas() {
	for i := range s.layout.Replicas() {
		n := &simReplica{simNode: s.add(node.ID(i)), s: s, correct: true}
		n.skew = time.Duration(s.rng.Int64N(int64(2 * time.Millisecond)))
		s.replicas = append(s.replicas, n)
	}
	for shard := range s.layout.Shards {
		for _, i := range s.rng.Perm(s.layout.N)[:s.layout.F] {
			s.makeFaulty(s.replicas[s.layout.First(shard)+i])
		}
	}
	for _, n := range s.replicas {
		n.start()
		// Any replica may be cut off for a while, and keeps its memory.
		if s.mut.amnesia || s.rng.IntN(3) == 0 {
			s.outage(n, s.mut.amnesia)
		}
	}
}

func (s *scenario) makeFaulty(n *simReplica) {
	kind := s.rng.IntN(5)
	if s.mut.liars {
		kind = 0
	}
	switch kind {
	case 0:
		n.correct, n.lies = false, true
	case 1: // crashes for good
		n.correct = false
		s.after(time.Duration(s.rng.Int64N(int64(time.Second))), func() { n.down = true; n.life++ })
	case 2: // silent from the start
		n.correct, n.down = false, true
	case 3: // comes back without its memory
		n.correct = false
		s.outage(n, true)
	}
}

func (s *scenario) outage(n *simReplica, amnesia bool) {
	from := time.Duration(s.rng.Int64N(int64(800 * time.Millisecond)))
	s.after(from, func() {
		if n.down {
			return
		}
		n.down = true
		s.after(time.Duration(s.rng.Int64N(int64(300*time.Millisecond))), func() {
			n.down = false
			if amnesia {
				n.life++
				n.start()
			}
		})
	})
}

func (n *simReplica) start() {
	rules := replica.AllRules()
	if n.s.mut.rules != nil {
		rules = n.s.mut.rules(rules)
	}
	var env node.Env = n.simNode
	if n.lies {
		env = &liar{Env: n.simNode, rng: rand.New(rand.NewPCG(n.s.rng.Uint64(), 5)), index: int(n.id)}
	}
	n.r = replica.New(replica.Config{
		Index: int(n.id), Checker: newChecker(n.s.layout), Signer: auth.MAC{Replica: int(n.id)}, Rules: rules,
		BatchSize: n.s.batch, BatchTimeout: 500 * time.Microsecond, Retain: n.s.retain,
		SyncInterval: 100 * time.Millisecond, UnknownDependency: 50 * time.Millisecond,
	}, env)
	n.handle = n.r.Handle
}

func (s *scenario) addClients() {
	for i := range 3 + s.rng.IntN(3) {
		n := &simClient{simNode: s.add(node.FirstClient + node.ID(i)), correct: true, left: 3 + s.rng.IntN(4)}
		n.skew = time.Duration(s.rng.Int64N(int64(4 * time.Millisecond)))
		var env node.Env = n.simNode
		var eq *equivocator
		switch {
		case i > 0 && s.mut.misbehaving:
			s.misbehave(n)
		case i > 0:
			switch s.rng.IntN(8) {
			case 0:
				env = s.stall(n, func(m wire.Message) bool { _, ok := m.(*wire.ST1); return ok })
			case 1:
				env = s.stall(n, func(m wire.Message) bool { _, ok := m.(*wire.ST2); return ok })
			case 2:
				env = s.stall(n, func(m wire.Message) bool { _, ok := m.(*wire.Writeback); return ok })
			case 3, 4:
				eq = &equivocator{simNode: n.simNode, c: newChecker(s.layout), votes: map[wire.TxID]map[wire.Decision]map[uint16]wire.Proof{}}
				env, n.correct = eq, false
			}
		}
		n.c = client.New(s.clientConfig(), env)
		n.handle = func(from node.ID, m wire.Message) {
			if eq != nil {
				eq.note(m)
			}
			n.c.Handle(from, m)
		}
		s.clients = append(s.clients, n)
		s.after(time.Duration(s.rng.Int64N(int64(20*time.Millisecond))), func() { s.next(n, uint32(i)) })
	}
}

// misbehave makes a client, with a probability above one half, one of the Byzantine clients of
// experiments.
func (s *scenario) misbehave(n *simClient) {
	n.misbehavior = client.Misbehavior(s.rng.IntN(4))
	n.frequency = 1 + s.rng.IntN(3)
	if n.misbehavior != client.Behave {
		n.correct, n.left = false, 30
	}
}

func (s *scenario) stall(n *simClient, matches func(wire.Message) bool) node.Env {
	n.correct = false
	return &staller{simNode: n.simNode, matches: matches, left: 1 + s.rng.IntN(3*s.layout.N)}
}

func (s *scenario) clientConfig() client.Config {
	cfg := client.Config{
		Checker: newChecker(s.layout), Genesis: func(wire.Key) []byte { return []byte("genesis") },
		FastPath: s.rng.IntN(3) > 0, FastPathTimeout: 2 * time.Millisecond,
		ReadQuorum: s.layout.F*(1+s.rng.IntN(2)) + 1, DependencyTimeout: 8 * time.Millisecond, RetryInterval: 30 * time.Millisecond,
	}
	if s.mut.client != nil {
		s.mut.client(&cfg)
	}
	return cfg
}

// next runs a client's next transaction, and repeats it until it commits.
func (s *scenario) next(n *simClient, id uint32) {
	if n.left == 0 {
		n.finished = true
		return
	}
	keys := slices.Clone(s.keys)
	s.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:1+s.rng.IntN(min(3, len(keys)))]
	slices.Sort(keys)
	writes := s.rng.IntN(6) > 0
	s.attempt(n, id, keys, writes)
}

func (s *scenario) attempt(n *simClient, id uint32, keys []wire.Key, writes bool) {
	req := client.Request{Client: id, Keys: keys, Timeout: 8 * time.Second}
	if n.misbehavior != client.Behave && n.left%n.frequency == 0 {
		req.Misbehavior = n.misbehavior
	}
	if writes {
		// At least one row is written; each value is unique.
		req.Update = func(rows []client.Row) []wire.Write {
			var out []wire.Write
			for i, r := range rows {
				if i == 0 || s.rng.IntN(3) > 0 {
					out = append(out, wire.Write{Key: r.Key, Value: binary.AppendUvarint([]byte{byte(id)}, s.rng.Uint64())})
				}
			}
			return out
		}
	}
	req.Done = func(res client.Result) {
		s.history.ended(n, res)
		if res.Outcome == client.TimedOut {
			s.coverage.timeouts++
		}
		retry := res.Outcome != client.Committed && res.Outcome != client.Abandoned
		n.attempts++
		pause := time.Duration(s.rng.Int64N(int64(3*time.Millisecond) * int64(min(n.attempts, 40))))
		if !retry {
			n.left--
			n.attempts = 0
		}
		n.After(pause, func() {
			if retry {
				s.attempt(n, id, keys, writes)
			} else {
				s.next(n, id)
			}
		})
	}
	n.c.Begin(req)
}

// execute runs the scenario to its end and returns the first error.
func (s *scenario) execute() error {
	if !s.run(60*time.Second, s.clientsDone) {
		return fmt.Errorf("%w: correct clients still have %v transactions to commit after 60 s", errStuck, s.remaining())
	}
	s.heal = min(s.heal, s.now)
	// A new client reads and writes every row once more. On its way it has to finish the
	// transactions that stalled clients left.
	for _, n := range s.clients {
		if !n.correct {
			n.down = true
			n.life++
		}
	}
	s.run(20*time.Millisecond, func() bool { return false }) // longer than all clock skew
	last := &simClient{simNode: s.add(node.FirstClient + 500), correct: true, left: 1}
	last.c = client.New(s.clientConfig(), last.simNode)
	last.handle = last.c.Handle
	s.clients = append(s.clients, last)
	s.attempt(last, 500, s.keys, true)
	if !s.run(60*time.Second, func() bool { return last.left == 0 }) {
		return fmt.Errorf("%w: reading and writing all rows did not commit within 60 s", errStuck)
	}
	s.run(4*time.Second, func() bool { return false }) // replicas catch up meanwhile
	s.collect()
	return s.history.check(s)
}

func (s *scenario) clientsDone() bool {
	return !slices.ContainsFunc(s.clients, func(n *simClient) bool { return n.correct && n.left > 0 })
}

func (s *scenario) remaining() (out []int) {
	for _, n := range s.clients {
		if n.correct {
			out = append(out, n.left)
		}
	}
	return out
}

func (s *scenario) collect() {
	c := &s.coverage
	for _, n := range s.clients {
		k := n.c.Counters
		c.commits += k.FastPathCommits + k.SlowPathCommits
		c.aborts += k.FastPathAborts + k.SlowPathAborts
		c.slow += k.SlowPathCommits + k.SlowPathAborts
		c.fallbacks += k.Fallbacks
		c.recoveries += k.Recoveries
		c.recovered += k.Recovered
		c.stalledEarly += k.StalledEarly
		c.stalledLate += k.StalledLate
		c.equivocated += k.Equivocated
		c.deps += k.Dependencies
		c.learned += k.LearnedDecisions
	}
	c.decFB, c.settled = s.history.decFB, s.history.settledReads
}
