package replica

import (
	"time"

	"assay.dev/assay/systems/basil/internal/wire"
)

// Truncation. A replica drops a decided transaction with its certificate, when its timestamp is
// older than Retain and n-f replicas of the shard know the decision. For each key that it wrote,
// the newest version stays as a settled version. A tombstone with only the decision stays for
// Remember.
//
// Why this is safe:
//
//   - Undecided transactions stay, with all promises about them. A dropped vote or logged decision
//     belonged to a decided transaction. Its tombstone prevents another vote.
//   - New transactions from before the horizon get an abort vote. All others have later timestamps.
//     They can read nothing older than the newest version from before the horizon, and that version
//     stays. A dropped reader has an earlier timestamp than theirs, so it could not have seen their
//     writes.
//   - Readers accept a settled version only when f+1 replicas name it.
//
// No client gets stuck: n-f replicas know the decision, and 3f+1 of them are correct. So a client
// that still needs the decision finds f+1 replicas that have seen it.
//
// The remaining memory grows by about 100 bytes for each different row that was written, and by
// about 40 bytes for each transaction of the last Remember.

const truncateInterval = 250 * time.Millisecond

type aged struct {
	rec *record
	ts  wire.Timestamp
}

// tombstoneID is half an identity. It takes 2^64 attempts to find two identities with the same
// half. A client that finds them confuses only readers of its own transactions.
type tombstoneID [16]byte

type tombstone struct {
	id tombstoneID
	ts int64
}

type truncation struct {
	order []aged // all records, in the order in which this replica first heard of them
	stuck []aged // older than the horizon, but undecided or not stable

	decisions map[tombstoneID]wire.Decision
	buried    []tombstone // the keys of decisions, oldest first
}

// decision returns the decision of a truncated transaction.
func (t *truncation) decision(id wire.TxID) wire.Decision {
	return t.decisions[tombstoneID(id[:16])]
}

func (r *Replica) scheduleTruncate() {
	r.env.After(truncateInterval, func() {
		r.truncate()
		r.scheduleTruncate()
	})
}

func (r *Replica) truncate() {
	horizon, stable := r.horizon(), r.stable()
	t := &r.trunc
	var keep []aged
	for _, a := range t.stuck {
		if !r.forget(a, stable) {
			keep = append(keep, a)
		}
	}
	n := 0
	for ; n < len(t.order) && t.order[n].ts.Time < horizon; n++ {
		if !r.forget(t.order[n], stable) {
			keep = append(keep, t.order[n])
		}
	}
	clear(t.order[:n])
	t.order, t.stuck = t.order[n:], keep

	s := &r.sync
	n = 0
	for n < len(s.log) && s.log[n].TS.Time < horizon && s.base+uint64(n) < stable {
		n++
	}
	s.log, s.base = s.log[n:], s.base+uint64(n)
	for n = 0; n < len(t.buried) && t.buried[n].ts < horizon-int64(r.Remember); n++ {
		delete(t.decisions, t.buried[n].id)
	}
	t.buried = t.buried[n:]
	r.truncateKeys(horizon)
}

// forget drops a record, unless it has promises that could still matter.
func (r *Replica) forget(a aged, stable uint64) bool {
	rec := a.rec
	switch {
	case rec.cert != nil && rec.position < stable:
		if rec.committed() {
			r.settleWrites(rec.tx)
			r.unlist(rec)
		}
		id := tombstoneID(rec.id[:16])
		r.trunc.decisions[id] = rec.cert.Decision
		r.trunc.buried = append(r.trunc.buried, tombstone{id, a.ts.Time})
	case rec.cert == nil && rec.tx == nil && rec.logged == wire.Undecided:
		// It was only a dependency of other transactions.
	default:
		return false
	}
	delete(r.records, rec.id)
	return true
}

// truncateKeys drops the state of keys that were not touched for a while.
func (r *Replica) truncateKeys(horizon int64) {
	s := r.store
	n := 0
	for ; n < len(s.touched) && s.touched[n].at < horizon; n++ {
		t := s.touched[n]
		if k := s.active[t.key]; k.empty() && k.rts.Time < horizon {
			delete(s.active, t.key)
			continue
		}
		s.touched = append(s.touched, touchedKey{t.key, r.env.Now()})
	}
	s.touched = s.touched[n:]
}
