package client

import (
	"fmt"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// Misbehavior is how a Byzantine client treats one transaction (the client failures of Section 6 of
// the paper). Other clients have to finish it.
//
// The paper's forced equivocation is missing: it makes replicas log decisions that the votes do not
// justify, and these replicas check the votes.
type Misbehavior uint8

const (
	// Behave is the behaviour of correct clients.
	Behave Misbehavior = iota
	// StallEarly: stop after ST1. A client that read the prepared writes has to run the prepare
	// phase again.
	StallEarly
	// StallLate: go on until the decision is certain, and logged if necessary, and tell no replica.
	StallLate
	// Equivocate: if the votes justify both decisions, make one half of the logging shard log one
	// decision and the other half the other, and stop. Only a fallback leader can reconcile them.
	// If the votes justify only one decision, behave.
	Equivocate
)

var misbehaviors = map[string]Misbehavior{
	"none": Behave, "stall-early": StallEarly, "stall-late": StallLate, "equivocate": Equivocate,
}

// ParseMisbehavior reads "none", "stall-early", "stall-late" or "equivocate".
func ParseMisbehavior(s string) (Misbehavior, error) {
	m, ok := misbehaviors[s]
	if !ok {
		return Behave, fmt.Errorf(`misbehavior %q is none of "none", "stall-early", "stall-late", "equivocate"`, s)
	}
	return m, nil
}

// misbehavior is how the transaction's own client treats it. A client that recovers the transaction
// behaves correctly.
func (t *txn) misbehavior() Misbehavior {
	if t.owner == nil {
		return Behave
	}
	return t.owner.req.Misbehavior
}

// abandon leaves the transaction as it is. The client ignores later replies to it, until it has to
// recover the transaction like any other.
func (t *txn) abandon(n *uint64) {
	*n++
	t.done = true
	delete(t.c.txns, t.id)
	t.owner.end(Result{Outcome: Abandoned})
}

// equivocates handles the votes while both decisions are still possible. It may wait as long as the
// fast path.
func (t *txn) equivocates() bool {
	if t.misbehavior() != Equivocate || t.fastOver || !t.bothPossible() {
		return false
	}
	switch commit, abort := t.slowQuorums(); {
	case commit && abort:
		t.c.shardReplicas(t.log, func(to node.ID) {
			d := wire.Commit
			if int(to)%2 == 1 {
				d = wire.Abort
			}
			t.c.env.Send(to, t.st2(d))
		})
		t.abandon(&t.c.Counters.Equivocated)
	case commit || abort:
		t.startFastTimer()
	}
	return true
}

// bothPossible reports whether the present votes and the missing ones could justify a commit as
// well as an abort.
func (t *txn) bothPossible() bool {
	q := &t.c.Checker.Sizes
	commit, both := true, false
	for _, s := range t.shards {
		y := t.tallies[s]
		out := q.N - len(y.voted)
		forCommit, forAbort := max(0, q.CommitSlow-len(y.commits)), max(0, q.AbortSlow-len(y.aborts))
		commit = commit && forCommit <= out
		both = both || forCommit+forAbort <= out
	}
	return commit && both
}
