package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

// errStuck marks failures of liveness; all others are failures of safety.
var errStuck = errors.New("no progress")

// history has all decisions: in certificates that were sent, and in reports to clients.
type history struct {
	checker      *quorum.Checker
	certs        map[wire.TxID]map[wire.Decision]bool
	txs          map[wire.TxID]*wire.Tx
	acked        map[wire.TxID]*simClient
	rows         map[wire.TxID][]client.Row
	errs         []error
	decFB        uint64
	settledReads uint64
}

func newHistory(c *quorum.Checker) history {
	return history{
		checker: c, certs: map[wire.TxID]map[wire.Decision]bool{}, txs: map[wire.TxID]*wire.Tx{},
		acked: map[wire.TxID]*simClient{}, rows: map[wire.TxID][]client.Row{},
	}
}

// observe gets every message that is sent.
func (h *history) observe(_ node.ID, m wire.Message) {
	switch m := m.(type) {
	case *wire.Writeback:
		id := m.Tx.ID()
		if h.certs[id][m.Cert.Decision] || !h.checker.ValidCert(m.Tx, m.Cert) {
			return
		}
		if h.certs[id] == nil {
			h.certs[id] = map[wire.Decision]bool{}
		}
		h.certs[id][m.Cert.Decision] = true
		h.txs[id] = m.Tx
	case *wire.DecFB:
		h.decFB++
	case *wire.ReadReply:
		for _, r := range m.Rows {
			if r.Kind == wire.Settled {
				h.settledReads++
			}
		}
	}
}

func (h *history) ended(n *simClient, res client.Result) {
	switch res.Outcome {
	case client.Committed:
		h.acked[res.Tx.ID()] = n
		h.txs[res.Tx.ID()] = res.Tx
		h.rows[res.Tx.ID()] = res.Rows
	case client.Aborted:
		if res.Tx != nil && h.certs[res.Tx.ID()][wire.Commit] {
			h.errs = append(h.errs, fmt.Errorf("%v was reported as aborted but committed", res.Tx.ID()))
		}
	case client.Failed:
		h.errs = append(h.errs, fmt.Errorf("%w: client %d was refused: %s", errStuck, n.id, res.Detail))
	}
}

func (h *history) check(s *scenario) error {
	if len(h.errs) > 0 {
		return h.errs[0]
	}
	for id, d := range h.certs {
		if d[wire.Commit] && d[wire.Abort] {
			return fmt.Errorf("%v has both a commit and an abort certificate", id)
		}
	}
	var committed []*wire.Tx
	for id, tx := range h.txs {
		if h.acked[id] != nil && h.certs[id][wire.Abort] {
			return fmt.Errorf("%v was acknowledged as committed but has an abort certificate", id)
		}
		if h.acked[id] != nil || h.certs[id][wire.Commit] {
			committed = append(committed, tx)
		}
	}
	slices.SortFunc(committed, func(a, b *wire.Tx) int {
		if a.TS.Less(b.TS) {
			return -1
		}
		return 1
	})
	if err := h.serializable(committed); err != nil {
		return err
	}
	if err := acyclic(committed); err != nil {
		return err
	}
	return h.everywhere(s, committed)
}

// serializable replays the committed transactions in timestamp order: each
// must have read exactly the latest version before it.
func (h *history) serializable(committed []*wire.Tx) error {
	type version struct {
		ts    wire.Timestamp
		value []byte
	}
	latest := map[wire.Key]version{}
	for _, tx := range committed {
		for i, r := range tx.Reads {
			l, written := latest[r.Key]
			if !written {
				l.value = []byte("genesis")
			}
			if r.Version != l.ts {
				return fmt.Errorf("not serializable: %v at %v read row %d at version %v, but the latest before it is %v",
					tx.ID(), tx.TS, r.Key, r.Version, l.ts)
			}
			if rows := h.rows[tx.ID()]; len(rows) > i && !bytes.Equal(rows[i].Value, l.value) {
				return fmt.Errorf("%v read %q from row %d, but %q was written", tx.ID(), rows[i].Value, r.Key, l.value)
			}
		}
		for _, w := range tx.Writes {
			latest[w.Key] = version{tx.TS, w.Value}
		}
	}
	return nil
}

