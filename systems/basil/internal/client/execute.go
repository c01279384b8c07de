package client

import (
	"bytes"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// execution is a transaction's execution phase.
type execution struct {
	c       *Client
	req     Request
	ts      wire.Timestamp
	shards  []*shardRead
	missing int // shards whose rows are not complete
	txn     *txn
	ended   bool
	rows    []Row
}

// shardRead is the read of the keys of one shard.
type shardRead struct {
	e       *execution
	shard   int
	req     uint64
	keys    []wire.Key
	asked   map[node.ID]bool
	replies map[node.ID]*wire.ReadReply
	refused map[node.ID]wire.ReadStatus
	retries int
	chosen  []choice // set when done
}

// choice is the version that the transaction reads for one key.
type choice struct {
	row Row
	dep *wire.TxID // the undecided writer
}

func (e *execution) start() {
	c := e.c
	byShard := map[int]*shardRead{}
	for _, k := range e.req.Keys {
		s := c.Checker.ShardOf(k)
		sr := byShard[s]
		if sr == nil {
			c.nextReq++
			sr = &shardRead{
				e: e, shard: s, req: c.nextReq,
				asked: map[node.ID]bool{}, replies: map[node.ID]*wire.ReadReply{}, refused: map[node.ID]wire.ReadStatus{},
			}
			byShard[s] = sr
			e.shards = append(e.shards, sr)
			c.reads[sr.req] = sr
		}
		sr.keys = append(sr.keys, k)
	}
	e.missing = len(e.shards)
	for _, sr := range e.shards {
		sr.ask(c.ReadQuorum + c.Checker.F)
	}
}

// ask sends the read to at least n replicas. The first replica rotates with the request, so that
// reads load all replicas equally.
func (s *shardRead) ask(n int) {
	c := s.e.c
	first := c.Checker.First(s.shard)
	m := &wire.ReadReq{Req: s.req, TS: s.e.ts, Keys: s.keys}
	for i := range min(n, c.Checker.N) {
		to := node.ID(first + (int(s.req%uint64(c.Checker.N))+i)%c.Checker.N)
		if s.replies[to] == nil {
			s.asked[to] = true
			c.env.Send(to, m)
		}
	}
	c.env.After(backoff(c.RetryInterval, s.retries), func() {
		if s.chosen == nil && !s.e.ended {
			s.retries++
			c.Counters.Resends++
			s.ask(c.Checker.N)
			s.check() // the time for waiting may be over
		}
	})
}

func (c *Client) onReadReply(from node.ID, m *wire.ReadReply) {
	s := c.reads[m.Req]
	if s == nil || !s.asked[from] || s.replies[from] != nil ||
		int(m.Proof.Replica) != int(from) || !c.Checker.Verify(&m.Proof, m.Statement) {
		return
	}
	if m.Status != wire.ReadOK {
		s.refused[from] = m.Status
		if len(s.refused) > c.Checker.F {
			s.fail(m.Status)
		}
		return
	}
	if len(m.Rows) != len(s.keys) || !c.validRows(s, m) {
		return
	}
	delete(s.refused, from)
	s.replies[from] = m
	s.check()
}

// validRows checks that each certified version is what its writer committed.
func (c *Client) validRows(s *shardRead, m *wire.ReadReply) bool {
	for i := range m.Rows {
		row := &m.Rows[i]
		if row.Kind != wire.Genesis && !row.Version.Less(s.e.ts) ||
			row.Prepared != nil && !row.Prepared.Version.Less(s.e.ts) {
			return false
		}
		if row.Kind == wire.Certified && !c.certified(s.keys[i], row, m.Attached) {
			return false
		}
	}
	return true
}

func (c *Client) certified(key wire.Key, row *wire.Row, attached []wire.Conflict) bool {
	for i := range attached {
		a := &attached[i]
		if a.Tx.ID() != row.Writer {
			continue
		}
		value, writes := a.Tx.WriteValue(key)
		if !writes || a.Tx.TS != row.Version || !bytes.Equal(value, row.Value) {
			return false
		}
		if c.verified.has(row.Writer) {
			return true
		}
		if a.Cert.Decision != wire.Commit || !c.Checker.ValidCert(a.Tx, a.Cert) {
			return false
		}
		c.verified.add(row.Writer)
		return true
	}
	return false
}

// check completes the read when it has a quorum. If too few replicas have named a settled version
// yet, it waits until all replies have come or until the first retry: reading an older version
// would abort the transaction.
func (s *shardRead) check() {
	if s.chosen != nil || s.e.ended || len(s.replies) < s.e.c.ReadQuorum {
		return
	}
	patient := len(s.replies) < len(s.asked) && s.retries == 0
	chosen := make([]choice, len(s.keys))
	for i := range s.keys {
		pick, claimed := s.choose(i)
		if patient && pick.row.Version.Less(claimed) {
			return
		}
		chosen[i] = pick
	}
	s.chosen = chosen
	delete(s.e.c.reads, s.req)
	if s.e.missing--; s.e.missing == 0 {
		s.e.prepare()
	}
}

// choose picks the newest valid version of the i-th key: a certified one, or a settled or prepared
// one that f+1 replicas vouch for. The result claimed is the newest settled version that any
// replica named.
func (s *shardRead) choose(i int) (best choice, claimed wire.Timestamp) {
	key := s.keys[i]
	best.row = Row{Key: key, Value: s.e.c.Genesis(key)}
	for _, m := range s.replies {
		row := &m.Rows[i]
		if row.Kind == wire.Settled && claimed.Less(row.Version) {
			claimed = row.Version
		}
		if best.row.Version.Less(row.Version) && (row.Kind == wire.Certified || s.vouched(i, func(o *wire.Row) bool {
			return o.Kind != wire.Genesis && o.Version == row.Version && bytes.Equal(o.Value, row.Value)
		})) {
			best.row = Row{Key: key, Version: row.Version, Value: row.Value}
		}
	}
	// Prepared versions come after all committed ones: if a version is committed at one replica and
	// still prepared at others, no client needs to await the decision.
	for _, m := range s.replies {
		p := m.Rows[i].Prepared
		if p != nil && best.row.Version.Less(p.Version) && s.vouched(i, func(o *wire.Row) bool {
			return o.Prepared != nil && o.Prepared.Version == p.Version && o.Prepared.Writer == p.Writer &&
				bytes.Equal(o.Prepared.Value, p.Value)
		}) {
			best = choice{row: Row{Key: key, Version: p.Version, Value: p.Value}, dep: &p.Writer}
		}
	}
	return best, claimed
}

// vouched reports whether f+1 replies agree, so that at least one is from a correct replica. With a
// read quorum of one it trusts that one reply: use this only for measurements.
func (s *shardRead) vouched(i int, agrees func(*wire.Row) bool) bool {
	n := 0
	for _, m := range s.replies {
		if agrees(&m.Rows[i]) {
			n++
		}
	}
	return n >= min(s.e.c.Checker.Vouch, s.e.c.ReadQuorum)
}

// prepare ends the execution phase, when all rows are there.
func (e *execution) prepare() {
	c := e.c
	tx := &wire.Tx{TS: e.ts}
	next := map[int]int{}
	type depKey struct {
		id    wire.TxID
		shard int
	}
	seen := map[depKey]bool{}
	for _, k := range e.req.Keys {
		shard := c.Checker.ShardOf(k)
		var sr *shardRead
		for _, s := range e.shards {
			if s.shard == shard {
				sr = s
			}
		}
		pick := sr.chosen[next[shard]]
		next[shard]++
		e.rows = append(e.rows, pick.row)
		tx.Reads = append(tx.Reads, wire.Read{Key: k, Version: pick.row.Version})
		if pick.dep != nil && !seen[depKey{*pick.dep, shard}] {
			seen[depKey{*pick.dep, shard}] = true
			tx.Deps = append(tx.Deps, wire.Dep{ID: *pick.dep, Key: k, Version: pick.row.Version})
			c.Counters.Dependencies++
		}
	}
	if e.req.Update != nil {
		tx.Writes = e.req.Update(e.rows)
	}
	c.startTxn(tx.Seal(), e)
}

// timeout ends the request. A prepared transaction continues in the background, so that it does not
// block others.
func (e *execution) timeout() {
	if e.ended {
		return
	}
	e.c.Counters.Timeouts++
	if e.txn != nil {
		if e.req.Misbehavior != Behave {
			e.txn.done = true // a client that misbehaves finishes no transaction without a waiter
			delete(e.c.txns, e.txn.id)
		}
		e.txn.owner = nil
	}
	e.end(Result{Outcome: TimedOut})
}

// fail ends the transaction because f+1 replicas rejected its timestamp.
func (s *shardRead) fail(status wire.ReadStatus) {
	e := s.e
	if e.ended {
		return
	}
	if s.retries > 0 && status == wire.ReadTooOld {
		// The clock is right: the messages took this long. A new attempt has a new timestamp.
		e.end(Result{Outcome: Aborted})
		return
	}
	detail := "timestamp too far in the future: the client's clock is ahead of the replicas'"
	if status == wire.ReadTooOld {
		detail = "timestamp older than what replicas retain: the client's clock is behind the replicas'"
	}
	e.end(Result{Outcome: Failed, Detail: detail})
}

func (e *execution) end(res Result) {
	e.ended = true
	for _, s := range e.shards {
		delete(e.c.reads, s.req)
	}
	if e.txn != nil {
		res.Tx = e.txn.tx
	}
	res.Rows = e.rows
	e.req.Done(res)
}
