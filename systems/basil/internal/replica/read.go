package replica

import (
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// onRead answers with the newest committed version before the reader's timestamp. If the newest
// prepared version is newer, the answer has it, too (Section 4.1). onRead remembers the reader's
// timestamp.
func (r *Replica) onRead(from node.ID, m *wire.ReadReq) {
	reply := &wire.ReadReply{Req: m.Req}
	switch {
	case m.TS.Time > r.env.Now()+int64(r.MaxAhead):
		reply.Status = wire.ReadTooNew
	case m.TS.Time < r.horizon():
		reply.Status = wire.ReadTooOld
	default:
		r.readRows(m, reply)
	}
	reply.Seal()
	r.batch.add(reply.Statement, func(p wire.Proof) {
		reply.Proof = p
		r.env.Send(from, reply)
	})
}

func (r *Replica) readRows(m *wire.ReadReq, reply *wire.ReadReply) {
	attached := map[wire.TxID]bool{}
	now := r.env.Now()
	for _, key := range m.Keys {
		if !r.local(key) {
			// Only a faulty client asks the wrong shard.
			reply.Rows = append(reply.Rows, wire.Row{})
			continue
		}
		k := r.store.touch(key, now)
		if k.rts.Less(m.TS) {
			k.rts = m.TS
		}
		row, writer, ok := r.readRow(key, k, m.TS)
		if !ok {
			reply.Status, reply.Rows, reply.Attached = wire.ReadTooOld, nil, nil
			return
		}
		if writer != nil && !attached[writer.id] {
			attached[writer.id] = true
			reply.Attached = append(reply.Attached, wire.Conflict{Tx: writer.tx, Cert: writer.cert})
		}
		reply.Rows = append(reply.Rows, row)
	}
}

// readRow finds the versions of one key for a reader at ts. It also returns the writer of the
// committed version if its certificate is still here.
func (r *Replica) readRow(key wire.Key, k *keyState, ts wire.Timestamp) (row wire.Row, committed *record, ok bool) {
	for i := len(k.writers) - 1; i >= 0; i-- {
		w := k.writers[i]
		if !w.tx.TS.Less(ts) {
			continue
		}
		value, _ := w.tx.WriteValue(key)
		if w.committed() {
			row.Kind, row.Version, row.Value, row.Writer = wire.Certified, w.tx.TS, value, w.id
			committed = w
			break
		}
		if row.Prepared == nil {
			row.Prepared = &wire.PreparedRow{Version: w.tx.TS, Value: value, Writer: w.id}
		}
	}
	if s, exists := r.store.settled[key]; exists && row.Version.Less(s.version) {
		if !s.version.Less(ts) {
			return row, nil, false // the version that ts needs is gone
		}
		row.Kind, row.Version, row.Value, row.Writer = wire.Settled, s.version, s.value, wire.TxID{}
		committed = nil
	}
	if row.Prepared != nil && row.Prepared.Version.Less(row.Version) {
		row.Prepared = nil
	}
	return row, committed, true
}
