package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func sampleTx(deps bool) *Tx {
	t := &Tx{
		TS:     Timestamp{Time: 1_700_000_000_000_000_123, Client: 7},
		Reads:  []Read{{Key: TableKey(3, 5), Version: Timestamp{Time: 99, Client: 1}}, {Key: TableKey(3, 6)}},
		Writes: []Write{{Key: TableKey(3, 5), Value: []byte("v")}},
	}
	if deps {
		t.Deps = []Dep{{ID: TxID{1, 2}, Key: TableKey(3, 5), Version: Timestamp{Time: 99, Client: 1}}}
	}
	return t.Seal()
}

func sampleProof(r uint16) Proof {
	return Proof{Replica: r, Index: 2, Path: [][32]byte{{1}, {2}}, Sig: []byte("signature")}
}

// samples has every message, and every optional part present and absent.
func samples() map[string]Message {
	tx := sampleTx(true)
	votes := []ShardVotes{{Shard: 1, Vote: Commit, Proofs: []Proof{sampleProof(6), sampleProof(7)}}}
	fast := &Cert{Decision: Commit, Votes: votes}
	slow := &Cert{Decision: Abort, View: 3, Log: []LogVote{{ViewCurrent: 4, Proof: sampleProof(1)}}}
	conflict := &Conflict{Tx: sampleTx(false), Cert: fast}
	reply := &ReadReply{
		Req: 9, Status: ReadOK, Proof: sampleProof(2),
		Rows: []Row{
			{Kind: Genesis},
			{Kind: Settled, Version: Timestamp{Time: 5, Client: 2}, Value: []byte("s")},
			{
				Kind: Certified, Version: tx.TS, Value: []byte("v"), Writer: tx.ID(),
				Prepared: &PreparedRow{Version: Timestamp{Time: 6, Client: 2}, Value: []byte("p"), Writer: TxID{9}},
			},
		},
		Attached: []Conflict{{Tx: tx, Cert: fast}},
	}
	reply.Seal()
	refused := &ReadReply{Req: 10, Status: ReadTooOld}
	refused.Seal()
	st2r := ST2R{ID: tx.ID(), Decision: Abort, ViewDecision: 1, ViewCurrent: 2, Proof: sampleProof(4)}
	elect := ElectFB{ID: tx.ID(), Decision: Commit, View: 2, Proof: sampleProof(4)}
	return map[string]Message{
		"read request":        &ReadReq{Req: 1, TS: tx.TS, Keys: []Key{TableKey(1, 1), TableKey(1, 2), TableKey(9, 1)}},
		"read reply":          reply,
		"read reply, refused": refused,
		"ST1":                 &ST1{Tx: tx},
		"ST1, empty":          &ST1{Tx: (&Tx{}).Seal()},
		"ST1R":                &ST1R{ID: tx.ID(), Vote: Commit, Proof: sampleProof(3)},
		"ST1R, conflict": &ST1R{
			ID: tx.ID(), Vote: Abort, Proof: Proof{}, Conflict: conflict,
			Blocker: &Dep{ID: TxID{4}, Key: 8, Version: tx.TS},
		},
		"ST2":                  &ST2{Tx: tx, Decision: Commit, Votes: votes},
		"ST2R":                 &st2r,
		"writeback, fast":      &Writeback{Tx: tx, Cert: fast},
		"writeback, slow":      &Writeback{Tx: tx, Cert: slow},
		"writeback, by proof":  &Writeback{Tx: tx, Cert: &Cert{Decision: Abort, Conflict: conflict}},
		"writeback, from seen": &Writeback{Tx: tx, Cert: &Cert{Decision: Abort, Seen: []Proof{sampleProof(0)}}},
		"invoke":               &InvokeFB{ID: tx.ID(), Views: []ST2R{st2r, st2r}},
		"elect":                &elect,
		"decision":             &DecFB{ID: tx.ID(), Decision: Commit, View: 2, Proof: sampleProof(5), Elects: []ElectFB{elect}},
		"fetch":                &Fetch{IDs: []TxID{{1}, {2}}},
		"body":                 &Body{Tx: tx},
		"pull":                 &Pull{Epoch: 77, Since: 3, Proof: sampleProof(1)},
		"pull reply":           &PullReply{Epoch: 77, Next: 5, Entries: []Decided{{ID: TxID{3}, TS: tx.TS}}},
		"seen":                 &Seen{ID: tx.ID(), Decision: Commit, Proof: sampleProof(1)},
		"ping":                 &Ping{},
		"pong":                 &Pong{},
	}
}

