package replica

import (
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// waiter is a transaction whose vote waits for another one.
type waiter struct {
	rec *record
	dep wire.Dep
}

// onST1 handles a prepare request, and also a recovery request (RP). It answers with the most
// recent step that this replica knows of the transaction.
func (r *Replica) onST1(from node.ID, tx *wire.Tx) {
	rec := r.record(tx.ID(), tx.TS)
	if rec == nil {
		r.sendSeen(from, tx.ID())
		return
	}
	if len(tx.Shards(r.Checker.ShardOf)) == 0 || misbehaves(tx) {
		return
	}
	r.learn(rec, tx)
	if rec.cert != nil {
		r.env.Send(from, &wire.Writeback{Tx: rec.tx, Cert: rec.cert})
		return
	}
	rec.interest(from)
	if rec.logged != wire.Undecided {
		r.sendLogged(from, rec)
	}
	if !rec.checked {
		r.check(rec)
		return
	}
	if rec.voteProof != nil {
		r.sendVote(from, rec)
	}
}

// check runs Algorithm 1. The vote follows at once or when the dependencies
// are decided.
func (r *Replica) check(rec *record) {
	rec.checked = true
	if rec.tx.TS.Time < r.horizon() {
		// A conflicting transaction may have been truncated. This is surely the replica's first
		// vote on this transaction, so it may still refuse.
		r.setVote(rec, wire.Abort)
		return
	}
	for _, rule := range r.Rules {
		if f := rule.check(r, rec.tx); f != nil {
			rec.conflict, rec.blocker = f.conflict, f.blocker
			r.setVote(rec, wire.Abort)
			return
		}
	}
	rec.prepared = true
	r.list(rec)
	for _, d := range rec.tx.Deps {
		if !r.local(d.Key) {
			continue
		}
		if !r.awaitDependency(rec, d) {
			r.refuse(rec)
			return
		}
	}
	if rec.waitsFor == 0 {
		r.setVote(rec, wire.Commit)
	}
}

// awaitDependency returns false if d can never become a committed version.
func (r *Replica) awaitDependency(rec *record, d wire.Dep) bool {
	dep := r.record(d.ID, d.Version)
	if dep == nil {
		return r.trunc.decision(d.ID) == wire.Commit
	}
	if dep.cert != nil {
		return dep.cert.Decision == wire.Commit && matches(dep.tx, d)
	}
	if dep.tx != nil && !matches(dep.tx, d) {
		return false
	}
	rec.waitsFor++
	dep.dependents = append(dep.dependents, &waiter{rec: rec, dep: d})
	if dep.tx == nil {
		// If the client is correct, f+1 replicas vouched for it, so its ST1 is on the way. Waiting
		// for ever would let a faulty client block keys with an invented dependency. An abort vote
		// is always safe.
		r.env.After(r.UnknownDependency, func() {
			if dep.tx == nil && rec.vote == wire.Undecided && rec.cert == nil {
				r.refuse(rec)
			}
		})
	}
	return true
}

// matches is the check for invalid dependencies, lines 3-4.
func matches(tx *wire.Tx, d wire.Dep) bool {
	_, writes := tx.WriteValue(d.Key)
	return writes && tx.TS == d.Version
}

// resolve informs the transactions waiting for rec that it is decided.
func (r *Replica) resolve(rec *record) {
	waiting := rec.dependents
	rec.dependents = nil
	for _, w := range waiting {
		if w.rec.vote != wire.Undecided || w.rec.cert != nil {
			continue
		}
		if !rec.committed() || !matches(rec.tx, w.dep) {
			r.refuse(w.rec)
			continue
		}
		if w.rec.waitsFor--; w.rec.waitsFor == 0 {
			r.setVote(w.rec, wire.Commit)
		}
	}
}

// refuse undoes a prepare whose dependency failed (lines 17-19).
func (r *Replica) refuse(rec *record) {
	rec.prepared = false
	r.unlist(rec)
	r.setVote(rec, wire.Abort)
}

// setVote fixes the vote for good, signs it and sends it to all nodes that asked.
func (r *Replica) setVote(rec *record, vote wire.Decision) {
	rec.vote = vote
	if vote == wire.Commit {
		r.Counters.VotesCommit++
	} else {
		r.Counters.VotesAbort++
	}
	r.batch.add(wire.VoteStatement(rec.id, vote), func(p wire.Proof) {
		rec.voteProof = &p
		for _, to := range rec.interested {
			r.sendVote(to, rec)
		}
	})
}

func (r *Replica) sendVote(to node.ID, rec *record) {
	r.env.Send(to, &wire.ST1R{
		ID: rec.id, Vote: rec.vote, Proof: *rec.voteProof, Conflict: rec.conflict, Blocker: rec.blocker,
	})
}