// acyclic builds the direct serialization graph from the versions alone, without the order of
// timestamps: write-read, write-write and read-write edges must have no cycle.
func acyclic(committed []*wire.Tx) error {
	writers := map[wire.Key][]*wire.Tx{} // in version order
	for _, tx := range committed {
		for _, w := range tx.Writes {
			writers[w.Key] = append(writers[w.Key], tx)
		}
	}
	edges := map[*wire.Tx][]*wire.Tx{}
	for _, list := range writers {
		for i := 1; i < len(list); i++ {
			edges[list[i-1]] = append(edges[list[i-1]], list[i])
		}
	}
	for _, tx := range committed {
		for _, r := range tx.Reads {
			for i, w := range writers[r.Key] {
				if w.TS == r.Version && w != tx {
					edges[w] = append(edges[w], tx)
				}
				if r.Version.Less(w.TS) && w != tx && (i == 0 || !r.Version.Less(writers[r.Key][i-1].TS)) {
					edges[tx] = append(edges[tx], w)
				}
			}
		}
	}
	state := map[*wire.Tx]int{} // 1: on the path, 2: done
	var visit func(*wire.Tx) bool
	visit = func(tx *wire.Tx) bool {
		if state[tx] != 0 {
			return state[tx] == 2
		}
		state[tx] = 1
		for _, next := range edges[tx] {
			if !visit(next) {
				return false
			}
		}
		state[tx] = 2
		return true
	}
	for _, tx := range committed {
		if !visit(tx) {
			return fmt.Errorf("cycle in the serialization graph through %v", tx.ID())
		}
	}
	return nil
}

// everywhere asks every correct replica for every acknowledged transaction of its shard: either all
// of them know the commit, or none of them. None may know it if the writeback reached only replicas
// that have failed since. Then another client finishes the transaction when it matters, so it must
// be read-only or overwritten by now.
func (h *history) everywhere(s *scenario, committed []*wire.Tx) error {
	if s.retain < time.Second {
		return nil // forgotten by design; the last client has read the rows
	}
	known := map[node.ID]map[wire.TxID]bool{}
	s.probe.handle = func(from node.ID, m wire.Message) {
		if wb, ok := m.(*wire.Writeback); ok && wb.Cert.Decision == wire.Commit {
			known[from][wb.Tx.ID()] = true
		}
	}
	var ids []wire.TxID
	for id := range h.acked {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b wire.TxID) int { return bytes.Compare(a[:], b[:]) })
	for _, n := range s.replicas {
		known[n.id] = map[wire.TxID]bool{}
		if n.correct {
			s.probe.Send(n.id, &wire.Fetch{IDs: ids})
		}
	}
	s.run(time.Second, func() bool { return false })
	for _, id := range ids {
		tx := h.txs[id]
		var with, without []node.ID
		for _, n := range s.replicas {
			mine := slices.Contains(tx.Shards(s.layout.ShardOf), s.layout.ShardOfReplica(int(n.id)))
			switch {
			case !mine || !n.correct:
			case known[n.id][id]:
				with = append(with, n.id)
			default:
				without = append(without, n.id)
			}
		}
		if len(with) > 0 && len(without) > 0 {
			return fmt.Errorf("%v was acknowledged; replicas %v know that it committed but %v do not", id, with, without)
		}
		if len(with) == 0 && !overwritten(tx, committed) {
			return fmt.Errorf("%v was acknowledged, but no correct replica knows that it committed", id)
		}
	}
	return nil
}

// overwritten reports whether each of tx's writes has a committed successor.
func overwritten(tx *wire.Tx, committed []*wire.Tx) bool {
	for _, w := range tx.Writes {
		if !slices.ContainsFunc(committed, func(o *wire.Tx) bool {
			_, writes := o.WriteValue(w.Key)
			return writes && tx.TS.Less(o.TS)
		}) {
			return false
		}
	}
	return true
}
