package replica

import (
	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// onAnnounce handles a certificate from another replica. In the basic protocol it begins a phase.
// It need not come from the leader, since it has its own proof.
func (r *Replica) onAnnounce(from int, qc *message.QC) {
	if r.cfg.Protocol == Chained {
		r.learn(from, qc)
		return
	}
	if qc == nil {
		return
	}
	switch qc.Phase {
	case message.Prepare: // Algorithm 2, lines 16 to 18: prepareQC <- m.justify
		if r.learn(from, qc) {
			r.vote(message.PreCommit, qc.View, qc.Block)
		}
	case message.PreCommit: // lines 24 to 26: lockedQC <- m.justify
		if r.valid(qc, message.PreCommit) {
			r.lock(qc)
			r.enter(qc.View)
			r.vote(message.Commit, qc.View, qc.Block)
		}
	case message.Commit: // lines 32 and 33
		r.decide(from, qc)
	}
}

// lock on the block of a certificate, unless the replica is locked on a block of a later view.
func (r *Replica) lock(qc *message.QC) {
	if qc.View > r.lockedQC.View {
		r.lockedQC = qc
	}
}

// decide executes the blocks that a commitQC decides. It begins the next view with a new-view
// message to its leader (Algorithm 2, line 35).
func (r *Replica) decide(from int, qc *message.QC) {
	if r.cfg.Protocol != Basic || !r.valid(qc, message.Commit) {
		return
	}
	if r.commitQC == nil || qc.View > r.commitQC.View {
		r.commitQC = qc
		r.lock(qc) // a commitQC implies a precommitQC of the same block
	}
	r.need(from, qc)
	if b := r.tree.get(qc.Block); b != nil {
		r.commit(b)
	}
	if next := qc.View + 1; next > r.view && next >= r.wish {
		r.enter(next)
		if r.view == next {
			r.send(r.leader(next), r.newView())
		}
	}
}
