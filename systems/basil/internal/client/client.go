// Package client is Basil's client as a single-threaded state machine. In
// Basil the client drives its own transaction:
//
//	execute.go   reads from replicas, buffers writes (Section 4.1)
//	txn.go       ST1, collecting votes, fast path or ST2, writeback (4.2, 4.3)
//	recover.go   finishing somebody else's stalled transaction (Section 5)
//	misbehave.go what Byzantine clients do, for evaluations (Section 6)
//
// One Client runs many transactions of many logical clients at the same time. Only their timestamps
// differ.
package client

import (
	"fmt"
	"time"

	"assay.dev/assay/systems/basil/internal/node"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

// Config is the configuration of a client.
type Config struct {
	Checker *quorum.Checker
	// Genesis returns a row's initial value.
	Genesis func(wire.Key) []byte
	// FastPath off means that the client sends ST2 as soon as it has a slow-path quorum of votes.
	FastPath bool
	// FastPathTimeout is how long to wait for the missing votes of the fast path, after the votes
	// suffice for the slow path.
	FastPathTimeout time.Duration
	// ReadQuorum is how many replies the client awaits in each shard. It asks f more replicas, so
	// that f silent ones cause no delay (the paper: ask 2f+1, await f+1).
	ReadQuorum int
	// DependencyTimeout is how long a dependency may stay undecided before
	// this client finishes it.
	DependencyTimeout time.Duration
	// RetryInterval is the time before lost messages are sent again; it
	// doubles with each attempt up to a second.
	RetryInterval time.Duration
}

// WithDefaults fills zero fields with the defaults of the command line.
func (c Config) WithDefaults() Config {
	if c.ReadQuorum == 0 {
		c.ReadQuorum = c.Checker.F + 1
	}
	if c.FastPathTimeout == 0 {
		c.FastPathTimeout = 4 * time.Millisecond
	}
	if c.DependencyTimeout == 0 {
		c.DependencyTimeout = 20 * time.Millisecond
	}
	if c.RetryInterval == 0 {
		c.RetryInterval = 100 * time.Millisecond
	}
	return c
}

const (
	maxRetryInterval = time.Second
	// abandonAfter bounds how long the client continues a recovery, or a transaction that no client
	// waits for.
	abandonAfter = 10 * time.Second
	// stalledAfter is the age from which on an undecided transaction counts as stalled, if it made
	// one of ours abort.
	stalledAfter = 500 * time.Millisecond
)

// Outcome is how a transaction ended for the application.
type Outcome uint8

const (
	// Committed: durable and visible.
	Committed Outcome = iota + 1
	// Aborted: without effect; a new attempt may succeed.
	Aborted
	// TimedOut: undecided at the deadline; it may still commit.
	TimedOut
	// Failed: rejected, without effect; Result.Detail has the reason.
	Failed
	// Abandoned: left unfinished on purpose, by a client that misbehaves.
	Abandoned
)

// Row is a row that a transaction has read.
type Row struct {
	Key     wire.Key
	Version wire.Timestamp
	Value   []byte
}

// Request is a transaction: read Keys, which must be ascending, then write the result of Update on
// the rows (nil: read-only).
type Request struct {
	Client  uint32
	Keys    []wire.Key
	Update  func([]Row) []wire.Write
	Timeout time.Duration
	// Misbehavior of the client in this transaction.
	Misbehavior Misbehavior
	// Done is called exactly once.
	Done func(Result)
}

// Result is a transaction's end.
type Result struct {
	Outcome Outcome
	Detail  string
	Tx      *wire.Tx // nil if it never reached the prepare phase
	Rows    []Row
}

// Counters are monotonic.
type Counters struct {
	FastPathCommits, SlowPathCommits uint64
	FastPathAborts, SlowPathAborts   uint64
	// LearnedDecisions were made by another client that recovered our transactions.
	LearnedDecisions uint64
	FastPathTimeouts uint64
	Dependencies     uint64
	// Recoveries counts started recoveries of transactions that other clients left unfinished;
	// Recovered counts those that reached a decision.
	Recoveries, Recovered uint64
	Fallbacks             uint64
	Resends               uint64
	Timeouts              uint64
	// Transactions that this client abandoned on purpose.
	StalledEarly, StalledLate, Equivocated uint64
}

// Map returns the counters by their names in the driver protocol.
func (c Counters) Map() map[string]uint64 {
	return map[string]uint64{
		"fastPathCommits": c.FastPathCommits, "slowPathCommits": c.SlowPathCommits,
		"fastPathAborts": c.FastPathAborts, "slowPathAborts": c.SlowPathAborts,
		"learnedDecisions": c.LearnedDecisions, "fastPathTimeouts": c.FastPathTimeouts,
		"dependencies": c.Dependencies, "recoveries": c.Recoveries, "fallbacks": c.Fallbacks,
		"recovered": c.Recovered, "resends": c.Resends, "timeouts": c.Timeouts,
		"stalledEarly": c.StalledEarly, "stalledLate": c.StalledLate, "equivocated": c.Equivocated,
	}
}

// Client is not safe for concurrent use.
type Client struct {
	Config
	env node.Env

	nextReq  uint64
	lastTime map[uint32]int64
	reads    map[uint64]*shardRead
	txns     map[wire.TxID]*txn
	fetches  map[wire.TxID]*fetch
	verified certCache

	Counters Counters
}

// New returns a client.
func New(cfg Config, env node.Env) *Client {
	return &Client{
		Config:   cfg.WithDefaults(),
		env:      env,
		nextReq:  uint64(env.Now()), // replies to an earlier life must not match
		lastTime: map[uint32]int64{},
		reads:    map[uint64]*shardRead{},
		txns:     map[wire.TxID]*txn{},
		fetches:  map[wire.TxID]*fetch{},
	}
}

// Handle processes one message from a replica.
func (c *Client) Handle(from node.ID, m wire.Message) {
	switch m := m.(type) {
	case *wire.ReadReply:
		c.onReadReply(from, m)
	case *wire.ST1R:
		if t := c.txns[m.ID]; t != nil {
			t.onVote(m)
		}
	case *wire.ST2R:
		if t := c.txns[m.ID]; t != nil {
			t.onLogged(m)
		}
	case *wire.Writeback:
		c.onDecided(m)
	case *wire.Body:
		c.onBody(m)
	case *wire.Seen:
		if t := c.txns[m.ID]; t != nil {
			if cert := t.claims.Add(c.Checker, m); cert != nil && c.Checker.ValidCert(t.tx, cert) {
				c.onDecided(&wire.Writeback{Tx: t.tx, Cert: cert})
			}
		}
	}
}

// Begin starts a transaction.
func (c *Client) Begin(req Request) {
	e := &execution{c: c, req: req, ts: c.timestamp(req.Client)}
	c.env.After(req.Timeout, e.timeout)
	e.start()
}

// timestamp returns a fresh timestamp; a client never uses one twice.
func (c *Client) timestamp(client uint32) wire.Timestamp {
	t := max(c.env.Now(), c.lastTime[client]+1)
	c.lastTime[client] = t
	return wire.Timestamp{Time: t, Client: client}
}

// shardReplicas calls fn for each replica of a shard.
func (c *Client) shardReplicas(shard int, fn func(node.ID)) {
	first := c.Checker.First(shard)
	for i := range c.Checker.N {
		fn(node.ID(first + i))
	}
}

// certCache remembers transactions with a valid C-CERT: every read of a hot row returns the same
// certificate.
type certCache struct{ old, new map[wire.TxID]struct{} }

const certCacheGeneration = 1 << 14

func (k *certCache) has(id wire.TxID) bool {
	if _, ok := k.new[id]; ok {
		return true
	}
	_, ok := k.old[id]
	return ok
}

func (k *certCache) add(id wire.TxID) {
	if k.new == nil || len(k.new) >= certCacheGeneration {
		k.old, k.new = k.new, make(map[wire.TxID]struct{})
	}
	k.new[id] = struct{}{}
}

// ParseReadQuorum turns "one", "f+1" or "2f+1" into a number of replies.
func ParseReadQuorum(s string, f int) (int, error) {
	switch s {
	case "one":
		return 1, nil
	case "f+1":
		return f + 1, nil
	case "2f+1":
		return 2*f + 1, nil
	}
	return 0, fmt.Errorf(`read quorum %q is none of "one", "f+1", "2f+1"`, s)
}
