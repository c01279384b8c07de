package quorum

import (
	"testing"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/wire"
)

func TestSizes(t *testing.T) {
	for f, want := range map[int]Sizes{
		0: {F: 0, N: 1, CommitFast: 1, CommitSlow: 1, AbortFast: 1, AbortSlow: 1, Log: 1, Elect: 1, Vouch: 1},
		1: {F: 1, N: 6, CommitFast: 6, CommitSlow: 4, AbortFast: 4, AbortSlow: 2, Log: 5, Elect: 5, Vouch: 2},
		2: {F: 2, N: 11, CommitFast: 11, CommitSlow: 7, AbortFast: 7, AbortSlow: 3, Log: 9, Elect: 9, Vouch: 3},
	} {
		if got := For(f); got != want {
			t.Errorf("f=%d: got %+v, want %+v", f, got, want)
		}
	}
}

// The protocol's safety depends on this arithmetic.
func TestIntersections(t *testing.T) {
	for f := range 10 {
		q := For(f)
		if 2*q.CommitSlow-q.N < f+1 {
			t.Errorf("f=%d: two commit quorums need not share a correct replica", f)
		}
		if q.CommitFast-f+q.AbortSlow <= q.N-1 && f > 0 && q.N-q.CommitFast+f >= q.AbortSlow {
			t.Errorf("f=%d: after a fast commit an abort could be logged", f)
		}
		if honest := q.AbortFast - f; q.N-f-honest+f >= q.CommitSlow {
			t.Errorf("f=%d: after a fast abort a commit could be logged", f)
		}
		// This is the smallest election with as few as possible of the correct replicas that logged
		// d. They must still be its majority.
		if logged := q.Log - f; 2*(logged-(q.N-q.Elect)) <= q.Elect {
			t.Errorf("f=%d: an election could overturn a logged decision", f)
		}
		if q.N-f < q.Log || q.N-f < q.Elect || q.N-f < q.CommitSlow {
			t.Errorf("f=%d: f silent replicas stop progress", f)
		}
		// n-f votes always allow one decision or the other.
		if q.N-f-(q.AbortSlow-1) < q.CommitSlow {
			t.Errorf("f=%d: n-f votes may allow no decision", f)
		}
	}
}

func TestShardsAndLeaders(t *testing.T) {
	l := Layout{Sizes: For(1), Shards: 3}
	var count [3]int
	for i := range 3000 {
		count[l.ShardOf(wire.TableKey(1, uint64(i)))]++
	}
	for s, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("shard %d has %d of 3000 keys", s, n)
		}
	}
	seen := map[int]bool{}
	for v := range uint32(6) {
		seen[l.Leader(2, wire.TxID{1, 2, 3}, v)] = true
	}
	for i := 12; i < 18; i++ {
		if !seen[i] {
			t.Errorf("replica %d of shard 2 never leads in six views: %v", i, seen)
		}
	}
}

func ts(t int64) wire.Timestamp { return wire.Timestamp{Time: t, Client: 1} }

