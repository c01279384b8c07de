// Package replica is Basil's replica as a single-threaded state machine.
//
//	read.go       execution phase: serve reads (Section 4.1)
//	mvtso.go      Algorithm 1, the concurrency check behind a vote
//	prepare.go    ST1 -> ST1R, waiting for dependencies (Section 4.2, stage 1)
//	decide.go     ST2 -> ST2R (stage 2), writeback (Section 4.3)
//	fallback.go   InvokeFB, ELECT-FB, DEC-FB (Section 5)
//	sync.go       catching up on decisions that were missed (ours)
//	truncate.go   forgetting what no transaction can need any more (ours)
//	store.go      versions, prepared and committed readers and writers
//	batch.go      Merkle batches of replies (Section 4.4)
//
// The replica keeps all data in memory, as the paper's prototype does. A replica that lost its
// memory has broken promises (votes, logged decisions). For transactions from before its restart it
// must count as one of the f faulty ones.
package replica

import (
	"time"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

// Config is the configuration of a replica.
type Config struct {
	Index   int // global, shard-major
	Checker *quorum.Checker
	Signer  auth.Signer
	// Rules are the concurrency checks in order; nil means AllRules.
	Rules []Rule
	// BatchSize replies are signed together, or fewer after BatchTimeout.
	BatchSize    int
	BatchTimeout time.Duration
	// MaxAhead is the paper's delta: how far a timestamp may be in the future.
	MaxAhead time.Duration
	// Retain is how long decided transactions and old versions are kept. New
	// transactions with an older timestamp are refused.
	Retain time.Duration
	// Remember is how long, after that, the bare decisions are kept. Even older
	// transactions get no answer at all.
	Remember time.Duration
	// UnknownDependency is how long a vote waits for a dependency that this replica does not know.
	// After that the vote is an abort.
	UnknownDependency time.Duration
	// SyncInterval is the time between two requests for missed decisions.
	SyncInterval time.Duration
}

// WithDefaults fills zero fields with the defaults of the command line.
func (c Config) WithDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.Rules == nil {
		c.Rules = AllRules()
	}
	if c.BatchSize == 0 {
		c.BatchSize = 4
	}
	def(&c.BatchTimeout, 2*time.Millisecond)
	def(&c.MaxAhead, time.Second)
	def(&c.Retain, 10*time.Second)
	def(&c.Remember, 5*time.Minute)
	def(&c.UnknownDependency, 100*time.Millisecond)
	def(&c.SyncInterval, 500*time.Millisecond)
	return c
}

// record is a replica's knowledge of one transaction.
type record struct {
	id wire.TxID
	tx *wire.Tx // nil while only its identity is known

	// Stage 1. The vote never changes once it is set.
	vote      wire.Decision
	voteProof *wire.Proof
	conflict  *wire.Conflict
	blocker   *wire.Dep
	checked   bool // Algorithm 1 has run; without a vote it waits for dependencies
	prepared  bool // listed in the store as a tentative reader and writer
	waitsFor  int  // dependencies that are not decided yet

	// Stage 2, on replicas of the logging shard.
	logged       wire.Decision
	viewDecision uint32
	viewCurrent  uint32
	elections    map[uint32]*election

	cert     *wire.Cert // set once decided
	position uint64     // and its place in the log of decisions
	claims   quorum.Claims

	interested []node.ID
	dependents []*waiter
	since      int64 // when this replica first heard of it
}

func (r *record) committed() bool { return r.cert != nil && r.cert.Decision == wire.Commit }

// Counters are monotonic; read them from the goroutine that drives the replica.
type Counters struct {
	VotesCommit, VotesAbort uint64
	Committed, Aborted      uint64
	Batches, Signed         uint64
	Fallbacks               uint64
}

// Replica is one replica. It is not safe for concurrent use.
type Replica struct {
	Config
	env   node.Env
	shard int

	store   *store
	records map[wire.TxID]*record
	batch   batcher
	sync    syncState
	trunc   truncation

	Counters Counters
}

// New returns a replica and starts its timers.
func New(cfg Config, env node.Env) *Replica {
	cfg = cfg.WithDefaults()
	r := &Replica{
		Config:  cfg,
		env:     env,
		shard:   cfg.Checker.ShardOfReplica(cfg.Index),
		store:   newStore(),
		records: map[wire.TxID]*record{},
	}
	r.batch = batcher{r: r}
	r.trunc.decisions = map[tombstoneID]wire.Decision{}
	r.sync = newSyncState(r)
	r.scheduleSync()
	r.scheduleTruncate()
	return r
}

// Handle processes one message.
func (r *Replica) Handle(from node.ID, m wire.Message) {
	switch m := m.(type) {
	case *wire.ReadReq:
		r.onRead(from, m)
	case *wire.ST1:
		r.onST1(from, m.Tx)
	case *wire.ST2:
		r.onST2(from, m)
	case *wire.Writeback:
		r.onWriteback(m)
	case *wire.InvokeFB:
		r.onInvokeFB(from, m)
	case *wire.ElectFB:
		r.onElectFB(m)
	case *wire.DecFB:
		r.onDecFB(m)
	case *wire.Fetch:
		r.onFetch(from, m)
	case *wire.Body:
		// Only the identity of the transaction was known, from a dependency.
		if rec := r.records[m.Tx.ID()]; rec != nil && rec.tx == nil {
			r.learn(rec, m.Tx)
		}
	case *wire.Seen:
		r.onSeen(m)
	case *wire.Pull:
		r.onPull(from, m)
	case *wire.PullReply:
		r.onPullReply(from, m)
	}
}

// horizon is the timestamp before which transactions may be forgotten.
func (r *Replica) horizon() int64 { return r.env.Now() - int64(r.Retain) }

// local reports whether this replica's shard stores key.
func (r *Replica) local(key wire.Key) bool { return r.Checker.ShardOf(key) == r.shard }

// record returns the record of a transaction, and creates it if necessary. It returns nil if the
// record was truncated, or may have been: a new record could contradict the promises in the old
// one.
func (r *Replica) record(id wire.TxID, ts wire.Timestamp) *record {
	if rec := r.records[id]; rec != nil {
		return rec
	}
	if r.trunc.decision(id) != wire.Undecided || ts.Time < r.horizon()-int64(r.Remember) {
		return nil
	}
	rec := &record{id: id, since: r.env.Now()}
	r.records[id] = rec
	r.trunc.order = append(r.trunc.order, aged{rec: rec, ts: r.bounded(ts)})
	return rec
}

// bounded limits a timestamp to one that a correct client can have chosen by now, so that an
// invented one does not delay truncation.
func (r *Replica) bounded(ts wire.Timestamp) wire.Timestamp {
	ts.Time = min(ts.Time, r.env.Now()+int64(r.MaxAhead))
	return ts
}

// learn adds the body to a record.
func (r *Replica) learn(rec *record, tx *wire.Tx) {
	if rec.tx == nil {
		rec.tx = tx
		r.sync.open = append(r.sync.open, rec)
	}
}

// maxInterested bounds the list of nodes that get a transaction's decision.
const maxInterested = 32

func (r *record) interest(from node.ID) {
	for _, n := range r.interested {
		if n == from {
			return
		}
	}
	if len(r.interested) < maxInterested {
		r.interested = append(r.interested, from)
	}
}
