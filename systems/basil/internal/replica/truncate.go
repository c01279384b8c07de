package replica

import (
	"time"

	"assay.dev/assay/systems/basil/internal/wire"
)

// Truncation. Every Retain-old transaction that is decided is forgotten; of
// its writes the newest version of each key stays as a settled version without
// certificate. What makes this safe:
//
//   - A new transaction from before the horizon gets no vote and no logged
//     decision (Replica.record), so a forgotten vote is never contradicted.
//   - Undecided transactions stay, with everything promised about them.
//   - All others have later timestamps. They can read nothing older than the
//     newest version from before the horizon, which stays; a reader that is
//     forgotten has an earlier timestamp than they have, so none of their
//     writes could have been hidden from it.
//   - Readers take a settled version only when f+1 replicas name it.
//
// What remains grows with the number of different rows written, by about 100
// bytes each, and not with time.

const truncateInterval = 250 * time.Millisecond

type aged struct {
	rec *record
	ts  wire.Timestamp
}

type truncation struct {
	order []aged // all records, oldest first as this replica heard of them
	stuck []aged // undecided and older than the horizon
}

func (r *Replica) scheduleTruncate() {
	r.env.After(truncateInterval, func() {
		r.truncate()
		r.scheduleTruncate()
	})
}

func (r *Replica) truncate() {
	horizon := r.horizon()
	t := &r.trunc
	var keep []aged
	for _, a := range t.stuck {
		if !r.forget(a) {
			keep = append(keep, a)
		}
	}
	n := 0
	for ; n < len(t.order) && t.order[n].ts.Time < horizon; n++ {
		if !r.forget(t.order[n]) {
			keep = append(keep, t.order[n])
		}
	}
	clear(t.order[:n])
	t.order, t.stuck = t.order[n:], keep

	s := &r.sync
	n = 0
	for n < len(s.log) && s.log[n].TS.Time < horizon {
		n++
	}
	s.log, s.base = s.log[n:], s.base+uint64(n)
	r.truncateKeys(horizon)
}

// forget drops a record if nothing was promised that could still matter.
func (r *Replica) forget(a aged) bool {
	rec := a.rec
	switch {
	case rec.cert != nil:
		if rec.committed() {
			r.settleWrites(rec.tx)
			r.unlist(rec)
		}
	case rec.tx == nil && rec.logged == wire.Undecided:
		// Only ever named as a dependency.
	default:
		return false
	}
	delete(r.records, rec.id)
	return true
}

// truncateKeys drops the state of keys that nobody touched for a while.
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
