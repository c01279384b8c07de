package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	capnp "capnproto.org/go/capnp/v3"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
	"assay.dev/assay/systems/hotstuff-reference/internal/wire"
)

// errStuck marks failures of liveness; all others are failures of safety.
var errStuck = errors.New("no progress")

// Fates of replicas.
type fate int

const (
	correct fate = iota // up at the end, with its whole state
	silent              // from the start
	crashes             // at some time, for good
	lies
)

// scenario is one history. The seed determines all of it.
type scenario struct {
	*world
	mut      mutation
	cfg      replica.Config // except for ID and Scheme
	replicas []*simReplica
	clients  []*simClient
	coverage coverage
	codec    bool // messages go through Cap'n Proto

	// The log of correct replicas, from the first of them at each position.
	log      []message.Digest
	commands map[message.CommandID]bool // executed commands, from the same
	errs     []error
}

// simReplica is a replica and its environment.
type simReplica struct {
	node
	s         *scenario
	fate      fate
	r         *replica.Replica
	env       replica.Env // the replica's Env: this object, or a liar around it
	liar      *liar
	timer     int // the number of the latest timer
	committed int
	executed  map[message.CommandID]bool
	waiting   map[message.CommandID]*simClient
}

// simClient waits for one command at a time, and resends it until f+1 replicas have answered.
type simClient struct {
	node
	s       *scenario
	next    uint64
	left    int
	last    bool // its last command, which comes after GST, has begun
	answers map[int]bool
}

// coverage counts which paths a history has taken. The test requires that all histories together
// reach every path.
type coverage struct {
	blocks, empty, repeated, viewsLeft, fetched, wrongShares                 uint64
	equivocations, doubleVotes, oldQCs, otherQCs, outages, partitions, liars uint64
}

func newScenario(seed uint64, mut mutation) *scenario {
	s := &scenario{
		world: &world{rng: rand.New(rand.NewPCG(seed, 99))}, mut: mut,
		commands: map[message.CommandID]bool{},
	}
	r := s.rng
	n := 4
	if r.IntN(4) == 0 {
		n = 7
	}
	s.codec = seed%8 == 0
	s.heal = s.duration(3 * time.Second)
	s.loss = []float64{0, 0.02, 0.1, 0.3}[r.IntN(4)]
	s.maxDelay = []time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}[r.IntN(3)]
	s.cfg = replica.Config{
		Sizes: replica.SizesFor(n), Protocol: replica.Protocol(r.IntN(2)), Tenure: 1 + r.IntN(6),
		BatchSize: []int{0, 1, 3}[r.IntN(3)], Truncate: r.IntN(2) == 0, Filter: r.IntN(2) == 0,
		Timeout: 100 * time.Millisecond, MaxTimeout: 2 * time.Second, Rules: replica.SafeNodeRules(),
	}
	s.addReplicas()
	// See Config.Tenure. A lying leader may spoil the next one's tenure, too.
	if s.cfg.Protocol == replica.Chained && (s.leadersInARow()-1)*s.cfg.Tenure < 4 {
		s.cfg.Tenure = max(s.cfg.Tenure, 4)
	}
	if mut.config != nil {
		mut.config(&s.cfg)
	}
	for _, n := range s.replicas {
		n.start()
	}
	s.addClients()
	s.addPartitions()
	return s
}

// leadersInARow is the longest run of correct replicas in the order in which they lead.
func (s *scenario) leadersInARow() int {
	longest, run := 0, 0
	for i := range 2 * s.cfg.N {
		if run++; s.replicas[i%s.cfg.N].fate != correct {
			run = 0
		}
		longest = max(longest, run)
	}
	return min(longest, s.cfg.N)
}

func (s *scenario) addReplicas() {
	faulty := map[int]fate{}
	most := s.cfg.F
	for len(faulty) < most {
		i := s.rng.IntN(s.cfg.N)
		if faulty[i] != 0 {
			continue
		}
		faulty[i] = fate(1 + s.rng.IntN(3))
		if s.mut.liars || s.rng.IntN(3) == 0 {
			faulty[i] = lies
		} else if s.rng.IntN(4) == 0 {
			most-- // sometimes fewer than f are faulty
			delete(faulty, i)
		}
	}
	for i := range s.cfg.N {
		n := &simReplica{
			node: node{w: s.world, id: i}, s: s, fate: faulty[i],
			executed: map[message.CommandID]bool{}, waiting: map[message.CommandID]*simClient{},
		}
		s.replicas = append(s.replicas, n)
		switch n.fate {
		case correct:
			if s.rng.IntN(3) == 0 {
				s.outage(n)
			}
		case silent:
			n.down = true
		case crashes:
			s.after(s.duration(s.heal+time.Second), func() { n.down = true })
		case lies:
			s.coverage.liars++
		}
	}
}

