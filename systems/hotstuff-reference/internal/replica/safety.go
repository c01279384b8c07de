package replica

import (
	"slices"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// Rule of safeNode: Holds says whether a replica may vote for a block that qc justifies.
type Rule struct {
	Name  string
	Holds func(s Locked, b *message.Block) bool
}

// Locked is the part of a replica that a rule may read: its lock and its tree.
type Locked struct {
	QC   *message.QC
	tree *tree
}

// Extends reports whether the block is the one that the lock certifies, or its descendant.
func (l Locked) Extends(b *message.Block) bool { return l.tree.extends(b, l.QC) }

// SafeNodeRules is safeNode (Algorithm 1, lines 25 to 27), of which at least one rule must hold.
func SafeNodeRules() []Rule {
	return []Rule{
		// Line 26: node extends from lockedQC.node.
		{Name: "safety", Holds: func(l Locked, b *message.Block) bool { return l.Extends(b) }},
		// Line 27: qc.viewNumber > lockedQC.viewNumber.
		{Name: "liveness", Holds: func(l Locked, b *message.Block) bool { return b.Justify.View > l.QC.View }},
	}
}

func (r *Replica) safeNode(b *message.Block) bool {
	for _, rule := range r.cfg.Rules {
		if rule.Holds(Locked{r.lockedQC, r.tree}, b) {
			return true
		}
	}
	return false
}

// vote sends a vote to the replica that collects it. It sends none if the replica has left the
// view, or has voted in this phase or a later one, or in a later view. So a correct replica casts
// at most one vote in each phase of each view (Algorithm 4 has vheight for this).
func (r *Replica) vote(phase message.Phase, view message.View, block message.Digest) bool {
	if view != r.view || view < r.wish || !r.votedBefore(phase, view) {
		return false
	}
	r.votedView, r.votedPhase = view, phase
	r.send(r.collector(phase, view), &message.Vote{
		Phase: phase, View: view, Block: block,
		Signature: r.cfg.Scheme.Sign(message.VoteText(phase, view, block)),
	})
	return true
}

// votedBefore reports whether all votes of this replica are of phases before the given one.
func (r *Replica) votedBefore(phase message.Phase, view message.View) bool {
	return view > r.votedView || view == r.votedView && phase > r.votedPhase
}

// valid checks a certificate of one of the given phases. The certificate of genesis has no
// signatures and is valid in all phases.
func (r *Replica) valid(qc *message.QC, phases ...message.Phase) bool {
	if qc == nil {
		return false
	}
	if qc.View == 0 {
		return qc.Block == message.Genesis.Digest()
	}
	if !slices.Contains(phases, qc.Phase) || len(qc.Signers) < r.cfg.Quorum || len(qc.Signers) > r.cfg.N {
		return false
	}
	for i, s := range qc.Signers {
		if int(s) >= r.cfg.N || i > 0 && qc.Signers[i-1] >= s {
			return false
		}
	}
	if r.verified.has(qc) {
		return true
	}
	if !r.cfg.Scheme.Verify(message.VoteText(qc.Phase, qc.View, qc.Block), qc.Signers, qc.Signature) {
		return false
	}
	r.verified.add(qc)
	return true
}

// justifies is the phase of the certificates in proposals: prepareQC or genericQC.
func (r *Replica) justifies() message.Phase {
	if r.cfg.Protocol == Basic {
		return message.Prepare
	}
	return message.Generic
}

// verified remembers the last certificates that were found valid.
type verified struct {
	known map[string]bool
	ring  []string
	next  int
}

const verifiedLength = 64

func (v *verified) has(qc *message.QC) bool { return v.known[keyOf(qc)] }

func (v *verified) add(qc *message.QC) {
	if v.known == nil {
		v.known, v.ring = map[string]bool{}, make([]string, verifiedLength)
	}
	delete(v.known, v.ring[v.next])
	v.ring[v.next] = keyOf(qc)
	v.known[v.ring[v.next]] = true
	v.next = (v.next + 1) % verifiedLength
}

// keyOf has the whole content of a certificate: the text, the signers and the signature.
func keyOf(qc *message.QC) string {
	key := message.VoteText(qc.Phase, qc.View, qc.Block)
	key = append(key, byte(len(qc.Signers)>>8), byte(len(qc.Signers)))
	for _, s := range qc.Signers {
		key = append(key, byte(s>>8), byte(s))
	}
	return string(append(key, qc.Signature...))
}
