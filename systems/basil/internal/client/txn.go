package client

import (
	"time"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

// txn drives one transaction to its decision. It may be our own transaction, or in a recovery
// another client's. The steps are the same.
//
//	ST1 to all replicas of all shards
//	 |- every shard 5f+1 commits ............... commit  (fast)
//	 |- a shard with 3f+1 aborts, or a proof ... abort   (fast)
//	 |- every shard 3f+1 commits, or one with f+1 aborts, and
//	 |  no faster end in sight or the time for it is over
//	 v
//	ST2 to the logging shard
//	 |- 4f+1 equal ST2R ........................ decided (slow)
//	 v replicas logged different decisions
//	InvokeFB, until a leader reconciles them ... decided (slow)
type txn struct {
	c      *Client
	tx     *wire.Tx
	id     wire.TxID
	shards []int
	log    int        // the logging shard
	owner  *execution // nil: no client waits for it

	recovers  bool // another's
	tallies   map[int]*tally
	proposed  wire.Decision // the decision in ST2; Undecided during stage 1
	fastWait  bool          // the fast-path timer runs
	fastOver  bool          // and it has ended
	logged    map[uint16]*wire.ST2R
	conflict  *wire.Conflict
	blocker   *wire.Dep
	claims    quorum.Claims
	retries   int
	fallbacks int
	started   int64
	done      bool
}

// tally collects one shard's votes.
type tally struct {
	voted           map[uint16]bool
	commits, aborts []wire.Proof
}

func (c *Client) startTxn(tx *wire.Tx, owner *execution) *txn {
	t := &txn{
		c: c, tx: tx, id: tx.ID(), shards: tx.Shards(c.Checker.ShardOf), owner: owner,
		tallies: map[int]*tally{}, logged: map[uint16]*wire.ST2R{}, started: c.env.Now(),
	}
	t.log = c.Checker.Logging(tx)
	for _, s := range t.shards {
		t.tallies[s] = &tally{voted: map[uint16]bool{}}
	}
	c.txns[t.id] = t
	if owner != nil {
		owner.txn = t
	}
	m := &wire.ST1{Tx: tx}
	for _, s := range t.shards {
		c.shardReplicas(s, func(to node.ID) { c.env.Send(to, m) })
	}
	if t.misbehavior() == StallEarly {
		t.abandon(&c.Counters.StalledEarly)
		return t
	}
	if len(tx.Deps) > 0 {
		c.env.After(c.DependencyTimeout, t.recoverDeps)
	}
	t.scheduleRetry()
	return t
}

func (t *txn) onVote(m *wire.ST1R) {
	shard := t.c.Checker.ShardOfReplica(int(m.Proof.Replica))
	y := t.tallies[shard]
	if t.done || y == nil || y.voted[m.Proof.Replica] || !t.c.Checker.Verify(&m.Proof, m.Statement()) {
		return
	}
	y.voted[m.Proof.Replica] = true
	if m.Vote == wire.Commit {
		y.commits = append(y.commits, m.Proof)
	} else {
		y.aborts = append(y.aborts, m.Proof)
		if m.Blocker != nil {
			t.blocker = m.Blocker
		}
		if t.c.FastPath && t.conflict == nil && t.c.Checker.ValidConflict(t.tx, m.Conflict) {
			t.conflict = m.Conflict
		}
	}
	if t.proposed == wire.Undecided {
		t.evaluate()
	}
}

// evaluate looks for a decision in the votes.
func (t *txn) evaluate() {
	if t.equivocates() {
		return
	}
	if t.c.FastPath && t.tryFast() {
		return
	}
	commit, abort := t.slowQuorums()
	if !commit && !abort {
		return
	}
	if t.c.FastPath && !t.fastOver && t.worthWaiting(commit) {
		t.startFastTimer()
		return
	}
	t.proposed = wire.Abort
	if commit {
		t.proposed = wire.Commit
	}
	t.sendST2(true)
	t.evaluateLog()
}

// tryFast ends the transaction if the votes alone decide it.
func (t *txn) tryFast() bool {
	q := &t.c.Checker.Sizes
	if t.conflict != nil {
		t.finish(&wire.Cert{Decision: wire.Abort, Conflict: t.conflict})
		return true
	}
	commit := &wire.Cert{Decision: wire.Commit}
	for _, s := range t.shards {
		y := t.tallies[s]
		if len(y.aborts) >= q.AbortFast {
			t.finish(&wire.Cert{Decision: wire.Abort, Votes: []wire.ShardVotes{
				{Shard: uint16(s), Vote: wire.Abort, Proofs: y.aborts[:q.AbortFast]},
			}})
			return true
		}
		if len(y.commits) >= q.CommitFast {
			commit.Votes = append(commit.Votes, wire.ShardVotes{Shard: uint16(s), Vote: wire.Commit, Proofs: y.commits})
		}
	}
	if len(commit.Votes) < len(t.shards) {
		return false
	}
	t.finish(commit)
	return true
}

func (t *txn) slowQuorums() (commit, abort bool) {
	commit = true
	for _, s := range t.shards {
		commit = commit && len(t.tallies[s].commits) >= t.c.Checker.CommitSlow
		abort = abort || len(t.tallies[s].aborts) >= t.c.Checker.AbortSlow
	}
	return commit, abort
}

// worthWaiting reports whether missing votes could allow the fast path, or a commit although only
// an abort can be logged so far.
func (t *txn) worthWaiting(commitSlow bool) bool {
	q := &t.c.Checker.Sizes
	fastCommit, slowCommit := true, true
	for _, s := range t.shards {
		y := t.tallies[s]
		out := q.N - len(y.voted)
		if out > 0 && len(y.aborts)+out >= q.AbortFast {
			return true
		}
		fastCommit = fastCommit && len(y.commits)+out >= q.CommitFast
		slowCommit = slowCommit && len(y.commits)+out >= q.CommitSlow
	}
	return fastCommit || slowCommit && !commitSlow
}

func (t *txn) startFastTimer() {
	if t.fastWait {
		return
	}
	t.fastWait = true
	t.c.env.After(t.c.FastPathTimeout, func() {
		t.fastOver = true
		if !t.done && t.proposed == wire.Undecided {
			t.c.Counters.FastPathTimeouts++
			t.evaluate()
		}
	})
}

// sendST2 sends the proposal with its votes to the logging shard: to all replicas, or to those that
// have not answered.
func (t *txn) sendST2(all bool) {
	m := t.st2(t.proposed)
	t.c.shardReplicas(t.log, func(to node.ID) {
		if all || t.logged[uint16(to)] == nil {
			t.c.env.Send(to, m)
		}
	})
}

// st2 returns the request to log a decision that the votes justify.
func (t *txn) st2(d wire.Decision) *wire.ST2 {
	q := &t.c.Checker.Sizes
	m := &wire.ST2{Tx: t.tx, Decision: d}
	for _, s := range t.shards {
		y := t.tallies[s]
		if d == wire.Commit {
			m.Votes = append(m.Votes, wire.ShardVotes{Shard: uint16(s), Vote: wire.Commit, Proofs: y.commits[:q.CommitSlow]})
		} else if len(y.aborts) >= q.AbortSlow {
			m.Votes = []wire.ShardVotes{{Shard: uint16(s), Vote: wire.Abort, Proofs: y.aborts[:q.AbortSlow]}}
		}
	}
	return m
}

func (t *txn) onLogged(m *wire.ST2R) {
	old := t.logged[m.Proof.Replica]
	if t.done || t.c.Checker.ShardOfReplica(int(m.Proof.Replica)) != t.log ||
		old != nil && (m.ViewCurrent < old.ViewCurrent || m.ViewDecision < old.ViewDecision || sameView(old, m)) ||
		!t.c.Checker.Verify(&m.Proof, m.Statement()) {
		return
	}
	t.logged[m.Proof.Replica] = m
	t.evaluateLog()
}

// sameView reports whether m has no news compared with old.
func sameView(old, m *wire.ST2R) bool {
	return old.ViewCurrent == m.ViewCurrent && old.ViewDecision == m.ViewDecision
}

// evaluateLog looks for 4f+1 equal logged decisions, or for the proof that there cannot be so many.
func (t *txn) evaluateLog() {
	type group struct {
		decision wire.Decision
		view     uint32
	}
	counts := map[group]int{}
	most := 0
	for _, m := range t.logged {
		g := group{m.Decision, m.ViewDecision}
		counts[g]++
		most = max(most, counts[g])
		if counts[g] >= t.c.Checker.Log {
			t.finishSlow(g.decision, g.view)
			return
		}
	}
	out := t.c.Checker.N - len(t.logged)
	if t.proposed != wire.Undecided && len(t.logged) >= t.c.Checker.Log && most+out < t.c.Checker.Log && t.fallbacks == 0 {
		t.invokeFallback()
	}
}

func (t *txn) finishSlow(d wire.Decision, view uint32) {
	cert := &wire.Cert{Decision: d, View: view}
	t.c.shardReplicas(t.log, func(from node.ID) {
		m := t.logged[uint16(from)]
		if m != nil && m.Decision == d && m.ViewDecision == view && len(cert.Log) < t.c.Checker.Log {
			cert.Log = append(cert.Log, wire.LogVote{ViewCurrent: m.ViewCurrent, Proof: m.Proof})
		}
	})
	t.finish(cert)
}

// invokeFallback asks for a leader to reconcile the logged decisions.
func (t *txn) invokeFallback() {
	t.fallbacks++
	t.c.Counters.Fallbacks++
	m := &wire.InvokeFB{ID: t.id}
	t.c.shardReplicas(t.log, func(from node.ID) {
		if v := t.logged[uint16(from)]; v != nil {
			m.Views = append(m.Views, *v)
		}
	})
	t.c.shardReplicas(t.log, func(to node.ID) { t.c.env.Send(to, m) })
}

// finish distributes the decision and reports it to the owner. The owner need not wait until
// replicas have applied it: the certificate exists, so no client can decide otherwise.
func (t *txn) finish(cert *wire.Cert) {
	if t.misbehavior() == StallLate {
		t.abandon(&t.c.Counters.StalledLate)
		return
	}
	t.count(cert)
	m := &wire.Writeback{Tx: t.tx, Cert: cert}
	for _, s := range t.shards {
		t.c.shardReplicas(s, func(to node.ID) { t.c.env.Send(to, m) })
	}
	t.close(cert.Decision)
}

func (t *txn) close(d wire.Decision) {
	if t.recovers {
		t.c.Counters.Recovered++
	}
	t.done = true
	delete(t.c.txns, t.id)
	if d == wire.Abort && t.blocker != nil && t.c.env.Now()-t.blocker.Version.Time > int64(stalledAfter) {
		t.c.recover(*t.blocker)
	}
	e := t.owner
	if e == nil {
		return
	}
	if d == wire.Commit {
		e.end(Result{Outcome: Committed})
	} else {
		e.end(Result{Outcome: Aborted})
	}
}

func (t *txn) count(cert *wire.Cert) {
	if t.owner == nil {
		return
	}
	n := &t.c.Counters
	switch slow := len(cert.Log) > 0; {
	case cert.Decision == wire.Commit && slow:
		n.SlowPathCommits++
	case cert.Decision == wire.Commit:
		n.FastPathCommits++
	case slow:
		n.SlowPathAborts++
	default:
		n.FastPathAborts++
	}
}

func backoff(d time.Duration, attempt int) time.Duration {
	return min(d<<min(attempt, 10), maxRetryInterval)
}

// scheduleRetry resends messages without an answer, until there is a decision.
func (t *txn) scheduleRetry() {
	c := t.c
	c.env.After(backoff(c.RetryInterval, t.retries), func() {
		if t.done {
			return
		}
		if t.owner == nil && c.env.Now()-t.started > int64(abandonAfter) {
			t.done = true
			delete(c.txns, t.id)
			return
		}
		t.retries++
		c.Counters.Resends++
		t.retry()
		t.scheduleRetry()
	})
}

func (t *txn) retry() {
	if t.proposed == wire.Undecided {
		m := &wire.ST1{Tx: t.tx}
		for _, s := range t.shards {
			t.c.shardReplicas(s, func(to node.ID) {
				if !t.tallies[s].voted[uint16(to)] {
					t.c.env.Send(to, m)
				}
			})
		}
		t.recoverDeps()
		return
	}
	// The answers to ST2 also have the views of the replicas.
	divergent := len(t.logged) >= t.c.Checker.Log
	t.sendST2(divergent)
	if divergent {
		t.invokeFallback()
	}
}
