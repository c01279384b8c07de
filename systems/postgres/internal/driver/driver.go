// Package driver runs the clients of PostgreSQL for the load generator. Every client has a
// connection of its own, to the replica that accepts writes. After a failure, the client's next
// transaction makes a new connection. If the workload has a ledger, the driver compares at the end
// the answers to the clients with the contents of the database.
package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

const (
	// connectLimit is how long the first connections may take. The protocol allows 60 s for ready.
	connectLimit = 30 * time.Second
	// checkLimit keeps the comparison after bye within the 5 s that the protocol allows.
	checkLimit = 4 * time.Second
)

// The codes of PostgreSQL's errors after which a client should retry (Appendix A of its manual).
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// Driver runs one session.
type Driver struct {
	// Replicas are the addresses of all, HOST:PORT.
	Replicas []string
	Workload workload.Workload
	// Attempt is how long one attempt may take before its connection is given up, at most the
	// request's timeout.
	Attempt time.Duration

	hello   protocol.Hello
	clients []*client
}

// client is one client. Only its goroutine uses conn. tally is read when the goroutine has ended.
type client struct {
	index int64
	conn  *pgx.Conn
	kinds map[string]int64 // committed, by kind
	tally
}

// tally counts a client's attempts by their answers.
type tally struct {
	committed, aborted, timedOut, failed int64
	recorded                             int64 // committed, and in the ledger
}

// unknown is how many may or may not have taken effect.
func (t tally) unknown() int64 { return t.timedOut + t.failed }

// Connect connects all clients.
func (d *Driver) Connect(ctx context.Context, hello protocol.Hello) error {
	d.hello = hello
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	for i := range hello.Clients {
		conn, err := node.Connect(ctx, d.Replicas)
		if err != nil {
			return fmt.Errorf("no replica takes writes: %w", err)
		}
		d.clients = append(d.clients, &client{index: hello.FirstClient + i, conn: conn, kinds: map[string]int64{}})
	}
	return nil
}

// Transact is one transaction. Unless it is known to have been undone, it may have taken effect.
func (d *Driver) Transact(ctx context.Context, a protocol.Attempt) error {
	ctx, cancel := context.WithTimeout(ctx, d.Attempt)
	defer cancel()
	c := d.clients[a.Client-d.hello.FirstClient]
	if c.conn == nil {
		conn, err := node.Connect(ctx, d.Replicas)
		if err != nil {
			return err // no statement has been sent
		}
		c.conn = conn
	}
	rng := rand.New(rand.NewPCG(uint64(d.hello.Seed), uint64(c.index)<<40^a.Sequence))
	done, err := d.Workload.Run(ctx, c.conn, c.index, rng)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		c.committed++
		c.kinds[done.Kind]++
		if done.Recorded {
			c.recorded++
		}
		return nil
	case errors.As(err, &refused) && (refused.Code == serializationFailure || refused.Code == deadlockDetected):
		c.aborted++
		return protocol.ErrAborted
	case ctx.Err() != nil:
		c.timedOut++
		err = fmt.Errorf("%w: %w", protocol.ErrTimeout, err)
	default:
		c.failed++
	}
	c.drop()
	return err
}

// drop closes the connection without waiting for the server, which may be silent.
func (c *client) drop() {
	if c.conn != nil {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.conn.Close(gone) // it has failed, or its client is gone
		c.conn = nil
	}
}

// Close returns the counters of the whole run, and of the comparison.
func (d *Driver) Close() map[string]int64 {
	counters := map[string]int64{"committed": 0, "aborted": 0, "timedOut": 0, "failed": 0}
	for _, c := range d.clients {
		c.drop()
		counters["committed"] += c.committed
		counters["aborted"] += c.aborted
		counters["timedOut"] += c.timedOut
		counters["failed"] += c.failed
		for kind, n := range c.kinds {
			counters[kind+"Committed"] += n
		}
	}
	w, audited := d.Workload.(workload.Auditor)
	if !audited || d.clients == nil {
		return counters
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	found, err := d.audit(ctx, w)
	if err != nil {
		counters["notChecked"] = 1
	}
	maps.Copy(counters, found)
	return counters
}

// audit compares the answers to the clients with the contents of the database. It reads a client's
// ledger when all clients have stopped, so transactions that the load generator gave up may still
// be running.
//
//	lost               acknowledged, and not in the database
//	duplicated         in the database, and more than were acknowledged or unknown
//	unknownTookEffect  without an answer, and in the database
func (d *Driver) audit(ctx context.Context, w workload.Auditor) (map[string]int64, error) {
	conn, err := node.Connect(ctx, d.Replicas)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	found := map[string]int64{"lost": 0, "duplicated": 0, "unknownTookEffect": 0}
	for _, c := range d.clients {
		var has int64
		if err := conn.QueryRow(ctx, "SELECT coalesce(sum(transactions), 0) FROM ledger WHERE client = $1", c.index).Scan(&has); err != nil {
			return nil, err
		}
		found["lost"] += max(0, c.recorded-has)
		found["duplicated"] += max(0, has-c.recorded-c.unknown())
		found["unknownTookEffect"] += min(max(0, has-c.recorded), c.unknown())
	}
	checked, err := w.Check(ctx, conn, d.clients[0].index)
	maps.Copy(found, checked)
	return found, err
}
