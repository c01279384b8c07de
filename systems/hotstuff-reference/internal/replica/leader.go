package replica

import (
	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// collected is a leader's knowledge of the votes of others.
type collected struct {
	votes    map[message.Phase][]*message.Vote // the latest of each replica
	formed   message.View                      // of the latest certificate that this replica made,
	phase    message.Phase                     // and its phase
	proposed message.View                      // of the latest proposal of this replica
	untold   *message.QC                       // chained; made by this replica and not sent yet
}

// collector is the replica that makes a certificate from the votes. In the chained protocol it is
// the next leader (Algorithm 3, lines 23 to 25). In the basic one it is the view's leader
// (Algorithm 2, lines 12, 20, 28).
func (r *Replica) collector(phase message.Phase, view message.View) int {
	if phase == message.Generic {
		return r.leader(view + 1)
	}
	return r.leader(view)
}

// onVote collects a vote. It keeps one vote of each replica in each phase: a correct replica sends
// votes of ascending views.
func (r *Replica) onVote(from int, v *message.Vote) {
	if !r.collects(v) {
		return
	}
	if r.votes[v.Phase] == nil {
		r.votes[v.Phase] = make([]*message.Vote, r.cfg.N)
	}
	votes := r.votes[v.Phase]
	if old := votes[from]; old != nil && old.View >= v.View {
		return
	}
	votes[from] = v
	qc := r.combine(v, votes)
	if qc == nil {
		return
	}
	r.formed, r.phase = qc.View, qc.Phase
	if r.cfg.Protocol == Chained {
		r.untold = qc
		r.learn(from, qc)
	} else {
		r.broadcast(&message.Announce{QC: qc}) // Algorithm 2, lines 14, 22 and 30
	}
}

// collects reports whether this replica needs a vote.
func (r *Replica) collects(v *message.Vote) bool {
	generic := r.cfg.Protocol == Chained
	if generic != (v.Phase == message.Generic) || v.Phase < message.Generic || v.Phase > message.Commit {
		return false
	}
	if r.collector(v.Phase, v.View) != r.cfg.ID {
		return false
	}
	return v.View > r.formed || v.View == r.formed && v.Phase > r.phase
}

// combine makes a certificate if enough replicas have cast the same vote as v: QC(V) of Algorithm
// 1, lines 15 to 20. It drops votes with wrong signatures.
func (r *Replica) combine(v *message.Vote, votes []*message.Vote) *message.QC {
	for {
		var signers []uint16
		var shares [][]byte
		for i, o := range votes {
			if o != nil && o.View == v.View && o.Block == v.Block && len(signers) < r.cfg.Quorum {
				signers, shares = append(signers, uint16(i)), append(shares, o.Signature)
			}
		}
		if len(signers) < r.cfg.Quorum {
			return nil
		}
		text := message.VoteText(v.Phase, v.View, v.Block)
		signature, wrong := r.cfg.Scheme.Combine(text, signers, shares)
		if len(wrong) == 0 {
			qc := &message.QC{Phase: v.Phase, View: v.View, Block: v.Block, Signers: signers, Signature: signature}
			r.verified.add(qc)
			return qc
		}
		for _, s := range wrong {
			votes[s] = nil
			r.Counters.WrongShares++
		}
	}
}

// propose makes a proposal if this replica leads its view, may begin, and has commands to propose
// or an uncommitted branch. It reports whether it did.
func (r *Replica) propose() bool {
	if r.leader(r.view) != r.cfg.ID || r.proposed >= r.view || r.wish > r.view || !r.mayBegin() {
		return false
	}
	parent := r.tree.get(r.highQC.Block)
	if parent == nil {
		return false // the block is being fetched
	}
	batch, open := r.nextBatch(parent)
	if len(batch) == 0 && !open {
		return false
	}
	// Algorithm 2, lines 5 and 6; Algorithm 3, lines 10 and 11.
	p := &message.Proposal{Block: message.NewBlock(r.view, batch, r.highQC)}
	if !r.cfg.Truncate {
		p.Ancestors = r.ancestors(parent)
	}
	r.proposed, r.untold = r.view, nil
	r.Counters.Proposed++
	r.broadcast(p)
	return true
}

// tell sends the last certificate that this replica made, if no proposal has it because there are
// no commands. So other replicas commit the same blocks. In the paper leaders do not pause: the
// next block has the certificate.
func (r *Replica) tell() bool {
	if r.untold == nil {
		return false
	}
	m := &message.Announce{QC: r.untold}
	r.untold = nil
	r.toOthers(m)
	return true
}

// mayBegin reports whether the leader knows enough for its proposal. One way is that n-f replicas
// have reached this view or a later one, and have sent their certificates (Algorithm 2, line 3; the
// first view needs none). The other is that the leader has the certificate of the view before
// (Algorithm 3, lines 24 and 25).
func (r *Replica) mayBegin() bool {
	if r.cfg.Protocol == Chained && r.highQC.View+1 == r.view {
		return true
	}
	return r.view == 1 || r.wished(r.cfg.Quorum) >= r.view
}

// nextBatch returns the commands of the next block, and whether its branch has uncommitted
// commands. If so, an empty block is useful, too.
func (r *Replica) nextBatch(parent *message.Block) (batch []message.Command, open bool) {
	skip := map[message.CommandID]bool{}
	for _, b := range r.tree.above(parent, r.tree.committed.View) {
		open = open || len(b.Commands) > 0
		if r.cfg.Filter {
			for _, c := range b.Commands {
				skip[c.CommandID] = true
			}
		}
	}
	limit := min(r.cfg.Limits.BlockBytes, r.cfg.Limits.OpenBytes-r.tree.openBytes-blockSlack)
	return r.commands.batch(r.cfg.BatchSize, limit, skip), open
}

// blockSlack is the room for a block's certificate and its other data besides commands, in bytes.
const blockSlack = 64 << 10

// ancestors are those of an untruncated proposal: the newest ones that are kept, as many as fit
// into a message.
func (r *Replica) ancestors(parent *message.Block) []*message.Block {
	all := r.tree.above(parent, 0)
	bytes := 0
	for i := len(all) - 1; i >= 0; i-- {
		if bytes += all[i].Size(); bytes > r.cfg.Limits.MessageBytes {
			return all[i+1:]
		}
	}
	return all
}
