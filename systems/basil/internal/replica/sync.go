package replica

import (
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// Catching up. A client sends its decision once, and messages get lost; a
// replica that was cut off missed everything. The paper leaves both to the
// clients that stumble over the gap. Here each replica also asks:
//
//   - a peer of its shard, another one each time, for the transactions that
//     it decided since the last question, and fetches those it does not know;
//   - the participants of its own old undecided transactions for a decision.
//
// Answers carry certificates, so a faulty peer can only be silent.

const (
	pullEntries  = 1024 // of one PullReply
	fetchEntries = 256  // of one Fetch
	openAge      = int64(1e9)
)

type syncState struct {
	epoch   uint64
	log     []wire.Decided // decided transactions, the first is number base
	base    uint64
	open    []*record // with a body; decided ones are dropped when passed
	peer    int       // of this shard, asked last
	round   int
	cursors map[node.ID]wire.Pull
}

func newSyncState(r *Replica) syncState {
	return syncState{epoch: uint64(r.env.Now()), peer: r.Index, cursors: map[node.ID]wire.Pull{}}
}

func (r *Replica) logDecided(rec *record) {
	r.sync.log = append(r.sync.log, wire.Decided{ID: rec.id, TS: r.bounded(rec.tx.TS)})
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
	to := node.ID(r.sync.peer)
	c := r.sync.cursors[to]
	r.env.Send(to, &c)
}

func (r *Replica) onPull(from node.ID, m *wire.Pull) {
	s := &r.sync
	if m.Epoch != s.epoch || m.Since < s.base {
		m = &wire.Pull{Epoch: s.epoch, Since: s.base}
	}
	skip := min(m.Since-s.base, uint64(len(s.log)))
	entries := s.log[skip:min(skip+pullEntries, uint64(len(s.log)))]
	reply := &wire.PullReply{Epoch: s.epoch, Next: s.base + skip + uint64(len(entries))}
	reply.Entries = append(reply.Entries, entries...)
	r.env.Send(from, reply)
}

// onPullReply fetches what this replica does not know. The cursor moves only
// past entries that were known or fetched before, because the answers to this
// fetch may be lost.
func (r *Replica) onPullReply(from node.ID, m *wire.PullReply) {
	if int(from) >= r.Checker.Replicas() {
		return
	}
	horizon := r.horizon()
	var missing []wire.TxID
	for _, x := range m.Entries {
		if rec := r.records[x.ID]; rec != nil && rec.cert == nil || rec == nil && x.TS.Time > horizon {
			missing = append(missing, x.ID)
		}
	}
	if len(missing) == 0 {
		r.sync.cursors[from] = wire.Pull{Epoch: m.Epoch, Since: m.Next}
		if len(m.Entries) == pullEntries {
			c := r.sync.cursors[from]
			r.env.Send(from, &c)
		}
		return
	}
	r.env.Send(from, &wire.Fetch{IDs: missing[:min(len(missing), fetchEntries)]})
}

// fetchOpen asks about transactions that stay undecided. Their clients may be
// gone; some other participant may have learned a decision.
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

// onFetch answers with all that is known.
func (r *Replica) onFetch(from node.ID, m *wire.Fetch) {
	for _, id := range m.IDs[:min(len(m.IDs), fetchEntries)] {
		switch rec := r.records[id]; {
		case rec == nil || rec.tx == nil:
		case rec.cert != nil:
			r.env.Send(from, &wire.Writeback{Tx: rec.tx, Cert: rec.cert})
		default:
			r.env.Send(from, &wire.Body{Tx: rec.tx})
		}
	}
}
