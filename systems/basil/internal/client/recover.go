package client

import (
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// fetch finds the body of a transaction of which only the identity is known.
type fetch struct {
	dep   wire.Dep
	tries int
}

// maxFetches bounds the attempts. A dependency that f+1 replicas vouched for is found within them;
// an invented one never is.
const maxFetches = 8

// recoverDeps finishes the transactions that this one waits for.
func (t *txn) recoverDeps() {
	if t.done || t.proposed != wire.Undecided {
		return
	}
	for _, d := range t.tx.Deps {
		t.c.recover(d)
	}
}

// recover finishes a transaction that its own client seems to have given up (Section 5, common
// case). It runs the prepare phase again. Replicas answer with their former votes, logged decisions
// or certificates, whatever is newest. It recovers the transaction's dependencies in the same way.
func (c *Client) recover(d wire.Dep) {
	if c.txns[d.ID] != nil || c.fetches[d.ID] != nil {
		return
	}
	c.Counters.Recoveries++
	f := &fetch{dep: d}
	c.fetches[d.ID] = f
	c.fetch(f)
}

func (c *Client) fetch(f *fetch) {
	m := &wire.Fetch{IDs: []wire.TxID{f.dep.ID}}
	c.shardReplicas(c.Checker.ShardOf(f.dep.Key), func(to node.ID) { c.env.Send(to, m) })
	c.env.After(backoff(c.RetryInterval, f.tries), func() {
		if c.fetches[f.dep.ID] != f {
			return
		}
		if f.tries++; f.tries >= maxFetches {
			delete(c.fetches, f.dep.ID)
			return
		}
		c.fetch(f)
	})
}

// onBody starts the recovery of a requested transaction.
func (c *Client) onBody(m *wire.Body) {
	id := m.Tx.ID()
	if c.fetches[id] == nil || c.txns[id] != nil || len(m.Tx.Shards(c.Checker.ShardOf)) == 0 {
		return
	}
	delete(c.fetches, id)
	c.startTxn(m.Tx, nil).recovers = true
}

// onDecided learns a decision of another client. It passes the decision on: the replica that caused
// the request may not know it.
func (c *Client) onDecided(m *wire.Writeback) {
	id := m.Tx.ID()
	t, f := c.txns[id], c.fetches[id]
	if t == nil && f == nil || !c.Checker.ValidCert(m.Tx, m.Cert) {
		return
	}
	delete(c.fetches, id)
	if t != nil && t.misbehavior() == StallLate {
		t.abandon(&c.Counters.StalledLate)
		return
	}
	if t == nil {
		c.Counters.Recovered++ // it was decided before the recovery had to drive it
	}
	for _, s := range m.Tx.Shards(c.Checker.ShardOf) {
		c.shardReplicas(s, func(to node.ID) { c.env.Send(to, m) })
	}
	if t == nil {
		return
	}
	if t.owner != nil {
		c.Counters.LearnedDecisions++
	}
	t.close(m.Cert.Decision)
}
