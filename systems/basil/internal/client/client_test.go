package client

import (
	"slices"
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

// bench is a client with a manual clock and manual replicas.
type bench struct {
	*Client
	now    int64
	timers []timer
	sent   map[node.ID][]wire.Message
	result *Result

	misbehavior Misbehavior // of the next transaction
}

type timer struct {
	at int64
	fn func()
}

func (b *bench) Now() int64                      { return b.now }
func (b *bench) Send(to node.ID, m wire.Message) { b.sent[to] = append(b.sent[to], m) }
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

func newBench(fastPath bool) *bench {
	b := &bench{now: 1e18, sent: map[node.ID][]wire.Message{}}
	l := quorum.Layout{Sizes: quorum.For(1), Shards: 1}
	b.Client = New(Config{
		Checker:  &quorum.Checker{Layout: l, Verifier: auth.NewVerifier(auth.MAC{}, l.N)},
		Genesis:  func(wire.Key) []byte { return []byte("g") },
		FastPath: fastPath,
	}, b)
	return b
}

func sign(replica int, statement []byte) wire.Proof {
	root, _ := auth.Tree([][32]byte{auth.Leaf(statement)})
	return wire.Proof{Replica: uint16(replica), Sig: auth.MAC{Replica: replica}.Sign(root)}
}

func (b *bench) begin() {
	b.Begin(Request{
		Client: 1, Keys: []wire.Key{1}, Timeout: time.Second, Misbehavior: b.misbehavior,
		Update: func(r []Row) []wire.Write { return []wire.Write{{Key: 1, Value: append(r[0].Value, '+')}} },
		Done:   func(r Result) { b.result = &r },
	})
}

// asked returns the replicas that a read was sent to, and the read.
func (b *bench) asked() (who []int, m *wire.ReadReq) {
	for i := range b.Checker.N {
		for _, x := range b.sent[node.ID(i)] {
			if r, ok := x.(*wire.ReadReq); ok {
				who, m = append(who, i), r
			}
		}
	}
	return who, m
}

func (b *bench) reply(replica int, rows ...wire.Row) {
	_, req := b.asked()
	m := &wire.ReadReply{Req: req.Req, Rows: rows}
	m.Seal()
	m.Proof = sign(replica, m.Statement)
	b.Handle(node.ID(replica), m)
}

// tx returns the transaction of the ST1 that replica 0 got.
func (b *bench) tx() *wire.Tx {
	for _, m := range b.sent[0] {
		if st1, ok := m.(*wire.ST1); ok {
			return st1.Tx
		}
	}
	return nil
}

func (b *bench) vote(replica int, v wire.Decision) {
	m := &wire.ST1R{ID: b.tx().ID(), Vote: v}
	m.Proof = sign(replica, m.Statement())
	b.Handle(node.ID(replica), m)
}

func (b *bench) logged(replica int, d wire.Decision, view uint32) {
	m := &wire.ST2R{ID: b.tx().ID(), Decision: d, ViewDecision: view, ViewCurrent: view}
	m.Proof = sign(replica, m.Statement())
	b.Handle(node.ID(replica), m)
}

func has[M wire.Message](b *bench) (m M, ok bool) {
	for _, x := range b.sent[0] {
		if y, is := x.(M); is {
			m, ok = y, true
		}
	}
	return m, ok
}

// toPrepare executes the reads of a transaction on untouched rows.
func (b *bench) toPrepare() {
	b.begin()
	who, _ := b.asked()
	for _, i := range who[:2] {
		b.reply(i, wire.Row{})
	}
}

func TestDecisions(t *testing.T) {
	const c, a = wire.Commit, wire.Abort
	for name, tc := range map[string]struct {
		noFast      bool
		votes       []wire.Decision
		wait        time.Duration
		wantOutcome Outcome
		wantST2     wire.Decision
	}{
		"all commit":                           {votes: []wire.Decision{c, c, c, c, c, c}, wantOutcome: Committed},
		"five commit, one silent, at once":     {votes: []wire.Decision{c, c, c, c, c}},
		"five commit, one silent, before 4 ms": {votes: []wire.Decision{c, c, c, c, c}, wait: 3999 * time.Microsecond},
		"five commit, one silent, after 4 ms":  {votes: []wire.Decision{c, c, c, c, c}, wait: 4 * time.Millisecond, wantST2: c},
		"one abort makes waiting pointless":    {votes: []wire.Decision{c, c, c, a, c, c}, wantST2: c},
		"four abort":                           {votes: []wire.Decision{a, a, a, a}, wantOutcome: Aborted},
		"two abort, the rest is out":           {votes: []wire.Decision{a, a}},
		"two abort, the rest stays out":        {votes: []wire.Decision{a, a}, wait: 4 * time.Millisecond, wantST2: a},
		"two abort, four commit: commit":       {votes: []wire.Decision{a, a, c, c, c, c}, wantST2: c},
		"three abort, three commit: abort":     {votes: []wire.Decision{a, c, a, c, a, c}, wantST2: a},
		"three commit do not suffice":          {votes: []wire.Decision{c, c, c}, wait: 50 * time.Millisecond},
		"no fast path, four commit":            {noFast: true, votes: []wire.Decision{c, c, c, c}, wantST2: c},
		"no fast path, four abort":             {noFast: true, votes: []wire.Decision{a, a, a, a}, wantST2: a},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(!tc.noFast)
			b.toPrepare()
			for i, v := range tc.votes {
				b.vote(i, v)
			}
			b.advance(tc.wait)
			var outcome Outcome
			if b.result != nil {
				outcome = b.result.Outcome
			}
			st2, _ := has[*wire.ST2](b)
			var proposed wire.Decision
			if st2 != nil {
				proposed = st2.Decision
				if !b.Checker.Loggable(st2) {
					t.Error("replicas would refuse the ST2")
				}
			}
			if outcome != tc.wantOutcome || proposed != tc.wantST2 {
				t.Errorf("outcome %v, ST2 %v; want %v, %v", outcome, proposed, tc.wantOutcome, tc.wantST2)
			}
			if wb, ok := has[*wire.Writeback](b); ok != (tc.wantOutcome != 0) || ok && !b.Checker.ValidCert(wb.Tx, wb.Cert) {
				t.Error("wrong writeback")
			}
		})
	}
}