// outage cuts a correct replica off for a while. It keeps its state, unless a mutation makes it
// forget.
func (s *scenario) outage(n *simReplica) {
	s.coverage.outages++
	s.after(s.duration(s.heal+time.Millisecond), func() {
		n.down = true
		s.after(min(s.duration(time.Second), max(s.heal-s.now, 0)), func() {
			n.down = false
			if s.mut.amnesia {
				n.start()
			}
		})
	})
}

// addPartitions splits the replicas in two now and then, until the network heals.
func (s *scenario) addPartitions() {
	if s.rng.IntN(2) == 0 {
		return
	}
	var split func()
	split = func() {
		if s.now >= s.heal {
			s.side = nil
			return
		}
		s.coverage.partitions++
		mask := s.rng.Uint64()
		s.side = func(i int) int { return int(mask>>i) & 1 }
		s.after(s.duration(600*time.Millisecond), func() {
			s.side = nil
			s.after(s.duration(300*time.Millisecond), split)
		})
	}
	s.after(s.duration(500*time.Millisecond), split)
}

func (s *scenario) addClients() {
	for i := range 2 + s.rng.IntN(4) {
		c := &simClient{node: node{w: s.world, id: firstClient + i}, s: s, left: 2 + s.rng.IntN(8)}
		s.clients = append(s.clients, c)
		s.after(s.duration(50*time.Millisecond), c.begin)
	}
}

func (c *simClient) begin() {
	if c.left == 0 && !c.last {
		// A replica that has missed the end of the log notices that only with the next command.
		c.last, c.left = true, 1
		c.s.after(max(c.s.heal-c.s.now, 0)+c.s.duration(100*time.Millisecond), c.begin)
		return
	}
	if c.left == 0 {
		return
	}
	c.answers = map[int]bool{}
	c.send(c.next)
}

// send the command to all replicas, and repeat that until it is done.
func (c *simClient) send(sequence uint64) {
	if c.next != sequence || c.left == 0 {
		return
	}
	command := message.Command{
		CommandID: message.CommandID{Client: uint64(c.id), Sequence: sequence}, Payload: []byte{byte(c.left)},
	}
	for _, n := range c.s.replicas {
		c.s.deliver(&c.node, &n.node, func() { n.submit(c, command) })
	}
	c.s.after(200*time.Millisecond, func() { c.send(sequence) })
}

func (c *simClient) answered(from *simReplica, id message.CommandID) {
	if id.Sequence != c.next || c.left == 0 || c.answers[from.id] {
		return
	}
	c.answers[from.id] = true
	if len(c.answers) < c.s.cfg.F+1 {
		return
	}
	if !c.s.commands[id] {
		c.s.fail("%v was answered, and no correct replica has executed it", id)
	}
	c.next++
	c.left--
	c.s.after(c.s.duration(100*time.Millisecond), c.begin)
}

func (s *scenario) fail(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}

// start makes the replica, or makes it anew without its state.
func (n *simReplica) start() {
	cfg := n.s.cfg
	cfg.ID, cfg.Scheme = n.id, mac{n.id}
	n.env = n
	if n.fate == lies {
		n.liar = &liar{simReplica: n, rng: rand.New(rand.NewPCG(n.s.rng.Uint64(), 5)), cfg: cfg, votes: map[ballot]map[uint16][]byte{}}
		n.env = n.liar
	}
	r, err := replica.New(cfg, n.env)
	if err != nil {
		panic(err)
	}
	n.r, n.committed = r, 0
	n.timer++
	clear(n.executed)
}

func (n *simReplica) submit(c *simClient, command message.Command) {
	if n.liar != nil && n.liar.rng.IntN(2) == 0 {
		n.answer(c, command.CommandID) // though it has not executed it
	}
	n.waiting[command.CommandID] = c
	if executed, _ := n.r.Submit(command); executed {
		n.answer(c, command.CommandID)
	}
}

func (n *simReplica) answer(c *simClient, id message.CommandID) {
	n.s.deliver(&n.node, &c.node, func() { c.answered(n, id) })
}