func TestRoundTrip(t *testing.T) {
	seen := map[uint8]bool{}
	for name, m := range samples() {
		t.Run(name, func(t *testing.T) {
			b := Marshal(nil, m)
			got, err := Unmarshal(b)
			if err != nil {
				t.Fatalf("Unmarshal: %v", err)
			}
			if !reflect.DeepEqual(got, m) {
				t.Errorf("got %+v\nwant %+v", got, m)
			}
			for i := range b {
				if _, err := Unmarshal(b[:i]); !errors.Is(err, ErrMalformed) {
					t.Fatalf("the first %d of %d bytes were accepted", i, len(b))
				}
			}
			if _, err := Unmarshal(append(b, 0)); err == nil {
				t.Error("a trailing byte was accepted")
			}
		})
		seen[m.kind()] = true
	}
	for k := kindReadReq; k <= kindSeen; k++ {
		if !seen[k] {
			t.Errorf("no sample of kind %d", k)
		}
	}
}

func TestIdentityCoversContent(t *testing.T) {
	base := sampleTx(true).ID()
	for name, change := range map[string]func(*Tx){
		"timestamp":  func(t *Tx) { t.TS.Client++ },
		"read":       func(t *Tx) { t.Reads[1].Version.Time++ },
		"write":      func(t *Tx) { t.Writes[0].Value = []byte("w") },
		"dependency": func(t *Tx) { t.Deps = nil },
	} {
		x := sampleTx(true)
		change(x)
		if x.Seal().ID() == base {
			t.Errorf("%s: same identity", name)
		}
	}
}

// A number has several encodings as a varint. If the identity were computed from the values, two
// byte strings would decode to transactions with the same identity. That is harmless, but the
// identity must be that of the bytes.
func TestIdentityIsOfTheBytes(t *testing.T) {
	b := Marshal(nil, &Body{Tx: (&Tx{TS: Timestamp{Time: 1, Client: 1}}).Seal()})
	// Client 1 written as 0x81 0x00 instead of 0x01.
	long := append(append(bytes.Clone(b[:2]), 0x81, 0x00), b[3:]...)
	x, err := Unmarshal(b)
	y, err2 := Unmarshal(long)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if x.(*Body).Tx.TS != y.(*Body).Tx.TS || x.(*Body).Tx.ID() == y.(*Body).Tx.ID() {
		t.Error("want equal timestamps with different identities")
	}
}

func TestForgedLengthsAllocateLittle(t *testing.T) {
	// A fetch of 200 identities, of which three are present.
	b := append([]byte{kindFetch, 200, 1}, make([]byte, 32*3+104)...)
	n := testing.AllocsPerRun(10, func() { _, _ = Unmarshal(b) })
	if n > 20 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, m := range samples() {
		f.Add(Marshal(nil, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Unmarshal(b)
		if err != nil {
			return
		}
		// A decoded message encodes to bytes that decode to the same message. The bytes may encode
		// numbers in another way, and then the identities differ, too.
		again, err := Unmarshal(Marshal(nil, m))
		if err != nil {
			t.Fatalf("encoded again it does not decode: %v", err)
		}
		if !bytes.Equal(Marshal(nil, again), Marshal(nil, m)) {
			t.Fatalf("%+v became %+v", m, again)
		}
	})
}

func BenchmarkST1(b *testing.B) {
	tx := &Tx{TS: Timestamp{Time: 1_700_000_000_000_000_123, Client: 7}}
	for i := range uint64(10) {
		tx.Reads = append(tx.Reads, Read{Key: TableKey(3, i), Version: tx.TS})
		tx.Writes = append(tx.Writes, Write{Key: TableKey(3, i), Value: make([]byte, 32)})
	}
	m := &ST1{Tx: tx.Seal()}
	for b.Loop() {
		if _, err := Unmarshal(Marshal(nil, m)); err != nil {
			b.Fatal(err)
		}
	}
}
