package replica

import (
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// onST2 logs a decision that the votes justify. The first decision stays: the answer to a later ST2
// has the logged decision, whatever it asks for.
func (r *Replica) onST2(from node.ID, m *wire.ST2) {
	if len(m.Tx.Shards(r.Checker.ShardOf)) == 0 || r.Checker.Logging(m.Tx) != r.shard {
		return
	}
	rec := r.record(m.Tx.ID(), m.Tx.TS)
	if rec == nil {
		r.sendSeen(from, m.Tx.ID())
		return
	}
	if rec.cert != nil {
		r.env.Send(from, &wire.Writeback{Tx: rec.tx, Cert: rec.cert})
		return
	}
	if rec.logged == wire.Undecided {
		if !r.Checker.Loggable(m) {
			return
		}
		rec.logged = m.Decision
	}
	r.learn(rec, m.Tx)
	rec.interest(from)
	r.sendLogged(from, rec)
}

// sendLogged signs and sends the logged decision.
func (r *Replica) sendLogged(to node.ID, rec *record) {
	m := &wire.ST2R{
		ID: rec.id, Decision: rec.logged, ViewDecision: rec.viewDecision, ViewCurrent: rec.viewCurrent,
	}
	r.batch.add(m.Statement(), func(p wire.Proof) {
		m.Proof = p
		r.env.Send(to, m)
	})
}

// onWriteback applies a decision with a valid certificate.
func (r *Replica) onWriteback(m *wire.Writeback) {
	rec := r.records[m.Tx.ID()]
	if rec != nil && rec.cert != nil || rec == nil && r.trunc.decision(m.Tx.ID()) != wire.Undecided {
		return
	}
	if !r.Checker.ValidCert(m.Tx, m.Cert) {
		return
	}
	if rec == nil {
		if rec = r.record(m.Tx.ID(), m.Tx.TS); rec == nil {
			// The transaction is older than all remembered ones: only its versions matter.
			if m.Cert.Decision == wire.Commit {
				r.settleWrites(m.Tx)
			}
			return
		}
	}
	if rec.tx == nil {
		rec.tx = m.Tx
	}
	r.decide(rec, m.Cert)
}

func (r *Replica) decide(rec *record, cert *wire.Cert) {
	rec.cert = cert
	// From now on, every question gets the certificate as its answer.
	rec.interested, rec.elections, rec.conflict = nil, nil, nil
	if cert.Decision == wire.Commit {
		r.Counters.Committed++
		r.list(rec)
	} else {
		r.Counters.Aborted++
		r.unlist(rec)
	}
	rec.prepared = false
	r.logDecided(rec)
	r.resolve(rec)
}

func (r *Replica) settleWrites(tx *wire.Tx) {
	for _, w := range tx.Writes {
		if r.local(w.Key) {
			r.store.settle(w.Key, tx.TS, w.Value)
		}
	}
}