func TestConflicts(t *testing.T) {
	tx := func(at int64, read int64, writes bool) *wire.Tx {
		x := &wire.Tx{TS: ts(at), Reads: []wire.Read{{Key: 1, Version: ts(read)}}}
		if writes {
			x.Writes = []wire.Write{{Key: 1}}
		}
		return x.Seal()
	}
	for name, tc := range map[string]struct {
		a, b *wire.Tx
		want bool
	}{
		"b wrote between a's version and a":       {tx(10, 2, false), tx(5, 2, true), true},
		"a would write between b's version and b": {tx(5, 2, true), tx(10, 2, false), true},
		"a read b's write":                        {tx(10, 5, true), tx(5, 2, true), false},
		"b is after a's read":                     {tx(10, 2, false), tx(12, 10, true), false},
		"both only read":                          {tx(10, 2, false), tx(5, 2, false), false},
	} {
		if got := conflicts(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// kit makes certificates for a layout of two shards with f=1.
type kit struct {
	*Checker
	tx *wire.Tx
}

func newKit(t *testing.T) *kit {
	t.Helper()
	l := Layout{Sizes: For(1), Shards: 2}
	k := &kit{Checker: &Checker{Layout: l, Verifier: auth.NewVerifier(auth.MAC{}, l.Replicas())}}
	tx := &wire.Tx{TS: ts(10)}
	for key := wire.Key(1); len(tx.Shards(l.ShardOf)) < 2; key++ {
		tx.Reads = append(tx.Reads, wire.Read{Key: key, Version: ts(2)})
		tx.Writes = append(tx.Writes, wire.Write{Key: key})
	}
	k.tx = tx.Seal()
	return k
}

func sign(replica int, statement []byte) wire.Proof {
	root, _ := auth.Tree([][32]byte{auth.Leaf(statement)})
	return wire.Proof{Replica: uint16(replica), Sig: auth.MAC{Replica: replica}.Sign(root)}
}

func (k *kit) votes(shard int, vote wire.Decision, n int) wire.ShardVotes {
	v := wire.ShardVotes{Shard: uint16(shard), Vote: vote}
	for i := range n {
		v.Proofs = append(v.Proofs, sign(k.First(shard)+i, wire.VoteStatement(k.tx.ID(), vote)))
	}
	return v
}

func (k *kit) log(shard int, d wire.Decision, view uint32, n int) *wire.Cert {
	c := &wire.Cert{Decision: d, View: view}
	for i := range n {
		m := wire.ST2R{ID: k.tx.ID(), Decision: d, ViewDecision: view, ViewCurrent: view + uint32(i)}
		c.Log = append(c.Log, wire.LogVote{ViewCurrent: m.ViewCurrent, Proof: sign(k.First(shard)+i, m.Statement())})
	}
	return c
}

func (k *kit) seen(shard int, d wire.Decision, n int) *wire.Cert {
	c := &wire.Cert{Decision: d}
	for i := range n {
		c.Seen = append(c.Seen, sign(k.First(shard)+i, wire.SeenStatement(k.tx.ID(), d)))
	}
	return c
}

func fast(d wire.Decision, votes ...wire.ShardVotes) *wire.Cert {
	return &wire.Cert{Decision: d, Votes: votes}
}

func TestCertificates(t *testing.T) {
	k := newKit(t)
	log := k.Logging(k.tx)
	duplicate := k.votes(1, wire.Commit, 5)
	duplicate.Proofs = append(duplicate.Proofs, duplicate.Proofs[0])
	forged := k.votes(1, wire.Commit, 6)
	forged.Proofs[3].Sig = []byte("nonsense")
	unsigned := k.votes(1, wire.Commit, 6)
	unsigned.Proofs[3].Sig = nil
	borrowed := k.votes(0, wire.Commit, 6)
	borrowed.Shard = 1
	relabelled := k.votes(1, wire.Abort, 6)
	relabelled.Vote = wire.Commit
	mixed := k.log(log, wire.Commit, 1, 5)
	mixed.View = 2
	for name, tc := range map[string]struct {
		cert *wire.Cert
		want bool
	}{
		"fast commit":                      {fast(wire.Commit, k.votes(0, wire.Commit, 6), k.votes(1, wire.Commit, 6)), true},
		"fast commit, a vote short":        {fast(wire.Commit, k.votes(0, wire.Commit, 6), k.votes(1, wire.Commit, 5)), false},
		"fast commit, a shard missing":     {fast(wire.Commit, k.votes(0, wire.Commit, 6)), false},
		"fast commit, a replica twice":     {fast(wire.Commit, k.votes(0, wire.Commit, 6), duplicate), false},
		"fast commit, forged signature":    {fast(wire.Commit, k.votes(0, wire.Commit, 6), forged), false},
		"fast commit, missing signature":   {fast(wire.Commit, k.votes(0, wire.Commit, 6), unsigned), false},
		"fast commit, other shard's votes": {fast(wire.Commit, k.votes(0, wire.Commit, 6), borrowed), false},
		"fast commit, abort votes renamed": {fast(wire.Commit, k.votes(0, wire.Commit, 6), relabelled), false},
		"fast abort":                       {fast(wire.Abort, k.votes(1, wire.Abort, 4)), true},
		"fast abort, a vote short":         {fast(wire.Abort, k.votes(1, wire.Abort, 3)), false},
		"fast abort from commit votes":     {fast(wire.Abort, k.votes(1, wire.Commit, 6)), false},
		"slow commit":                      {k.log(log, wire.Commit, 0, 5), true},
		"slow abort in a later view":       {k.log(log, wire.Abort, 3, 5), true},
		"slow, a vote short":               {k.log(log, wire.Commit, 0, 4), false},
		"slow, wrong shard":                {k.log(1-log, wire.Commit, 0, 5), false},
		"slow, other view than signed":     {mixed, false},
		"seen":                             {k.seen(0, wire.Abort, 2), true},
		"seen by one":                      {k.seen(0, wire.Abort, 1), false},
		"nothing":                          {&wire.Cert{Decision: wire.Commit}, false},
	} {
		t.Run(name, func(t *testing.T) {
			// A fresh checker: a cached root needs no valid signature again.
			if got := newKit(t).ValidCert(k.tx, tc.cert); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCertificateOfAnotherTransaction(t *testing.T) {
	k := newKit(t)
	cert := fast(wire.Commit, k.votes(0, wire.Commit, 6), k.votes(1, wire.Commit, 6))
	other := *k.tx
	other.TS = ts(11)
	if k.ValidCert(other.Seal(), cert) {
		t.Error("accepted")
	}
}

func TestLoggable(t *testing.T) {
	k := newKit(t)
	for name, tc := range map[string]struct {
		m    *wire.ST2
		want bool
	}{
		"commit":                {&wire.ST2{Decision: wire.Commit, Votes: []wire.ShardVotes{k.votes(0, wire.Commit, 4), k.votes(1, wire.Commit, 4)}}, true},
		"commit, a vote short":  {&wire.ST2{Decision: wire.Commit, Votes: []wire.ShardVotes{k.votes(0, wire.Commit, 4), k.votes(1, wire.Commit, 3)}}, false},
		"commit, shard missing": {&wire.ST2{Decision: wire.Commit, Votes: []wire.ShardVotes{k.votes(0, wire.Commit, 6)}}, false},
		"abort":                 {&wire.ST2{Decision: wire.Abort, Votes: []wire.ShardVotes{k.votes(1, wire.Abort, 2)}}, true},
		"abort, a vote short":   {&wire.ST2{Decision: wire.Abort, Votes: []wire.ShardVotes{k.votes(1, wire.Abort, 1)}}, false},
		"abort, no vote at all": {&wire.ST2{Decision: wire.Abort}, false},
		"abort from two halves": {&wire.ST2{Decision: wire.Abort, Votes: []wire.ShardVotes{k.votes(0, wire.Abort, 1), k.votes(1, wire.Abort, 1)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.m.Tx = k.tx
			if got := k.Loggable(tc.m); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestElections(t *testing.T) {
	k := newKit(t)
	shard := k.Logging(k.tx)
	elects := func(view uint32, commits, n int) (out []wire.ElectFB) {
		for i := range n {
			e := wire.ElectFB{ID: k.tx.ID(), Decision: wire.Abort, View: view}
			if i < commits {
				e.Decision = wire.Commit
			}
			e.Proof = sign(k.First(shard)+i, e.Statement())
			out = append(out, e)
		}
		return out
	}
	leader := k.Leader(shard, k.tx.ID(), 3)
	for name, tc := range map[string]struct {
		by     int
		d      wire.Decision
		elects []wire.ElectFB
		want   bool
	}{
		"majority commits":            {leader, wire.Commit, elects(3, 3, 5), true},
		"majority aborts":             {leader, wire.Abort, elects(3, 2, 5), true},
		"against the majority":        {leader, wire.Abort, elects(3, 3, 5), false},
		"a vote short":                {leader, wire.Commit, elects(3, 4, 4), false},
		"votes for another view":      {leader, wire.Commit, elects(2, 5, 5), false},
		"not the leader of this view": {k.Leader(shard, k.tx.ID(), 4), wire.Commit, elects(3, 3, 5), false},
		"one elector twice":           {leader, wire.Commit, append(elects(3, 4, 4), elects(3, 1, 1)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &wire.DecFB{ID: k.tx.ID(), Decision: tc.d, View: 3, Elects: tc.elects}
			m.Proof = sign(tc.by, m.Statement())
			if got := k.ValidElection(shard, m); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestConflictProof(t *testing.T) {
	k := newKit(t)
	winner := *k
	tx := *k.tx
	tx.TS = ts(5)
	winner.tx = tx.Seal()
	cert := fast(wire.Commit, winner.votes(0, wire.Commit, 6), winner.votes(1, wire.Commit, 6))
	if !k.ValidCert(k.tx, &wire.Cert{Decision: wire.Abort, Conflict: &wire.Conflict{Tx: winner.tx, Cert: cert}}) {
		t.Error("a committed write between version and reader is no proof")
	}
	if k.ValidCert(k.tx, &wire.Cert{Decision: wire.Commit, Conflict: &wire.Conflict{Tx: winner.tx, Cert: cert}}) {
		t.Error("a conflict proves a commit")
	}
	aborted := fast(wire.Abort, winner.votes(0, wire.Abort, 4))
	if k.ValidConflict(k.tx, &wire.Conflict{Tx: winner.tx, Cert: aborted}) {
		t.Error("an aborted transaction is taken for a conflict")
	}
	harmless := *k
	tx.TS = ts(1)
	harmless.tx = tx.Seal()
	cert = fast(wire.Commit, harmless.votes(0, wire.Commit, 6), harmless.votes(1, wire.Commit, 6))
	if k.ValidConflict(k.tx, &wire.Conflict{Tx: harmless.tx, Cert: cert}) {
		t.Error("a write from before the version that was read is taken for a conflict")
	}
}

func TestClaims(t *testing.T) {
	k := newKit(t)
	var claims Claims
	add := func(replica int, d wire.Decision, signer int) *wire.Cert {
		p := sign(signer, wire.SeenStatement(k.tx.ID(), d))
		p.Replica = uint16(replica)
		return claims.Add(k.Checker, &wire.Seen{ID: k.tx.ID(), Decision: d, Proof: p})
	}
	for _, step := range []struct {
		replica, signer int
		d               wire.Decision
		want            bool
	}{
		{0, 0, wire.Commit, false},
		{0, 0, wire.Commit, false}, // again
		{1, 2, wire.Commit, false}, // forged
		{1, 1, wire.Abort, false},
		{7, 7, wire.Commit, false}, // of the other shard
		{2, 2, wire.Commit, true},
	} {
		cert := add(step.replica, step.d, step.signer)
		if (cert != nil) != step.want {
			t.Fatalf("replica %d claims %v: got %v", step.replica, step.d, cert)
		}
		if cert != nil && !k.ValidCert(k.tx, cert) {
			t.Error("the certificate is not valid")
		}
	}
}