func TestVotesThatDoNotCount(t *testing.T) {
	b := newBench(true)
	b.toPrepare()
	for i := range 5 {
		b.vote(i, wire.Commit)
	}
	b.vote(4, wire.Commit) // again
	forged := &wire.ST1R{ID: b.tx().ID(), Vote: wire.Commit, Proof: sign(4, wire.VoteStatement(b.tx().ID(), wire.Commit))}
	forged.Proof.Replica = 5
	b.Handle(5, forged)
	if b.result != nil {
		t.Fatal("decided with five replicas' votes")
	}
	b.vote(5, wire.Commit)
	if b.result == nil {
		t.Error("not decided with all votes")
	}
}

func TestSlowPathAndFallback(t *testing.T) {
	toST2 := func() *bench {
		b := newBench(false)
		b.toPrepare()
		for i := range 4 {
			b.vote(i, wire.Commit)
		}
		return b
	}
	t.Run("4f+1 equal", func(t *testing.T) {
		b := toST2()
		for i := range 4 {
			b.logged(i, wire.Commit, 0)
		}
		if b.result != nil {
			t.Fatal("decided with four")
		}
		b.logged(4, wire.Commit, 0)
		if b.result == nil || b.result.Outcome != Committed {
			t.Errorf("got %+v", b.result)
		}
	})
	t.Run("divergent", func(t *testing.T) {
		b := toST2()
		for i := range 3 {
			b.logged(i, wire.Commit, 0)
		}
		b.logged(3, wire.Abort, 0)
		if _, ok := has[*wire.InvokeFB](b); ok {
			t.Fatal("fallback while five equal ones were possible")
		}
		b.logged(4, wire.Abort, 0)
		if m, ok := has[*wire.InvokeFB](b); !ok || len(m.Views) != 5 {
			t.Fatalf("no fallback: %+v", m)
		}
		// Votes of different views do not add up.
		for i := range 4 {
			b.logged(i, wire.Abort, 1)
		}
		b.logged(5, wire.Abort, 2)
		if b.result != nil {
			t.Fatal("decided over two views")
		}
		b.logged(4, wire.Abort, 1)
		if b.result == nil || b.result.Outcome != Aborted {
			t.Errorf("got %+v", b.result)
		}
	})
}

