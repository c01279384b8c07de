package replica

import (
	"slices"

	"assay.dev/assay/systems/basil/internal/wire"
)

// refusal is a reason to vote abort. A conflict proves the reason. blocker names an undecided
// transaction that caused it.
type refusal struct {
	conflict *wire.Conflict
	blocker  *wire.Dep
}

// Rule is one step of the multi-version timestamp-ordering check, Algorithm 1
// of the paper. Dependencies (lines 3-4 and 16-19) are in prepare.go.
type Rule struct {
	Name  string
	check func(r *Replica, tx *wire.Tx) *refusal
}

// AllRules returns Algorithm 1 in the paper's order.
func AllRules() []Rule {
	return []Rule{
		{"timestamp-bound", timestampBound},
		{"reads-current", readsCurrent},
		{"writes-unread", writesUnread},
		{"reads-unannounced", readsUnannounced},
	}
}

// timestampBound, lines 1-2: a timestamp from the future would abort all transactions before it.
func timestampBound(r *Replica, tx *wire.Tx) *refusal {
	if tx.TS.Time > r.env.Now()+int64(r.MaxAhead) {
		return &refusal{}
	}
	return nil
}

// readsCurrent, lines 7-9: no transaction wrote between the version that tx read and tx itself.
func readsCurrent(r *Replica, tx *wire.Tx) *refusal {
	var found *refusal
	for _, x := range tx.Reads {
		if !r.local(x.Key) {
			continue
		}
		if s := r.store.settled[x.Key]; x.Version.Less(s.version) && s.version.Less(tx.TS) {
			return &refusal{}
		}
		k := r.store.active[x.Key]
		if k == nil {
			continue
		}
		for _, w := range k.writers {
			if x.Version.Less(w.tx.TS) && w.tx.TS.Less(tx.TS) {
				if found = found.because(w, x.Key); found.conflict != nil {
					return found
				}
			}
		}
	}
	return found
}

// writesUnread, lines 10-12: no later transaction read a version that tx's write would have hidden.
// Only a faulty client creates two transactions with the same timestamp. They must not both write a
// key, because versions would be ambiguous.
func writesUnread(r *Replica, tx *wire.Tx) *refusal {
	var found *refusal
	for _, w := range tx.Writes {
		k := r.store.active[w.Key]
		if k == nil || !r.local(w.Key) {
			continue
		}
		for _, reader := range k.readers {
			v, _ := reader.tx.ReadVersion(w.Key)
			if v.Less(tx.TS) && tx.TS.Less(reader.tx.TS) {
				if found = found.because(reader, w.Key); found.conflict != nil {
					return found
				}
			}
		}
		if slices.ContainsFunc(k.writers, func(o *record) bool { return o.tx.TS == tx.TS && o.id != tx.ID() }) {
			return &refusal{}
		}
	}
	return found
}

// readsUnannounced, line 13: no executing transaction with a later timestamp has read a key that tx
// writes. This rule only protects that reader and is not needed for serializability, so truncation
// may forget read timestamps.
func readsUnannounced(r *Replica, tx *wire.Tx) *refusal {
	for _, w := range tx.Writes {
		if k := r.store.active[w.Key]; k != nil && r.local(w.Key) && tx.TS.Less(k.rts) {
			return &refusal{}
		}
	}
	return nil
}

// because adds a reason. A committed transaction replaces an undecided one.
func (f *refusal) because(other *record, key wire.Key) *refusal {
	switch {
	case other.committed():
		return &refusal{conflict: &wire.Conflict{Tx: other.tx, Cert: other.cert}}
	case f == nil:
		return &refusal{blocker: &wire.Dep{ID: other.id, Key: key, Version: other.tx.TS}}
	}
	return f
}

// misbehaves, lines 5-6: a read of a version from the transaction's own future
// cannot come from a correct client.
func misbehaves(tx *wire.Tx) bool {
	return slices.ContainsFunc(tx.Reads, func(x wire.Read) bool { return !x.Version.Less(tx.TS) })
}
