package replica

import (
	"slices"
	"sort"

	"assay.dev/assay/systems/basil/internal/wire"
)

// settled is a committed version without its transaction.
type settled struct {
	version wire.Timestamp
	value   []byte
}

// keyState lists the recent transactions that touch a key, by timestamp.
type keyState struct {
	writers []*record // prepared or committed
	readers []*record // prepared or committed
	rts     wire.Timestamp
}

func (k *keyState) empty() bool { return len(k.writers) == 0 && len(k.readers) == 0 }

// store holds the rows of one shard. Rows that were never written take no memory: the client
// computes their genesis version.
type store struct {
	active  map[wire.Key]*keyState
	settled map[wire.Key]settled
	// touched lists active keys in the order of their creation, for truncation.
	touched []touchedKey
}

type touchedKey struct {
	key wire.Key
	at  int64
}

func newStore() *store {
	return &store{active: map[wire.Key]*keyState{}, settled: map[wire.Key]settled{}}
}

func (s *store) touch(key wire.Key, now int64) *keyState {
	k := s.active[key]
	if k == nil {
		k = &keyState{}
		s.active[key] = k
		s.touched = append(s.touched, touchedKey{key, now})
	}
	return k
}

// insert adds rec to a list ordered by timestamp; once only.
func insert(list []*record, rec *record) []*record {
	i := sort.Search(len(list), func(i int) bool { return !list[i].tx.TS.Less(rec.tx.TS) })
	for j := i; j < len(list) && list[j].tx.TS == rec.tx.TS; j++ {
		if list[j] == rec {
			return list
		}
	}
	return slices.Insert(list, i, rec)
}

func remove(list []*record, rec *record) []*record {
	if i := slices.Index(list, rec); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// list adds rec as reader and writer of this shard's keys.
func (r *Replica) list(rec *record) {
	now := r.env.Now()
	for _, x := range rec.tx.Reads {
		if r.local(x.Key) {
			k := r.store.touch(x.Key, now)
			k.readers = insert(k.readers, rec)
		}
	}
	for _, w := range rec.tx.Writes {
		if r.local(w.Key) {
			k := r.store.touch(w.Key, now)
			k.writers = insert(k.writers, rec)
		}
	}
}

// unlist undoes list.
func (r *Replica) unlist(rec *record) {
	for _, x := range rec.tx.Reads {
		if k := r.store.active[x.Key]; k != nil {
			k.readers = remove(k.readers, rec)
		}
	}
	for _, w := range rec.tx.Writes {
		if k := r.store.active[w.Key]; k != nil {
			k.writers = remove(k.writers, rec)
		}
	}
}

// settle makes a committed write permanent without its transaction.
func (s *store) settle(key wire.Key, version wire.Timestamp, value []byte) {
	if s.settled[key].version.Less(version) {
		// A copy is needed: value is a part of its message, and would keep the whole message in
		// memory.
		s.settled[key] = settled{version, slices.Clone(value)}
	}
}