func TestReads(t *testing.T) {
	v := wire.Timestamp{Time: 5, Client: 2}
	settled := wire.Row{Kind: wire.Settled, Version: v, Value: []byte("s")}
	prepared := wire.Row{Prepared: &wire.PreparedRow{Version: v, Value: []byte("p"), Writer: wire.TxID{7}}}
	forged := wire.Row{Kind: wire.Certified, Version: v, Value: []byte("f"), Writer: wire.TxID{8}}
	for name, tc := range map[string]struct {
		rows     []wire.Row
		retry    bool
		want     string // the value read; empty: it still waits
		wantDeps int
	}{
		"one reply":                         {rows: []wire.Row{{}}},
		"untouched":                         {rows: []wire.Row{{}, {}}, want: "g"},
		"settled, vouched":                  {rows: []wire.Row{settled, settled}, want: "s"},
		"settled, one voice: wait":          {rows: []wire.Row{settled, {}}},
		"settled, one voice of three":       {rows: []wire.Row{settled, {}, {}}, want: "g"},
		"settled, second voice comes third": {rows: []wire.Row{settled, {}, settled}, want: "s"},
		"settled, one voice, time is over":  {rows: []wire.Row{settled, {}}, retry: true, want: "g"},
		"prepared, vouched":                 {rows: []wire.Row{prepared, prepared}, want: "p", wantDeps: 1},
		"prepared, one voice":               {rows: []wire.Row{prepared, {}}, want: "g"},
		"forged certificate":                {rows: []wire.Row{forged, {}}},
		"forged certificate, then another":  {rows: []wire.Row{forged, {}, {}}, want: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(true)
			b.begin()
			who, _ := b.asked()
			if len(who) != 3 {
				t.Fatalf("%d replicas asked, want 2f+1", len(who))
			}
			for i, row := range tc.rows {
				b.reply(who[i], row)
			}
			if tc.retry {
				b.advance(b.RetryInterval)
			}
			tx := b.tx()
			if tx == nil {
				if tc.want != "" {
					t.Error("still waiting")
				}
				return
			}
			if got, _ := tx.WriteValue(1); string(got) != tc.want+"+" || len(tx.Deps) != tc.wantDeps {
				t.Errorf("wrote %q with %d dependencies, want %q with %d", got, len(tx.Deps), tc.want+"+", tc.wantDeps)
			}
		})
	}
}

func TestRefusedTimestamp(t *testing.T) {
	b := newBench(true)
	b.begin()
	who, req := b.asked()
	for _, i := range who[:2] {
		if b.result != nil {
			t.Fatal("one replica's word is enough")
		}
		m := &wire.ReadReply{Req: req.Req, Status: wire.ReadTooNew}
		m.Seal()
		m.Proof = sign(i, m.Statement)
		b.Handle(node.ID(i), m)
	}
	if b.result == nil || b.result.Outcome != Failed || b.result.Detail == "" {
		t.Errorf("got %+v", b.result)
	}
}

func TestTimeoutGoesOnInTheBackground(t *testing.T) {
	b := newBench(true)
	b.toPrepare()
	b.advance(time.Second)
	if b.result == nil || b.result.Outcome != TimedOut {
		t.Fatalf("got %+v", b.result)
	}
	for i := range 6 {
		b.vote(i, wire.Commit)
	}
	if _, ok := has[*wire.Writeback](b); !ok {
		t.Error("the transaction stays in the way of others")
	}
}

func TestDependencyIsRecovered(t *testing.T) {
	b := newBench(true)
	b.begin()
	who, _ := b.asked()
	stalled := (&wire.Tx{TS: wire.Timestamp{Time: 5, Client: 2}, Writes: []wire.Write{{Key: 1, Value: []byte("p")}}}).Seal()
	for _, i := range who[:2] {
		b.reply(i, wire.Row{Prepared: &wire.PreparedRow{Version: stalled.TS, Value: []byte("p"), Writer: stalled.ID()}})
	}
	b.advance(b.DependencyTimeout - 1)
	if _, ok := has[*wire.Fetch](b); ok {
		t.Fatal("too early")
	}
	b.advance(1)
	if m, ok := has[*wire.Fetch](b); !ok || m.IDs[0] != stalled.ID() {
		t.Fatal("the dependency is not asked for")
	}
	b.Handle(2, &wire.Body{Tx: stalled})
	if m, ok := has[*wire.ST1](b); !ok || m.Tx.ID() != stalled.ID() {
		t.Error("the dependency is not prepared again")
	}
}

func TestParseReadQuorum(t *testing.T) {
	for s, want := range map[string]int{"one": 1, "f+1": 3, "2f+1": 5, "": 0, "3": 0} {
		got, err := ParseReadQuorum(s, 2)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d, %v", s, got, err)
		}
	}
}
