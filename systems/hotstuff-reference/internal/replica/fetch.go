package replica

import (
	"cmp"
	"slices"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// missedLimit is how many certified blocks a replica searches for at a time.
const missedLimit = 8

// need notes a certified block that is missing, and asks for it.
func (r *Replica) need(from int, qc *message.QC) {
	if r.tree.get(qc.Block) != nil || qc.View <= r.tree.committed.View {
		return
	}
	if slices.ContainsFunc(r.missed, func(o *message.QC) bool { return o.Block == qc.Block }) {
		return
	}
	r.missed = append(r.missed, qc)
	if len(r.missed) > missedLimit { // the lowest are usually ancestors of the others
		slices.SortFunc(r.missed, func(a, b *message.QC) int { return cmp.Compare(b.View, a.View) })
		r.missed = r.missed[:missedLimit]
	}
	if from != r.asking { // otherwise it asks for the next part when this one comes
		r.ask(from, qc, r.tree.committed.View)
	}
}

func (r *Replica) ask(whom int, qc *message.QC, above message.View) {
	if whom != r.cfg.ID {
		r.asking = whom
		r.send(whom, &message.Fetch{Block: qc.Block, Above: above})
	}
}

// askAround asks another replica for the missing blocks, each time that the timer ends.
func (r *Replica) askAround() {
	r.around = (r.around + 1) % r.cfg.N
	if r.around == r.cfg.ID {
		r.around = (r.around + 1) % r.cfg.N
	}
	for _, qc := range r.missed {
		r.ask(r.around, qc, r.tree.committed.View)
	}
}

// forgetMissed removes blocks that are there by now, or that cannot be committed any more.
func (r *Replica) forgetMissed() {
	r.missed = slices.DeleteFunc(r.missed, func(qc *message.QC) bool {
		return r.tree.get(qc.Block) != nil || qc.View <= r.tree.committed.View
	})
	if len(r.missed) == 0 {
		r.asking = -1
	}
}

// onFetch answers with the oldest part of the branch that the sender lacks, as much as fits into a
// message.
func (r *Replica) onFetch(from int, m *message.Fetch) {
	branch := r.tree.above(r.tree.get(m.Block), m.Above)
	bytes := 0
	for i, b := range branch {
		if bytes += b.Size(); i > 0 && bytes > r.cfg.Limits.MessageBytes {
			r.send(from, &message.Blocks{Blocks: branch[:i], QC: b.Justify})
			return
		}
	}
	if len(branch) > 0 {
		r.send(from, &message.Blocks{Blocks: branch})
	}
}

func (r *Replica) onBlocks(from int, m *message.Blocks) {
	if len(m.Blocks) == 0 || m.Blocks[len(m.Blocks)-1] == nil {
		return
	}
	qc := m.QC
	if qc == nil {
		last := m.Blocks[len(m.Blocks)-1].Digest()
		i := slices.IndexFunc(r.missed, func(o *message.QC) bool { return o.Block == last })
		if i < 0 {
			return // this is not the requested branch
		}
		qc = r.missed[i]
	}
	before := r.Counters.Fetched
	r.adopt(m.Blocks, qc)
	r.retry()
	if len(r.missed) > 0 && r.Counters.Fetched > before { // the next part
		highest := slices.MaxFunc(r.missed, func(a, b *message.QC) int { return cmp.Compare(a.View, b.View) })
		r.ask(from, highest, max(qc.View, r.tree.committed.View))
	}
}

// adopt takes a branch into the tree, oldest first. The branch must be connected, qc must certify
// its last block, and it must grow from a block of the tree. So the whole branch is certified, and
// the votes of a quorum bound the growth of the tree.
func (r *Replica) adopt(branch []*message.Block, qc *message.QC) {
	first := slices.IndexFunc(branch, func(b *message.Block) bool {
		return b == nil || b.View > r.tree.committed.View && r.tree.get(b.Digest()) == nil
	})
	if first < 0 {
		return
	}
	branch = branch[first:]
	if !r.valid(qc, message.Generic, message.Prepare, message.PreCommit, message.Commit) {
		return
	}
	child := qc
	for i := len(branch) - 1; i >= 0; i-- {
		b := branch[i]
		if b == nil || b.Digest() != child.Block || b.View != child.View || b.Justify == nil ||
			b.Justify.View >= b.View || !r.valid(b.Justify, r.justifies()) {
			return
		}
		child = b.Justify
	}
	if parent := r.tree.parent(branch[0]); parent == nil || parent.View < r.tree.committed.View {
		return
	}
	for _, b := range branch {
		if r.broken != nil || r.tree.parent(b) == nil {
			return
		}
		r.tree.add(b)
		r.Counters.Fetched++
		r.connected(b)
	}
	r.forgetMissed()
}
