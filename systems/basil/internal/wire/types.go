// Package wire holds Basil's data types, its messages and their binary codec.
//
// Names follow the paper (Suri-Payer et al., "Basil: Breaking up BFT with ACID (transactions)",
// SOSP 2021): ST1 and ST1R are the first stage of the prepare phase (Section 4.2), and ST2 and ST2R
// the second. C-CERT and A-CERT are decision certificates (Section 4.3). ELECT-FB and DEC-FB belong
// to the fallback (Section 5).
//
// The codec is written by hand. For a transaction, encoding/json takes more processor time than the
// whole protocol without signatures.
package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Timestamp orders transactions: by the client's clock, and at equal times by the client's number.
// The zero value is the timestamp of every row's genesis version.
type Timestamp struct {
	Time   int64 // nanoseconds since the Unix epoch
	Client uint32
}

// Less reports whether a is before b in the serialization order.
func (a Timestamp) Less(b Timestamp) bool {
	return a.Time < b.Time || a.Time == b.Time && a.Client < b.Client
}

// IsGenesis reports whether a is the timestamp of the initial version.
func (a Timestamp) IsGenesis() bool { return a == Timestamp{} }

// Key names one row. Rows of one table are consecutive numbers, so that a
// range scan is a run of keys.
type Key uint64

// TableKey returns the key of a row: the table in the upper 24 bits.
func TableKey(table, row uint64) Key { return Key(table<<40 | row) }

// TxID is the SHA-256 of a transaction's encoding. So a Byzantine client cannot give two replicas
// different transactions under one name.
type TxID [32]byte

// String returns the first eight hexadecimal digits, enough for a log line.
func (id TxID) String() string { return hex.EncodeToString(id[:4]) }

// Read is one member of a read set: the version that the transaction saw.
type Read struct {
	Key     Key
	Version Timestamp
}

// Write is one member of a write set.
type Write struct {
	Key   Key
	Value []byte
}

// Dep says that the transaction read a still undecided version, which the transaction ID wrote to
// Key. Replicas of Key's shard vote only after ID is decided. One Dep for each pair of transaction
// and shard is enough.
type Dep struct {
	ID      TxID
	Key     Key
	Version Timestamp
}

// Tx is a transaction at the end of its execution phase. It is immutable after Seal or after
// decoding.
type Tx struct {
	TS     Timestamp
	Reads  []Read
	Writes []Write
	Deps   []Dep

	id TxID
}

// Seal computes the transaction's identity; call it once when the sets are
// complete.
func (t *Tx) Seal() *Tx {
	e := Encoder{}
	t.encode(&e)
	t.id = sha256.Sum256(e.Bytes())
	return t
}

// ID returns the identity computed by Seal or by decoding.
func (t *Tx) ID() TxID { return t.id }

// Shards returns the participating shards in ascending order.
func (t *Tx) Shards(shardOf func(Key) int) []int {
	var out []int
	add := func(k Key) {
		s := shardOf(k)
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, r := range t.Reads {
		add(r.Key)
	}
	for _, w := range t.Writes {
		add(w.Key)
	}
	slices.Sort(out)
	return out
}

// ReadVersion returns the version of key in the read set.
func (t *Tx) ReadVersion(key Key) (Timestamp, bool) {
	for _, r := range t.Reads {
		if r.Key == key {
			return r.Version, true
		}
	}
	return Timestamp{}, false
}

// WriteValue returns the value that the transaction writes to key.
func (t *Tx) WriteValue(key Key) ([]byte, bool) {
	for _, w := range t.Writes {
		if w.Key == key {
			return w.Value, true
		}
	}
	return nil, false
}

// Decision is the outcome of a transaction, and also a replica's vote on it.
type Decision uint8

const (
	// Undecided is the zero value; never sent.
	Undecided Decision = iota
	// Commit makes the transaction's writes visible.
	Commit
	// Abort undoes its tentative effects. As a vote it is the paper's Vote-Abort (the prototype
	// calls it "abstain" when it has no proof).
	Abort
)

// String returns the lower-case name.
func (d Decision) String() string {
	return [...]string{"undecided", "commit", "abort"}[min(d, 2)]
}

// Proof shows that a replica signed a statement: the statement's leaf is at Index of a Merkle tree
// whose root the replica signed. A batch of one has an empty path. Sig is empty when cryptography
// is switched off.
type Proof struct {
	Replica uint16 // global index, shard-major
	Index   uint16
	Path    [][32]byte
	Sig     []byte
}

// ShardVotes are the votes of one shard that justify a decision (SHARDVOTES).
type ShardVotes struct {
	Shard  uint16
	Vote   Decision
	Proofs []Proof
}

// LogVote is one ST2R inside a certificate. The certificate has its decision and decision view.
type LogVote struct {
	ViewCurrent uint32
	Proof       Proof
}

// Conflict is a committed transaction that keeps another one from committing. It is the optional
// proof of an abort vote.
type Conflict struct {
	Tx   *Tx
	Cert *Cert
}

// Cert is a C-CERT or an A-CERT. Its evidence is exactly one of Votes (fast path), Log (slow path),
// Conflict (abort by proof) and Seen. The paper does not have Seen: f+1 replicas of one shard have
// seen a certificate and have dropped it since.
type Cert struct {
	Decision Decision
	Votes    []ShardVotes
	View     uint32 // the common decision view of Log
	Log      []LogVote
	Conflict *Conflict
	Seen     []Proof
}
