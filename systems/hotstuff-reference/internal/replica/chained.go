package replica

import (
	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// onProposal handles a leader's proposal, in either protocol.
func (r *Replica) onProposal(from int, p *message.Proposal) {
	b := p.Block
	if b == nil || b.View == 0 || r.leader(b.View) != from || b.Justify == nil || b.Justify.View >= b.View {
		return
	}
	if b.Size() > r.cfg.Limits.BlockBytes+blockSlack || !r.valid(b.Justify, r.justifies()) {
		return
	}
	r.adopt(p.Ancestors, b.Justify)
	r.learn(from, b.Justify) // in the chained protocol this may enter b's view
	switch {
	case b.View < r.view || b.View < r.wish:
	case b.View > r.view:
		r.early[from] = p
	default:
		r.consider(from, p)
	}
}

// consider votes for a proposal of the replica's present view, if its parent is there and it is
// safe.
func (r *Replica) consider(from int, p *message.Proposal) {
	b := p.Block
	phase := r.justifies() // both protocols name the first vote after the resulting certificate
	if !r.votedBefore(phase, b.View) {
		return
	}
	if r.tree.parent(b) == nil {
		r.early[from] = p // considered again when the parent has come
		r.need(from, b.Justify)
		return
	}
	if r.cfg.Protocol == Chained {
		r.update(b.Justify) // a replica that votes for b is locked on the parent of b's parent
	}
	full := len(b.Commands) > 0 && r.tree.openBytes+b.Size() > r.cfg.Limits.OpenBytes
	if full || !r.safeNode(b) || !r.vote(phase, b.View, b.Digest()) {
		return // Algorithm 2, lines 9 and 10; Algorithm 3, lines 15 and 16
	}
	r.tree.add(b)
	r.connected(b)
	if r.cfg.Protocol == Chained {
		r.enter(b.View + 1)
	}
}

// update handles a certificate of the block b”: update of Algorithm 4. It is Algorithm 3, lines 17
// to 22, with two differences that the paper's Section 5 has, too. A certificate of b” counts in
// any message. A replica locks b' even if blank nodes are between the two blocks.
func (r *Replica) update(qc *message.QC) {
	b2 := r.tree.get(qc.Block) // b”
	if b2 == nil || b2.Justify == nil {
		return
	}
	// Commit phase on b', the parent of b”: lockedQC <- b”.justify.
	if b2.Justify.View > r.lockedQC.View {
		r.lockedQC = b2.Justify
	}
	b1 := r.tree.parent(b2) // b'
	if b1 == nil || b1.Justify == nil {
		return
	}
	b0 := r.tree.parent(b1) // b
	if b0 == nil {
		return
	}
	// Decide phase on b: no blank nodes are between b, b' and b”.
	if b2.View == b1.View+1 && b1.View == b0.View+1 {
		r.commit(b0)
	}
}
