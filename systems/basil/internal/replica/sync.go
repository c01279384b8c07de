package replica

import (
	"slices"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// Catching up. A client sends its decision only once, and messages get lost. A replica that was cut
// off has missed everything. In the paper, clients that find such a gap repair it. Here each
// replica also asks:
//
//   - a peer of its shard, another one each time, for the transactions that it decided since the
//     last question. Then the replica fetches those that it does not know;
//   - the participants of its own old undecided transactions for a decision.
//
// Answers carry certificates, so a faulty peer can only be silent. The positions in the questions
// show a replica which of its decisions n-f replicas know. Until then it does not truncate these
// decisions (truncate.go).

const (
	pullEntries  = 1024 // of one PullReply
	fetchEntries = 256  // of one Fetch
	openAge      = int64(1e9)
)

type syncState struct {
	epoch   uint64
	log     []wire.Decided // decided transactions; the first has the number base
	base    uint64
	open    []*record // with a body; decided ones are removed when the scan reaches them
	peer    int       // the peer in this shard that was asked last
	round   int
	cursors map[node.ID]wire.Pull // our positions in the logs of others
	passed  map[int]uint64        // positions of others in our log
}

func newSyncState(r *Replica) syncState {
	return syncState{
		epoch: uint64(r.env.Now()), peer: r.Index,
		cursors: map[node.ID]wire.Pull{}, passed: map[int]uint64{},
	}
}

func (r *Replica) logDecided(rec *record) {
	s := &r.sync
	rec.position = s.base + uint64(len(s.log))
	s.log = append(s.log, wire.Decided{ID: rec.id, TS: r.bounded(rec.tx.TS)})
}

// stable returns the position up to which n-f replicas of the shard, including this one, know every
// decision of the log.
func (r *Replica) stable() uint64 {
	need := r.Checker.N - r.Checker.F - 1
	if need == 0 {
		return r.sync.base + uint64(len(r.sync.log))
	}
	var at []uint64
	for _, p := range r.sync.passed {
		at = append(at, p)
	}
	if len(at) < need {
		return 0
	}
	slices.Sort(at)
	return at[len(at)-need]
}

func (r *Replica) scheduleSync() {
	r.env.After(r.SyncInterval, func() {
		r.pullNext()
		r.fetchOpen()
		r.scheduleSync()
	})
}

func (r *Replica) pullNext() {
	first, n := r.Checker.First(r.shard), r.Checker.N
	if n == 1 {
		return
	}
	r.sync.peer = first + (r.sync.peer-first+1)%n
	if r.sync.peer == r.Index {
		r.sync.peer = first + (r.sync.peer-first+1)%n
	}
	r.pull(node.ID(r.sync.peer))
}

func (r *Replica) pull(to node.ID) {
	c := r.sync.cursors[to]
	r.batch.add(c.Statement(), func(p wire.Proof) {
		c.Proof = p
		r.env.Send(to, &c)
	})
}

func (r *Replica) onPull(from node.ID, m *wire.Pull) {
	s := &r.sync
	since := s.base
	peer := int(m.Proof.Replica)
	if m.Epoch == s.epoch && m.Since <= s.base+uint64(len(s.log)) &&
		r.Checker.ShardOfReplica(peer) == r.shard && r.Checker.Verify(&m.Proof, m.Statement()) {
		s.passed[peer] = m.Since
		since = max(since, m.Since)
	}
	entries := s.log[since-s.base:]
	reply := &wire.PullReply{Epoch: s.epoch, Next: since}
	reply.Entries = append(reply.Entries, entries[:min(len(entries), pullEntries)]...)
	reply.Next += uint64(len(reply.Entries))
	r.env.Send(from, reply)
}

// onPullReply fetches the transactions that this replica does not know. It moves its cursor only to
// the first unknown entry, because the answers to this fetch may be lost.
func (r *Replica) onPullReply(from node.ID, m *wire.PullReply) {
	if int(from) >= r.Checker.Replicas() || m.Next < uint64(len(m.Entries)) {
		return
	}
	cursor := wire.Pull{Epoch: m.Epoch, Since: m.Next - uint64(len(m.Entries))}
	var missing []wire.TxID
	for _, x := range m.Entries {
		rec := r.records[x.ID]
		if rec != nil && rec.cert != nil || rec == nil && r.trunc.decision(x.ID) != wire.Undecided {
			if len(missing) == 0 {
				cursor.Since++
			}
			continue
		}
		missing = append(missing, x.ID)
	}
	r.sync.cursors[from] = cursor
	if len(missing) > 0 {
		r.env.Send(from, &wire.Fetch{IDs: missing[:min(len(missing), fetchEntries)]})
	} else if len(m.Entries) == pullEntries {
		r.pull(from)
	}
}

// sendSeen answers a question about a truncated transaction, if this replica
// remembers its decision.
func (r *Replica) sendSeen(to node.ID, id wire.TxID) {
	m := &wire.Seen{ID: id, Decision: r.trunc.decision(id)}
	if m.Decision == wire.Undecided {
		return
	}
	r.batch.add(wire.SeenStatement(id, m.Decision), func(p wire.Proof) {
		m.Proof = p
		r.env.Send(to, m)
	})
}

// onSeen collects the memories of other replicas about an open transaction.
func (r *Replica) onSeen(m *wire.Seen) {
	rec := r.records[m.ID]
	if rec == nil || rec.tx == nil || rec.cert != nil {
		return
	}
	if cert := rec.claims.Add(r.Checker, m); cert != nil && r.Checker.ValidCert(rec.tx, cert) {
		r.decide(rec, cert)
	}
}

// fetchOpen asks about transactions that stay undecided. Their clients may be gone, and another
// participant may know a decision.
func (r *Replica) fetchOpen() {
	s := &r.sync
	now := r.env.Now()
	kept := s.open[:0]
	ask := map[node.ID][]wire.TxID{}
	var order []node.ID
	s.round++
	for _, rec := range s.open {
		if rec.cert != nil {
			continue
		}
		kept = append(kept, rec)
		if now-rec.since < openAge {
			continue
		}
		shards := rec.tx.Shards(r.Checker.ShardOf)
		shard := shards[s.round%len(shards)]
		to := node.ID(r.Checker.First(shard) + s.round/len(shards)%r.Checker.N)
		if ask[to] == nil {
			order = append(order, to)
		}
		if len(ask[to]) < fetchEntries && int(to) != r.Index {
			ask[to] = append(ask[to], rec.id)
		}
	}
	clear(s.open[len(kept):])
	s.open = kept
	for _, to := range order {
		if len(ask[to]) > 0 {
			r.env.Send(to, &wire.Fetch{IDs: ask[to]})
		}
	}
}

// onFetch answers with all that this replica knows.
func (r *Replica) onFetch(from node.ID, m *wire.Fetch) {
	for _, id := range m.IDs[:min(len(m.IDs), fetchEntries)] {
		switch rec := r.records[id]; {
		case rec == nil:
			r.sendSeen(from, id)
		case rec.tx == nil:
		case rec.cert != nil:
			r.env.Send(from, &wire.Writeback{Tx: rec.tx, Cert: rec.cert})
		default:
			r.env.Send(from, &wire.Body{Tx: rec.tx})
		}
	}
}
