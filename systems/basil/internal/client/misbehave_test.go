package client

import (
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/wire"
)

// sentAll counts the messages of a kind by receiver.
func sentAll[M wire.Message](b *bench) (n int) {
	for i := range b.Checker.N {
		for _, m := range b.sent[node.ID(i)] {
			if _, is := m.(M); is {
				n++
			}
		}
	}
	return n
}

// silent checks that a transaction was abandoned, and that the client answers no later message.
func (b *bench) silent(t *testing.T) {
	t.Helper()
	if b.result == nil || b.result.Outcome != Abandoned || b.result.Tx == nil {
		t.Fatalf("ended as %+v, want it abandoned, and to be told which it was", b.result)
	}
	if n := sentAll[*wire.Writeback](b); n != 0 {
		t.Errorf("%d writebacks", n)
	}
	b.result = nil
	before := sentAll[wire.Message](b)
	for i := range b.Checker.N {
		b.vote(i, wire.Commit)
		b.logged(i, wire.Commit, 0)
	}
	b.advance(20 * time.Second)
	if n := sentAll[wire.Message](b) - before; n != 0 || b.result != nil || len(b.txns) != 0 {
		t.Errorf("%d messages after the end, ended again as %+v, %d transactions are open", n, b.result, len(b.txns))
	}
}

func TestStallEarly(t *testing.T) {
	b := newBench(true)
	b.misbehavior = StallEarly
	b.toPrepare()
	if n := sentAll[*wire.ST1](b); n != b.Checker.N {
		t.Errorf("%d prepares, want one to each replica", n)
	}
	b.silent(t)
	if b.Counters.StalledEarly != 1 {
		t.Errorf("counters %+v", b.Counters)
	}
}

func TestStallLate(t *testing.T) {
	for name, tc := range map[string]struct {
		fastPath bool
		logged   int
	}{
		"fast path": {true, 0},
		"slow path": {false, 5},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(tc.fastPath)
			b.misbehavior = StallLate
			b.toPrepare()
			for i := range b.Checker.N {
				b.vote(i, wire.Commit)
			}
			for i := range tc.logged {
				if b.result != nil {
					t.Fatalf("ended with %d logged decisions", i)
				}
				b.logged(i, wire.Commit, 0)
			}
			if n := sentAll[*wire.ST2](b); (n == b.Checker.N) != (tc.logged > 0) {
				t.Errorf("%d requests to log the decision", n)
			}
			b.silent(t)
			if b.Counters.StalledLate != 1 || b.Counters.FastPathCommits+b.Counters.SlowPathCommits != 0 {
				t.Errorf("counters %+v", b.Counters)
			}
		})
	}
}

// A client that stalls does not pass on a decision of another client.
func TestStallLateLearnsTheDecision(t *testing.T) {
	b := newBench(true)
	b.misbehavior = StallLate
	b.toPrepare()
	cert := &wire.Cert{Decision: wire.Commit, Votes: []wire.ShardVotes{{Vote: wire.Commit}}}
	for i := range b.Checker.N {
		cert.Votes[0].Proofs = append(cert.Votes[0].Proofs, sign(i, wire.VoteStatement(b.tx().ID(), wire.Commit)))
	}
	b.Handle(0, &wire.Writeback{Tx: b.tx(), Cert: cert})
	b.silent(t)
}

func TestEquivocate(t *testing.T) {
	const c, a = wire.Commit, wire.Abort
	for name, tc := range map[string]struct {
		votes       []wire.Decision
		wait        time.Duration
		equivocates bool
		wantOutcome Outcome
		wantST2     wire.Decision
	}{
		"commits first":                  {votes: []wire.Decision{c, c, c, c, a, a}, equivocates: true, wantOutcome: Abandoned},
		"aborts first":                   {votes: []wire.Decision{a, a, c, c, c, c}, equivocates: true, wantOutcome: Abandoned},
		"in time":                        {votes: []wire.Decision{a, c, c, c, c}, wait: 3 * time.Millisecond},
		"votes that justify commit only": {votes: []wire.Decision{c, c, c, c, a}, wait: 4 * time.Millisecond, wantST2: c},
		"votes that justify abort only":  {votes: []wire.Decision{a, a, c, c, c}, wait: 4 * time.Millisecond, wantST2: a},
		"too many aborts":                {votes: []wire.Decision{a, a, a, c, c, c}, wantST2: a},
		"all commit":                     {votes: []wire.Decision{c, c, c, c, c, c}, wantOutcome: Committed},
		"all abort":                      {votes: []wire.Decision{a, a, a, a}, wantOutcome: Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(true)
			b.misbehavior = Equivocate
			b.toPrepare()
			for i, v := range tc.votes {
				b.vote(i, v)
			}
			b.advance(tc.wait)
			var outcome Outcome
			if b.result != nil {
				outcome = b.result.Outcome
			}
			if outcome != tc.wantOutcome {
				t.Errorf("outcome %v, want %v", outcome, tc.wantOutcome)
			}
			if !tc.equivocates {
				st2, _ := has[*wire.ST2](b)
				if st2 == nil && tc.wantST2 != wire.Undecided || st2 != nil && st2.Decision != tc.wantST2 {
					t.Errorf("asks to log %+v, want %v", st2, tc.wantST2)
				}
				return
			}
			asked := map[wire.Decision]int{}
			for i := range b.Checker.N {
				for _, m := range b.sent[node.ID(i)] {
					if st2, is := m.(*wire.ST2); is {
						asked[st2.Decision]++
						if !b.Checker.Loggable(st2) {
							t.Errorf("replica %d would refuse to log %v", i, st2.Decision)
						}
					}
				}
			}
			if asked[c] != 3 || asked[a] != 3 {
				t.Errorf("%d replicas are asked to log a commit and %d an abort, want half each", asked[c], asked[a])
			}
			b.silent(t)
			if b.Counters.Equivocated != 1 {
				t.Errorf("counters %+v", b.Counters)
			}
		})
	}
}

// A client that misbehaves in one transaction finishes the transactions that others left.
func TestMisbehavingClientRecoversOthers(t *testing.T) {
	b := newBench(true)
	b.misbehavior = StallLate
	b.toPrepare()
	other := (&wire.Tx{TS: wire.Timestamp{Time: 5, Client: 9}, Writes: []wire.Write{{Key: 1, Value: []byte("x")}}}).Seal()
	b.recover(wire.Dep{ID: other.ID(), Key: 1, Version: other.TS})
	b.Handle(0, &wire.Body{Tx: other})
	for i := range b.Checker.N {
		m := &wire.ST1R{ID: other.ID(), Vote: wire.Commit}
		m.Proof = sign(i, m.Statement())
		b.Handle(node.ID(i), m)
	}
	if wb, ok := has[*wire.Writeback](b); !ok || wb.Tx.ID() != other.ID() || b.Counters.Recoveries != 1 || b.Counters.Recovered != 1 {
		t.Errorf("writeback %+v, counters %+v", wb, b.Counters)
	}
}
