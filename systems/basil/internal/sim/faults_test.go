package sim

import (
	"math/rand/v2"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/wire"
)

// liar is the Env of a Byzantine replica. The replica itself is correct, and liar changes its
// outgoing statements and signs them again with the replica's key.
type liar struct {
	node.Env
	rng   *rand.Rand
	index int
}

func (l *liar) sign(statement []byte) wire.Proof {
	root, _ := auth.Tree([][32]byte{auth.Leaf(statement)})
	return wire.Proof{Replica: uint16(l.index), Sig: auth.MAC{Replica: l.index}.Sign(root)}
}

// Send sends different votes and logged decisions to different receivers, and invents versions.
func (l *liar) Send(to node.ID, m wire.Message) {
	if l.rng.IntN(2) == 0 {
		l.Env.Send(to, m)
		return
	}
	flip := func(d wire.Decision) wire.Decision { return wire.Commit + wire.Abort - d }
	switch old := m.(type) {
	case *wire.ST1R:
		x := *old
		x.Vote, x.Conflict = flip(x.Vote), nil
		x.Proof = l.sign(x.Statement())
		m = &x
	case *wire.ST2R:
		x := *old
		x.Decision = flip(x.Decision)
		x.ViewCurrent += uint32(l.rng.IntN(3))
		x.Proof = l.sign(x.Statement())
		m = &x
	case *wire.ElectFB:
		x := *old
		x.Decision = flip(x.Decision)
		x.Proof = l.sign(x.Statement())
		m = &x
	case *wire.DecFB:
		x := *old
		x.Decision = flip(x.Decision)
		x.Proof = l.sign(x.Statement())
		m = &x
	case *wire.ReadReply:
		m = l.inventVersions(old)
	}
	l.Env.Send(to, m)
}

func (l *liar) inventVersions(old *wire.ReadReply) wire.Message {
	x := &wire.ReadReply{Req: old.Req, Status: old.Status, Attached: old.Attached}
	for _, row := range old.Rows {
		switch l.rng.IntN(4) {
		case 0: // forgets all state
			row = wire.Row{}
		case 1: // a settled version that no client wrote
			row = wire.Row{Kind: wire.Settled, Version: wire.Timestamp{Time: epoch + 1, Client: 9}, Value: []byte("lie")}
		case 2: // a prepared version that no client wrote
			row.Prepared = &wire.PreparedRow{Version: wire.Timestamp{Time: l.Now() - 1, Client: 9}, Value: []byte("lie")}
		}
		x.Rows = append(x.Rows, row)
	}
	x.Seal()
	x.Proof = l.sign(x.Statement)
	return x
}

// staller is the Env of a client that becomes silent for good in the middle of sending: after a
// number of messages of one kind.
type staller struct {
	*simNode
	matches func(wire.Message) bool
	left    int
}

func (s *staller) Send(to node.ID, m wire.Message) {
	s.simNode.Send(to, m)
	if !s.matches(m) {
		return
	}
	if s.left--; s.left == 0 {
		s.down = true
		s.life++
	}
}

// equivocator is the Env of a Byzantine client. If the votes allow both decisions, it asks half of
// the logging shard to log one and half the other, and never finishes (equiv-real in the
// evaluation).
type equivocator struct {
	*simNode
	c     *quorum.Checker
	votes map[wire.TxID]map[wire.Decision]map[uint16]wire.Proof
}

func (e *equivocator) note(m wire.Message) {
	v, ok := m.(*wire.ST1R)
	if !ok || !e.c.Verify(&v.Proof, v.Statement()) {
		return
	}
	byVote := e.votes[v.ID]
	if byVote == nil {
		byVote = map[wire.Decision]map[uint16]wire.Proof{wire.Commit: {}, wire.Abort: {}}
		e.votes[v.ID] = byVote
	}
	byVote[v.Vote][v.Proof.Replica] = v.Proof
}

func (e *equivocator) Send(to node.ID, m wire.Message) {
	st2, ok := m.(*wire.ST2)
	if !ok {
		e.simNode.Send(to, m)
		return
	}
	d := wire.Decision(1 + int(to)%2)
	if x := e.alternative(st2.Tx, d); x != nil {
		m = x
	}
	e.simNode.Send(to, m)
	if int(to)%e.c.N == e.c.N-1 {
		e.down = true // stalls after its ST2
		e.life++
	}
}

func (e *equivocator) alternative(tx *wire.Tx, d wire.Decision) *wire.ST2 {
	m := &wire.ST2{Tx: tx, Decision: d}
	for _, s := range tx.Shards(e.c.ShardOf) {
		v := wire.ShardVotes{Shard: uint16(s), Vote: d}
		for i := e.c.First(s); i < e.c.First(s)+e.c.N; i++ {
			if p, voted := e.votes[tx.ID()][d][uint16(i)]; voted {
				v.Proofs = append(v.Proofs, p)
			}
		}
		if len(v.Proofs) > 0 {
			m.Votes = append(m.Votes, v)
		}
	}
	if !e.c.Loggable(m) {
		return nil
	}
	return m
}

var (
	_ node.Env = (*liar)(nil)
	_ node.Env = (*staller)(nil)
	_ node.Env = (*equivocator)(nil)
)

// mutation breaks the protocol in one place.
type mutation struct {
	name    string
	sizes   func(*quorum.Sizes)
	rules   func([]replica.Rule) []replica.Rule
	amnesia bool // every replica that recovers has lost its memory
	liars   bool // every run has Byzantine replicas
	client  func(*client.Config)
	// misbehaving is not a mutation: most clients repeatedly misbehave on purpose, as in
	// experiments, instead of becoming silent for good.
	misbehaving bool
	// lost messages never arrive. Nil: no messages are lost.
	lost func(wire.Message) bool
}

func without(name string) func([]replica.Rule) []replica.Rule {
	return func(rules []replica.Rule) []replica.Rule {
		var out []replica.Rule
		for _, r := range rules {
			if r.Name != name {
				out = append(out, r)
			}
		}
		return out
	}
}
