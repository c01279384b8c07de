// Package quorum defines which sets of replicas may make which decisions.
//
// With n = 5f+1 replicas in a shard (Section 4 of the paper):
//
//	commit, fast path    5f+1 commit votes: every replica, so that any n-f of
//	                     them show a later client enough to commit again
//	commit, slow path    3f+1 commit votes = (n+f+1)/2: two such sets share a
//	                     correct replica, which votes for one of two conflicting
//	                     transactions only
//	abort, fast path     3f+1 abort votes, or one proof of a committed conflict
//	abort, slow path     f+1 abort votes: one correct replica saw a reason
//	logged (ST2R)        n-f = 4f+1 equal decisions of the logging shard
//	fallback leader      4f+1 ELECT-FB votes, decision by their majority
//	read vouching        f+1 replicas name the same uncertified version
package quorum

import (
	"encoding/binary"
	"slices"

	"assay.dev/assay/systems/basil/internal/wire"
)

// Sizes are the thresholds of one shard.
type Sizes struct {
	F, N                   int
	CommitFast, CommitSlow int
	AbortFast, AbortSlow   int
	Log, Elect             int
	Vouch                  int
}

// For returns the paper's thresholds for f faults in each shard.
func For(f int) Sizes {
	return Sizes{
		F: f, N: 5*f + 1,
		CommitFast: 5*f + 1, CommitSlow: 3*f + 1,
		AbortFast: 3*f + 1, AbortSlow: f + 1,
		Log: 4*f + 1, Elect: 4*f + 1,
		Vouch: f + 1,
	}
}

// Layout maps keys to shards and shards to replicas.
type Layout struct {
	Sizes
	Shards int
}

// Replicas returns the number of replicas of all shards.
func (l Layout) Replicas() int { return l.Shards * l.N }

// ShardOf returns the shard that stores key.
func (l Layout) ShardOf(key wire.Key) int {
	// The finalizer of splitmix64: neighbouring rows land on all shards.
	x := uint64(key) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(l.Shards))
}

// First returns the global index of a shard's first replica.
func (l Layout) First(shard int) int { return shard * l.N }

// ShardOfReplica returns the shard of a replica.
func (l Layout) ShardOfReplica(replica int) int { return replica / l.N }

// Logging returns S_log, the shard that makes tx's decision durable. It depends only on the
// identity, so that all clients agree.
func (l Layout) Logging(tx *wire.Tx) int {
	shards := tx.Shards(l.ShardOf)
	id := tx.ID()
	return shards[binary.BigEndian.Uint64(id[:8])%uint64(len(shards))]
}

// Leader returns the global index of the fallback leader of a view:
// (view + id) mod n within the logging shard.
func (l Layout) Leader(shard int, id wire.TxID, view uint32) int {
	return l.First(shard) + int((uint64(view)+binary.BigEndian.Uint64(id[8:16])%uint64(l.N))%uint64(l.N))
}

// conflicts reports whether the committed transaction keeps tx from committing: one of them read a
// version that the other's write makes stale. These are lines 7-9 and 11-12 of Algorithm 1.
func conflicts(tx, committed *wire.Tx) bool {
	return missedWrite(tx, committed) || missedWrite(committed, tx)
}

// missedWrite reports whether reader has read an older version although it should, by its
// timestamp, have seen a write of writer.
func missedWrite(reader, writer *wire.Tx) bool {
	if !writer.TS.Less(reader.TS) {
		return false
	}
	return slices.ContainsFunc(writer.Writes, func(w wire.Write) bool {
		v, read := reader.ReadVersion(w.Key)
		return read && v.Less(writer.TS)
	})
}
