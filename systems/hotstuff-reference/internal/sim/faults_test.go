package sim

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
)

// mac is a scheme in which only a replica itself makes its shares, since no other code here calls
// Sign.
type mac struct{ id int }

func share(id int, text []byte) []byte {
	h := fnv.New64a()
	h.Write([]byte{byte(id), 77, byte(id >> 8)})
	h.Write(text)
	return binary.BigEndian.AppendUint64(nil, h.Sum64())
}

// Sign implements replica.Scheme.
func (m mac) Sign(text []byte) []byte { return share(m.id, text) }

// Combine implements replica.Scheme.
func (m mac) Combine(text []byte, signers []uint16, shares [][]byte) (signature []byte, wrong []uint16) {
	for i, s := range signers {
		if !slices.Equal(shares[i], share(int(s), text)) {
			wrong = append(wrong, s)
		}
		signature = append(signature, shares[i]...)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return signature, nil
}

// Verify implements replica.Scheme.
func (m mac) Verify(text []byte, signers []uint16, signature []byte) bool {
	var want []byte
	for _, s := range signers {
		want = append(want, share(int(s), text)...)
	}
	return slices.Equal(want, signature)
}

// liar is the environment of a Byzantine replica. The replica itself is correct. liar changes its
// outgoing messages, and signs votes of its own.
type liar struct {
	*simReplica
	rng *rand.Rand
	cfg replica.Config
	qcs []*message.QC // certificates that it has seen; the oldest are dropped first
	// votes for blocks that the liar has made in addition to its replica's, by ballot and by voter.
	votes map[ballot]map[uint16][]byte
}

// ballot is the phase, view and block of a vote.
type ballot struct {
	phase message.Phase
	view  message.View
	block message.Digest
}

// liarsClient is the first client of commands that liars invent; the liar's index is added.
const liarsClient = 9000

// hear gets a message before the replica does. The liar votes for every proposal, also for two
// blocks of a view, in all phases.
func (l *liar) hear(from int, m message.Message) {
	switch m := m.(type) {
	case *message.Vote:
		l.collect(from, m)
	case *message.Proposal:
		l.see(m.Block.Justify)
		if l.rng.IntN(3) > 0 {
			l.voteFor(m.Block)
		}
	case *message.Announce:
		l.see(m.QC)
	case *message.NewView:
		l.see(m.HighQC)
	}
}

func (l *liar) see(qc *message.QC) {
	if qc == nil || qc.Phase == message.PreCommit || qc.Phase == message.Commit {
		return
	}
	if l.qcs = append(l.qcs, qc); len(l.qcs) > 20 {
		l.qcs = l.qcs[1:]
	}
}

func (l *liar) voteFor(b *message.Block) {
	l.s.coverage.doubleVotes++
	phases := []message.Phase{message.Generic}
	next := b.View + 1
	if l.cfg.Protocol == replica.Basic {
		phases, next = []message.Phase{message.Prepare, message.PreCommit, message.Commit}, b.View
	}
	for _, p := range phases {
		to := int(uint64(next) / uint64(l.cfg.Tenure) % uint64(l.cfg.N))
		v := &message.Vote{Phase: p, View: b.View, Block: b.Digest(), Signature: l.cfg.Scheme.Sign(message.VoteText(p, b.View, b.Digest()))}
		if to != l.id { // its own leader counts no second vote of it
			l.simReplica.Send(to, v)
		}
	}
}

// collect makes certificates of the liar's other blocks, with its own votes. It sends them to
// nearly all replicas, or keeps them for its next proposals.
func (l *liar) collect(from int, v *message.Vote) {
	b := ballot{v.Phase, v.View, v.Block}
	votes := l.votes[b]
	if votes == nil {
		return // of a block that its replica has made
	}
	votes[uint16(from)] = v.Signature
	if len(votes) != l.cfg.Quorum {
		return
	}
	text := message.VoteText(v.Phase, v.View, v.Block)
	signers := slices.Sorted(maps.Keys(votes))
	var shares [][]byte
	for _, s := range signers {
		shares = append(shares, votes[s])
	}
	signature, wrong := l.cfg.Scheme.Combine(text, signers, shares)
	if len(wrong) > 0 {
		return
	}
	qc := &message.QC{Phase: v.Phase, View: v.View, Block: v.Block, Signers: signers, Signature: signature}
	l.s.coverage.otherQCs++
	l.see(qc)
	for i := range l.cfg.N {
		if i != l.id && l.rng.IntN(6) > 0 {
			l.simReplica.Send(i, &message.Announce{QC: qc})
		}
	}
}

// Send may change a message or lose it.
func (l *liar) Send(to int, m message.Message) {
	if l.rng.IntN(3) == 0 {
		l.simReplica.Send(to, m)
		return
	}
	switch old := m.(type) {
	case *message.Proposal:
		m = l.equivocate(to, old)
	case *message.Vote:
		x := *old
		if l.rng.IntN(2) == 0 {
			x.Signature = []byte("wrong")
		}
		m = &x
	case *message.NewView:
		x := *old
		x.View += message.View(l.rng.IntN(5))
		x.HighQC, x.CommitQC = l.oldQC(x.HighQC), nil
		m = &x
	case *message.Announce, *message.Blocks:
		if l.rng.IntN(2) == 0 {
			return
		}
	}
	l.simReplica.Send(to, m)
}

// equivocate proposes another block of the same view to half of the replicas: with its own command,
// or below an older certificate, or both.
func (l *liar) equivocate(to int, p *message.Proposal) message.Message {
	if to%2 == l.rng.IntN(8)/7 { // nearly always the same half
		return p
	}
	l.s.coverage.equivocations++
	view := uint64(p.Block.View)
	commands := []message.Command{{CommandID: message.CommandID{Client: liarsClient + uint64(l.id), Sequence: view}}}
	justify := p.Block.Justify
	if l.rng.IntN(2) == 0 {
		justify = l.oldQC(justify)
	}
	b := message.NewBlock(p.Block.View, commands, justify)
	for phase := message.Generic; phase <= message.Commit; phase++ {
		vote := l.cfg.Scheme.Sign(message.VoteText(phase, b.View, b.Digest()))
		at := ballot{phase, b.View, b.Digest()}
		if l.votes[at] == nil {
			l.votes[at] = map[uint16][]byte{uint16(l.id): vote}
		}
	}
	l.voteFor(b)
	return &message.Proposal{Block: b}
}

// oldQC is one of the certificates that the liar has seen, not later than the given one.
func (l *liar) oldQC(than *message.QC) *message.QC {
	l.s.coverage.oldQCs++
	for _, i := range l.rng.Perm(len(l.qcs)) {
		if l.qcs[i].View < than.View {
			return l.qcs[i]
		}
	}
	return than
}

// mutation breaks the protocol in one place.
type mutation struct {
	config   func(*replica.Config)
	patience time.Duration // after GST; 0: as long as without a mutation
	amnesia  bool          // replicas lose their state in an outage
	liars    bool          // all faulty replicas lie
}