// Send implements replica.Env.
func (n *simReplica) Send(to int, m message.Message) {
	dst := n.s.replicas[to]
	if n.s.codec {
		m = sent(m)
	}
	n.s.deliver(&n.node, &dst.node, func() {
		if dst.liar != nil {
			dst.liar.hear(n.id, m)
		}
		dst.r.Handle(n.id, m)
		if err := dst.r.Broken(); err != nil && dst.fate != lies {
			n.s.fail("replica %d: %w", dst.id, err)
		}
	})
}

// sent is a message after encoding and decoding.
func sent(m message.Message) message.Message {
	_, segment, err := capnp.NewMessage(capnp.SingleSegment(nil))
	if err != nil {
		panic(err)
	}
	root, err := wire.NewRootMessage(segment)
	if err != nil {
		panic(err)
	}
	if err := wire.Write(root, m); err != nil {
		panic(err)
	}
	read, err := wire.Read(root)
	if err != nil {
		panic(err)
	}
	return read
}

// SetTimer implements replica.Env.
func (n *simReplica) SetTimer(d time.Duration) {
	n.timer++
	if d == 0 {
		return
	}
	set := n.timer
	n.s.after(d, func() { n.expire(set) })
}

func (n *simReplica) expire(set int) {
	switch {
	case n.timer != set:
	case n.down: // it still runs, but no message goes out
		n.s.after(10*time.Millisecond, func() { n.expire(set) })
	default:
		n.r.Timeout()
	}
}

// Commit implements replica.Env.
func (n *simReplica) Commit(b *message.Block, executed []message.Command) {
	for _, c := range executed {
		if client := n.waiting[c.CommandID]; client != nil {
			delete(n.waiting, c.CommandID)
			n.answer(client, c.CommandID)
		}
	}
	if n.fate == lies {
		return
	}
	first := n.committed == len(n.s.log)
	if first {
		n.s.log = append(n.s.log, b.Digest())
	} else if n.s.log[n.committed] != b.Digest() {
		n.s.fail("replica %d commits %v of view %d as block %d, where another one has committed %v",
			n.id, b.Digest(), b.View, n.committed, n.s.log[n.committed])
	}
	n.committed++
	for _, c := range executed {
		switch {
		case n.executed[c.CommandID]:
			n.s.fail("replica %d executes %v twice", n.id, c.CommandID)
		case c.Client < firstClient || c.Client >= liarsClient+uint64(n.s.cfg.N):
			n.s.fail("replica %d executes %v, which is of no client", n.id, c.CommandID)
		case first:
			n.s.commands[c.CommandID] = true
		case !n.s.commands[c.CommandID]:
			n.s.fail("replica %d executes %v, and another one with the same log does not", n.id, c.CommandID)
		}
		n.executed[c.CommandID] = true
	}
}

// patience is how long after GST all commands must be done. Timers are at most 2 s long.
const patience = 120 * time.Second

// execute runs the history to its end and returns the first error.
func (s *scenario) execute() error {
	s.run(s.heal, func() bool { return len(s.errs) > 0 })
	s.side = nil
	done := s.run(cmp.Or(s.mut.patience, patience), func() bool { return len(s.errs) > 0 || s.finished() })
	s.collect()
	if len(s.errs) > 0 {
		return s.errs[0]
	}
	if !done {
		return fmt.Errorf("%w within %v after GST: clients still have %v commands to execute, and replicas have executed %v",
			errStuck, patience, s.remaining(), s.progress())
	}
	return nil
}

// finished reports whether all correct replicas have executed all commands of clients.
func (s *scenario) finished() bool {
	for _, c := range s.clients {
		if c.left > 0 || !c.last {
			return false
		}
	}
	for _, n := range s.replicas {
		if n.fate != correct {
			continue
		}
		for _, c := range s.clients {
			if c.next > 0 && !n.executed[message.CommandID{Client: uint64(c.id), Sequence: c.next - 1}] {
				return false
			}
		}
	}
	return true
}

func (s *scenario) remaining() (left []int) {
	for _, c := range s.clients {
		left = append(left, c.left)
	}
	return left
}

func (s *scenario) progress() (executed []int) {
	for _, n := range s.replicas {
		executed = append(executed, len(n.executed))
	}
	return executed
}

func (s *scenario) collect() {
	c := &s.coverage
	for _, n := range s.replicas {
		k := n.r.Counters
		c.blocks += k.Blocks
		c.empty += k.EmptyBlocks
		c.repeated += k.Repeated
		c.viewsLeft += k.ViewsLeft
		c.fetched += k.Fetched
		c.wrongShares += k.WrongShares
	}
}
