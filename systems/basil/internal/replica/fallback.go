package replica

import (
	"slices"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

// This is the divergent case of Section 5: replicas of the logging shard logged different
// decisions, so no client finds 4f+1 equal ST2R. A leader, elected for this one transaction,
// reconciles them. Views and leaders belong only to the transaction; the shard as a whole has none.

// maxViewSkip bounds for how many views beyond its own a replica collects votes, so that a faulty
// elector cannot fill its memory.
const maxViewSkip = 1 << 10

// election collects the votes for this replica as the leader of one view.
type election struct {
	votes map[uint16]wire.ElectFB
	done  bool
}

// onInvokeFB moves to a new view, if the signed views justify it, and votes
// for its leader.
func (r *Replica) onInvokeFB(from node.ID, m *wire.InvokeFB) {
	rec := r.records[m.ID]
	if rec == nil {
		r.sendSeen(from, m.ID)
		return
	}
	if rec.cert != nil {
		r.env.Send(from, &wire.Writeback{Tx: rec.tx, Cert: rec.cert})
		return
	}
	if rec.logged == wire.Undecided {
		return // nothing to reconcile: the client's ST2 comes first
	}
	rec.interest(from)
	rec.viewCurrent = max(rec.viewCurrent, r.nextView(m))
	if rec.viewCurrent == 0 {
		return
	}
	r.Counters.Fallbacks++
	elect := &wire.ElectFB{ID: rec.id, Decision: rec.logged, View: rec.viewCurrent}
	r.batch.add(elect.Statement(), func(p wire.Proof) {
		elect.Proof = p
		leader := r.Checker.Leader(r.shard, elect.ID, elect.View)
		if leader == r.Index {
			r.onElectFB(elect)
			return
		}
		r.env.Send(node.ID(leader), elect)
	})
}

// nextView applies the paper's rules to the signed views of replicas. A vote for a view counts for
// every smaller one (vote subsumption), so sorting them in descending order gives both rules:
//
//	R1: 3f+1 replicas are in view v or later: move to v+1
//	R2: f+1 replicas are in view v or later:  catch up with v
func (r *Replica) nextView(m *wire.InvokeFB) uint32 {
	latest := map[uint16]uint32{}
	for i := range m.Views {
		v := &m.Views[i]
		if v.ID != m.ID || r.Checker.ShardOfReplica(int(v.Proof.Replica)) != r.shard ||
			!r.Checker.Verify(&v.Proof, v.Statement()) {
			continue
		}
		latest[v.Proof.Replica] = max(latest[v.Proof.Replica], v.ViewCurrent)
	}
	views := make([]uint32, 0, len(latest))
	for _, v := range latest {
		views = append(views, v)
	}
	slices.Sort(views)
	slices.Reverse(views)
	next := uint32(0)
	if n := r.Checker.CommitSlow; len(views) >= n { // 3f+1
		next = views[n-1] + 1
	}
	if n := r.Checker.Vouch; len(views) >= n { // f+1
		next = max(next, views[n-1])
	}
	return next
}

// onElectFB counts votes for this replica as leader. With 4f+1 votes it decides by their majority.
// If some client may have seen a decision logged by 4f+1 replicas, then 2f+1 of any 4f+1 electors
// hold that decision.
func (r *Replica) onElectFB(m *wire.ElectFB) {
	rec := r.records[m.ID]
	if rec == nil || rec.cert != nil || m.View > rec.viewCurrent+maxViewSkip ||
		r.Checker.Leader(r.shard, m.ID, m.View) != r.Index ||
		r.Checker.ShardOfReplica(int(m.Proof.Replica)) != r.shard ||
		!r.Checker.Verify(&m.Proof, m.Statement()) {
		return
	}
	if rec.elections == nil {
		rec.elections = map[uint32]*election{}
	}
	e := rec.elections[m.View]
	if e == nil {
		e = &election{votes: map[uint16]wire.ElectFB{}}
		rec.elections[m.View] = e
	}
	e.votes[m.Proof.Replica] = *m
	if e.done || len(e.votes) < r.Checker.Elect {
		return
	}
	e.done = true
	r.lead(rec, m.View, e)
}

func (r *Replica) lead(rec *record, view uint32, e *election) {
	dec := &wire.DecFB{ID: rec.id, View: view}
	commits := 0
	first := r.Checker.First(r.shard)
	for i := first; i < first+r.Checker.N; i++ {
		v, voted := e.votes[uint16(i)]
		if !voted {
			continue
		}
		dec.Elects = append(dec.Elects, v)
		if v.Decision == wire.Commit {
			commits++
		}
	}
	dec.Decision = quorum.Majority(commits, len(dec.Elects))
	r.batch.add(dec.Statement(), func(p wire.Proof) {
		dec.Proof = p
		for i := first; i < first+r.Checker.N; i++ {
			if i != r.Index {
				r.env.Send(node.ID(i), dec)
			}
		}
		r.onDecFB(dec)
	})
}

// onDecFB adopts the decision of a leader, unless this replica has already voted for a later
// leader. It reports the decision to the waiting clients.
func (r *Replica) onDecFB(m *wire.DecFB) {
	rec := r.records[m.ID]
	if rec == nil || rec.cert != nil || m.View == 0 || m.View < rec.viewCurrent ||
		rec.logged != wire.Undecided && m.View <= rec.viewDecision ||
		!r.Checker.ValidElection(r.shard, m) {
		return
	}
	rec.logged, rec.viewDecision, rec.viewCurrent = m.Decision, m.View, m.View
	for _, to := range rec.interested {
		r.sendLogged(to, rec)
	}
}
