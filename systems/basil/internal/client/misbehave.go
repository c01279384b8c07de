package client

import (
	"fmt"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// Misbehavior is what a Byzantine client does with one transaction (the client
// failures of Section 6 of the paper). Others have to finish what it leaves.
//
// The paper's forced equivocation is not here: it has replicas log decisions
// that the votes do not justify, and these replicas check them.
type Misbehavior uint8

const (
	// Behave is what correct clients do.
	Behave Misbehavior = iota
	// StallEarly: stop after ST1. A client that read the prepared writes has to run the prepare
	// phase again.
	StallEarly
	// StallLate: go on until the decision is certain, logged if need be, and tell no replica.
	StallLate
	// Equivocate: where the votes justify both decisions, have one half of the logging shard log
	// the one and the other half the other, and stop. Only a fallback leader can reconcile them.
	// Where the votes justify one decision only, behave.
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

// misbehavior is what the transaction's own client does with it; anyone who recovers it does what
// is right.
func (t *txn) misbehavior() Misbehavior {
	if t.owner == nil {
		return Behave
	}
	return t.owner.req.Misbehavior
}

// abandon leaves the transaction as it is: replies to it are ignored from now
// on, until this client has to recover it like any other.
func (t *txn) abandon(n *uint64) {
	*n++
	t.done = true
	delete(t.c.txns, t.id)
	t.owner.end(Result{Outcome: Abandoned})
}

// equivocates takes the votes' evaluation over while both decisions can still
// be had. It is given the time of the fast path for that.
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
