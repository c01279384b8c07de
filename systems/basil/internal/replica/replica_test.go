package replica

import (
	"slices"
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

// bench is a replica with a manual clock.
type bench struct {
	*Replica
	t      *testing.T
	now    int64
	timers []timer
	sent   []sent
}

type timer struct {
	at int64
	fn func()
}

type sent struct {
	to node.ID
	m  wire.Message
}

const (
	start  = int64(1e18)
	client = node.FirstClient
)

func (b *bench) Now() int64                      { return b.now }
func (b *bench) Send(to node.ID, m wire.Message) { b.sent = append(b.sent, sent{to, m}) }
func (b *bench) After(d time.Duration, fn func()) {
	b.timers = append(b.timers, timer{b.now + int64(d), fn})
}

func (b *bench) advance(d time.Duration) {
	end := b.now + int64(d)
	for {
		next := -1
		for i, t := range b.timers {
			if t.at <= end && (next < 0 || t.at < b.timers[next].at) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		t := b.timers[next]
		b.timers = slices.Delete(b.timers, next, next+1)
		b.now = t.at
		t.fn()
	}
	b.now = end
}

// last returns the newest message of type M to a receiver.
func last[M wire.Message](b *bench, to node.ID) (m M) {
	b.t.Helper()
	for i := len(b.sent) - 1; i >= 0; i-- {
		if x, ok := b.sent[i].m.(M); ok && b.sent[i].to == to {
			return x
		}
	}
	return m
}

func newBench(t *testing.T, change func(*Config)) *bench {
	b := &bench{t: t, now: start}
	l := quorum.Layout{Sizes: quorum.For(1), Shards: 1}
	cfg := Config{
		Checker:   &quorum.Checker{Layout: l, Verifier: auth.NewVerifier(auth.MAC{}, l.N)},
		Signer:    auth.MAC{},
		BatchSize: 1,
	}
	if change != nil {
		change(&cfg)
	}
	b.Replica = New(cfg, b)
	return b
}

func at(ms int64) wire.Timestamp {
	return wire.Timestamp{Time: start + ms*int64(time.Millisecond), Client: 1}
}

// rw is a transaction at a time. It read key 1 at a version and writes it.
func rw(ms int64, version wire.Timestamp, deps ...wire.Dep) *wire.Tx {
	return (&wire.Tx{
		TS: at(ms), Reads: []wire.Read{{Key: 1, Version: version}},
		Writes: []wire.Write{{Key: 1, Value: []byte{byte(ms)}}}, Deps: deps,
	}).Seal()
}

func sign(replica int, statement []byte) wire.Proof {
	root, _ := auth.Tree([][32]byte{auth.Leaf(statement)})
	return wire.Proof{Replica: uint16(replica), Sig: auth.MAC{Replica: replica}.Sign(root)}
}

func votes(tx *wire.Tx, v wire.Decision, n int) []wire.ShardVotes {
	s := wire.ShardVotes{Vote: v}
	for i := range n {
		s.Proofs = append(s.Proofs, sign(i, wire.VoteStatement(tx.ID(), v)))
	}
	return []wire.ShardVotes{s}
}

func (b *bench) decideTx(tx *wire.Tx, d wire.Decision) {
	n := b.Checker.CommitFast
	if d == wire.Abort {
		n = b.Checker.AbortFast
	}
	b.Handle(client, &wire.Writeback{Tx: tx, Cert: &wire.Cert{Decision: d, Votes: votes(tx, d, n)}})
}

func (b *bench) vote(tx *wire.Tx) *wire.ST1R {
	b.Handle(client, &wire.ST1{Tx: tx})
	m := last[*wire.ST1R](b, client)
	if m == nil || m.ID != tx.ID() {
		return nil
	}
	return m
}

func TestMVTSO(t *testing.T) {
	genesis := wire.Timestamp{}
	for name, tc := range map[string]struct {
		before       func(*bench)
		tx           *wire.Tx
		want         wire.Decision
		wantConflict bool
		wantBlocker  bool
	}{
		"nothing in the way": {tx: rw(10, genesis), want: wire.Commit},
		"too far in the future": {
			tx: rw(1001, genesis), want: wire.Abort,
		},
		"at the bound": {
			tx: rw(1000, genesis), want: wire.Commit,
		},
		"reads its own future": {
			tx: rw(10, at(11)), want: wire.Undecided,
		},
		"missed a committed write": {
			before: func(b *bench) { b.decideTx(rw(5, genesis), wire.Commit) },
			tx:     rw(10, genesis), want: wire.Abort, wantConflict: true,
		},
		"missed a prepared write": {
			before: func(b *bench) { b.vote(rw(5, genesis)) },
			tx:     rw(10, genesis), want: wire.Abort, wantBlocker: true,
		},
		"missed an aborted write": {
			before: func(b *bench) { b.vote(rw(5, genesis)); b.decideTx(rw(5, genesis), wire.Abort) },
			tx:     rw(10, genesis), want: wire.Commit,
		},
		"read the committed write": {
			before: func(b *bench) { b.decideTx(rw(5, genesis), wire.Commit) },
			tx:     rw(10, at(5)), want: wire.Commit,
		},
		"a write after it does not matter to a reader": {
			before: func(b *bench) {
				b.vote((&wire.Tx{TS: at(20), Writes: []wire.Write{{Key: 1}}}).Seal())
			},
			tx: rw(10, genesis), want: wire.Commit,
		},
		"a later prepared reader missed it": {
			before: func(b *bench) { b.vote(rw(20, genesis)) },
			tx:     rw(10, genesis), want: wire.Abort, wantBlocker: true,
		},
		"a later committed reader missed it": {
			before: func(b *bench) { b.decideTx(rw(20, genesis), wire.Commit) },
			tx:     rw(10, genesis), want: wire.Abort, wantConflict: true,
		},
		"a later transaction is executing": {
			before: func(b *bench) { b.Handle(client, &wire.ReadReq{TS: at(20), Keys: []wire.Key{1}}) },
			tx:     rw(10, genesis), want: wire.Abort,
		},
		"an earlier transaction is executing": {
			before: func(b *bench) { b.Handle(client, &wire.ReadReq{TS: at(5), Keys: []wire.Key{1}}) },
			tx:     rw(10, genesis), want: wire.Commit,
		},
		"another row": {
			before: func(b *bench) { b.decideTx(rw(5, genesis), wire.Commit) },
			tx:     (&wire.Tx{TS: at(10), Reads: []wire.Read{{Key: 2}}}).Seal(), want: wire.Commit,
		},
		"the same timestamp twice": {
			before: func(b *bench) {
				b.vote((&wire.Tx{TS: at(10), Writes: []wire.Write{{Key: 1, Value: []byte("x")}}}).Seal())
			},
			tx: (&wire.Tx{TS: at(10), Writes: []wire.Write{{Key: 1, Value: []byte("y")}}}).Seal(), want: wire.Abort,
		},
		"no rows": {tx: (&wire.Tx{TS: at(10)}).Seal(), want: wire.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			if tc.before != nil {
				tc.before(b)
			}
			got := b.vote(tc.tx)
			if got == nil {
				if tc.want != wire.Undecided {
					t.Fatal("no vote")
				}
				return
			}
			if got.Vote != tc.want || (got.Conflict != nil) != tc.wantConflict || (got.Blocker != nil) != tc.wantBlocker {
				t.Errorf("got %v, conflict %v, blocker %v", got.Vote, got.Conflict != nil, got.Blocker != nil)
			}
			if got.Conflict != nil && !b.Checker.ValidConflict(tc.tx, got.Conflict) {
				t.Error("the conflict proves nothing")
			}
		})
	}
}

func TestDependencies(t *testing.T) {
	first := rw(5, wire.Timestamp{})
	dep := wire.Dep{ID: first.ID(), Key: 1, Version: at(5)}
	second := rw(10, at(5), dep)
	for name, tc := range map[string]struct {
		then func(*bench)
		want wire.Decision
	}{
		"undecided": {func(b *bench) { b.advance(time.Hour) }, wire.Undecided},
		"commits":   {func(b *bench) { b.decideTx(first, wire.Commit) }, wire.Commit},
		"aborts":    {func(b *bench) { b.decideTx(first, wire.Abort) }, wire.Abort},
		"forged decision": {func(b *bench) {
			b.Handle(client, &wire.Writeback{Tx: first, Cert: &wire.Cert{Decision: wire.Commit, Votes: votes(first, wire.Commit, 5)}})
		}, wire.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Retain = 3 * time.Hour })
			b.vote(first)
			if b.vote(second) != nil {
				t.Fatal("voted before the dependency was decided")
			}
			tc.then(b)
			got := wire.Undecided
			if m := last[*wire.ST1R](b, client); m.ID == second.ID() {
				got = m.Vote
			}
			if got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		b := newBench(t, nil)
		b.vote(second)
		b.advance(99 * time.Millisecond)
		if last[*wire.ST1R](b, client) != nil {
			t.Fatal("voted too early")
		}
		b.advance(time.Millisecond)
		if m := last[*wire.ST1R](b, client); m == nil || m.Vote != wire.Abort {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("does not write the row", func(t *testing.T) {
		b := newBench(t, nil)
		b.vote(first)
		b.decideTx(first, wire.Commit)
		wrong := (&wire.Tx{
			TS: at(10), Reads: []wire.Read{{Key: 2, Version: at(5)}},
			Deps: []wire.Dep{{ID: first.ID(), Key: 2, Version: at(5)}},
		}).Seal()
		if m := b.vote(wrong); m == nil || m.Vote != wire.Abort {
			t.Errorf("got %+v", m)
		}
	})
}

func TestVoteStays(t *testing.T) {
	b := newBench(t, nil)
	tx := rw(10, wire.Timestamp{})
	if b.vote(tx).Vote != wire.Commit {
		t.Fatal("no commit vote")
	}
	b.decideTx(rw(5, wire.Timestamp{}), wire.Commit) // it would conflict now
	if b.vote(tx).Vote != wire.Commit {
		t.Error("the vote changed")
	}
}

func TestFirstLoggedDecisionStays(t *testing.T) {
	b := newBench(t, nil)
	tx := rw(10, wire.Timestamp{})
	st2 := func(d wire.Decision, n int) *wire.ST2R {
		b.sent = nil
		b.Handle(client, &wire.ST2{Tx: tx, Decision: d, Votes: votes(tx, d, n)})
		return last[*wire.ST2R](b, client)
	}
	if m := st2(wire.Commit, 3); m != nil {
		t.Fatalf("logged without a quorum: %+v", m)
	}
	if m := st2(wire.Abort, 2); m == nil || m.Decision != wire.Abort {
		t.Fatalf("got %+v", m)
	}
	if m := st2(wire.Commit, 4); m == nil || m.Decision != wire.Abort {
		t.Errorf("got %+v", m)
	}
}

func TestNextView(t *testing.T) {
	b := newBench(t, nil)
	id := wire.TxID{1}
	for name, tc := range map[string]struct {
		views []uint32
		want  uint32
	}{
		"all in view 0":                      {[]uint32{0, 0, 0, 0, 0}, 1},
		"3f+1 in view 0":                     {[]uint32{0, 0, 0, 0}, 1},
		"too few":                            {[]uint32{0, 0, 0}, 0},
		"3f+1 in view 2":                     {[]uint32{2, 2, 2, 2, 0}, 3},
		"later views count for earlier ones": {[]uint32{3, 2, 2, 1, 1}, 2},
		"f+1 ahead: catch up":                {[]uint32{5, 5, 0, 0, 0}, 5},
		"one ahead is not believed":          {[]uint32{9, 0, 0, 0, 0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := &wire.InvokeFB{ID: id}
			for i, v := range tc.views {
				x := wire.ST2R{ID: id, Decision: wire.Commit, ViewCurrent: v}
				x.Proof = sign(i, x.Statement())
				m.Views = append(m.Views, x)
			}
			if got := b.nextView(m); got != tc.want {
				t.Errorf("got view %d, want %d", got, tc.want)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	b := newBench(t, func(c *Config) { c.BatchSize, c.BatchTimeout = 3, 2*time.Millisecond })
	read := func(req uint64) { b.Handle(client, &wire.ReadReq{Req: req, TS: at(1), Keys: []wire.Key{1}}) }
	count := func() (n int) {
		for _, s := range b.sent {
			if _, ok := s.m.(*wire.ReadReply); ok {
				n++
			}
		}
		return n
	}
	read(1)
	b.advance(1999 * time.Microsecond)
	if count() != 0 {
		t.Fatal("sent before the batch timeout")
	}
	b.advance(time.Microsecond)
	if count() != 1 {
		t.Fatal("not sent at the batch timeout")
	}
	read(2)
	read(3)
	read(4)
	if count() != 4 {
		t.Fatalf("a full batch waits: %d replies", count())
	}
	for _, s := range b.sent {
		if m, ok := s.m.(*wire.ReadReply); ok && !b.Checker.Verify(&m.Proof, m.Statement) {
			t.Errorf("reply %d does not verify", m.Req)
		}
	}
}

// pullFrom makes n peers report that they know the whole log.
func (b *bench) pullFrom(n int) {
	for i := 1; i <= n; i++ {
		m := &wire.Pull{Epoch: b.sync.epoch, Since: b.sync.base + uint64(len(b.sync.log))}
		m.Proof = sign(i, m.Statement())
		b.Handle(client, m)
	}
}

func TestTruncation(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Retain, c.Remember = 10*time.Second, time.Minute })
	done, open := rw(5, wire.Timestamp{}), rw(10, at(5))
	b.vote(done)
	b.decideTx(done, wire.Commit)
	b.vote(open)
	b.pullFrom(3)
	b.advance(11 * time.Second)
	if b.records[done.ID()] == nil {
		t.Fatal("dropped although only four of six replicas know the decision")
	}
	b.pullFrom(4)
	b.advance(time.Second)
	if b.records[done.ID()] != nil {
		t.Fatal("kept although five replicas know the decision")
	}
	if b.records[open.ID()] == nil {
		t.Fatal("an undecided transaction was dropped")
	}

	b.sent = nil
	b.Handle(client, &wire.ST1{Tx: done})
	if m := last[*wire.Seen](b, client); m == nil || m.Decision != wire.Commit {
		t.Errorf("the decision is not remembered: %+v", b.sent)
	}
	late := rw(7, at(5))
	if m := b.vote(late); m == nil || m.Vote != wire.Abort {
		t.Errorf("a new transaction from before the horizon: %+v", m)
	}
	b.Handle(client, &wire.ReadReq{Req: 1, TS: at(11_900), Keys: []wire.Key{1}})
	if m := last[*wire.ReadReply](b, client); m.Status != wire.ReadOK || m.Rows[0].Kind != wire.Settled || m.Rows[0].Version != at(5) {
		t.Errorf("the version is gone: %+v", m)
	}
	b.decideTx(open, wire.Abort)
	b.decideTx(late, wire.Abort)
	b.pullFrom(5)
	b.advance(2 * time.Minute)
	if len(b.records)+len(b.trunc.decisions)+len(b.store.active)+len(b.sync.log) != 0 {
		t.Errorf("left: %d records, %d tombstones, %d keys, %d log entries",
			len(b.records), len(b.trunc.decisions), len(b.store.active), len(b.sync.log))
	}
	if len(b.store.settled) != 1 {
		t.Errorf("%d settled rows, want 1", len(b.store.settled))
	}
}
