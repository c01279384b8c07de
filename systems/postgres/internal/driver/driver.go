// Package driver speaks the driver protocol, version 1: newline-delimited JSON on a pair of pipes,
// by which a load generator runs many clients through one child process.
//
//	-> hello  firstClient, clients, seed, requestTimeoutMicros
//	<- ready | error
//	-> begin  id, client, sequence, attempt
//	<- end    id, outcome: commit, abort, error or timeout
//	-> bye
//	<- stats  counters
//
// Every client has a connection of its own, to whichever replica takes writes. A connection that
// fails is made anew by the client's next transaction. With a workload that has a ledger, bye also
// compares what the clients were told with what the database has.
package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

const (
	version = 1
	// connectLimit is how long the first connections may take. The protocol allows 60 s for ready.
	connectLimit = 30 * time.Second
	// checkLimit keeps the comparison after bye within the 5 s that the protocol allows.
	checkLimit = 4 * time.Second
)

// The codes of PostgreSQL's errors that mean: try again (Appendix A of its manual).
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// Driver runs one session.
type Driver struct {
	// Replicas are the addresses of all, HOST:PORT.
	Replicas []string
	Workload workload.Workload
	// Attempt is how long one attempt may take before its connection is given up; at most the
	// request's timeout is used.
	Attempt time.Duration
	In      io.Reader
	Out     io.Writer

	hello   request
	clients []*client
	running sync.WaitGroup

	mu   sync.Mutex // for what follows
	out  *json.Encoder
	over bool
	err  error // the first of writing
}

// client is one client. Only its goroutine uses conn; tally is read when that has ended.
type client struct {
	index int64
	conn  *pgx.Conn
	tasks chan request
	kinds map[string]int64 // committed, by kind
	tally
}

// tally counts a client's attempts by what it was told.
type tally struct {
	committed, aborted, timedOut, failed int64
	recorded                             int64 // committed, and in the ledger
}

// unknown is how many may have taken effect, or not.
func (t tally) unknown() int64 { return t.timedOut + t.failed }

// request is any message from the load generator.
type request struct {
	Type                 string `json:"type"`
	Version              int    `json:"version"`
	FirstClient          int64  `json:"firstClient"`
	Clients              int64  `json:"clients"`
	Seed                 uint64 `json:"seed"`
	RequestTimeoutMicros int64  `json:"requestTimeoutMicros"`

	ID       uint64 `json:"id"`
	Client   int64  `json:"client"`
	Sequence uint64 `json:"sequence"`
}

type end struct {
	Type    string `json:"type"`
	ID      uint64 `json:"id"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

type stats struct {
	Type     string           `json:"type"`
	Counters map[string]int64 `json:"counters"`
}

type status struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
}

// Run serves the session until bye, the end of input, or an error, which the load generator has
// been told.
func (d *Driver) Run(ctx context.Context) error {
	d.out = json.NewEncoder(d.Out)
	working, stop := context.WithCancel(ctx)
	bye, err := d.serve(working)
	stop() // what is under way is abandoned
	for _, c := range d.clients {
		close(c.tasks)
	}
	d.running.Wait()
	if err != nil {
		d.say(status{Type: "error", Message: err.Error()})
	}
	if bye {
		d.over = false
		d.say(stats{Type: "stats", Counters: d.counters(ctx)})
	}
	return errors.Join(err, d.err)
}

// serve reads the input, and reports whether it ended with bye.
func (d *Driver) serve(ctx context.Context) (bye bool, err error) {
	lines := bufio.NewScanner(d.In)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		var m request
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return false, fmt.Errorf("malformed line: %w", err)
		}
		switch {
		case m.Type == "hello" && d.clients == nil:
			if err := d.greet(ctx, m); err != nil {
				return false, err
			}
			d.say(status{Type: "ready"})
		case m.Type == "begin" && d.clients != nil:
			if m.Client < d.hello.FirstClient || m.Client >= d.hello.FirstClient+d.hello.Clients {
				return false, fmt.Errorf("begin %d: client %d is not one of %d clients from %d", m.ID, m.Client, d.hello.Clients, d.hello.FirstClient)
			}
			// A client whose last attempt the load generator has given up is about to give it up,
			// too.
			d.clients[m.Client-d.hello.FirstClient].tasks <- m
		case m.Type == "bye":
			d.silence()
			return true, nil
		default:
			return false, fmt.Errorf("unexpected message of type %q", m.Type)
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("read input: %w", err)
	}
	return false, nil
}

func (d *Driver) greet(ctx context.Context, m request) error {
	switch {
	case m.Version != version:
		return fmt.Errorf("protocol version %d is not supported, only %d", m.Version, version)
	case m.Clients < 1 || m.FirstClient < 0:
		return fmt.Errorf("hello: %d clients from %d; want at least 1, from 0 or more", m.Clients, m.FirstClient)
	case m.RequestTimeoutMicros < 1000:
		return fmt.Errorf("hello: requestTimeoutMicros is %d; want at least 1000", m.RequestTimeoutMicros)
	}
	d.hello = m
	d.Attempt = min(d.Attempt, time.Duration(m.RequestTimeoutMicros)*time.Microsecond)
	connecting, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	for i := range m.Clients {
		conn, err := node.Connect(connecting, d.Replicas)
		if err != nil {
			return fmt.Errorf("no replica takes writes: %w", err)
		}
		c := &client{index: m.FirstClient + i, conn: conn, tasks: make(chan request, 1), kinds: map[string]int64{}}
		d.clients = append(d.clients, c)
		d.running.Go(func() { d.work(ctx, c) })
	}
	return nil
}

// work carries out a client's transactions until there are no more.
func (d *Driver) work(ctx context.Context, c *client) {
	defer func() { c.drop() }()
	for m := range c.tasks {
		attempt, cancel := context.WithTimeout(ctx, d.Attempt)
		e := d.attempt(attempt, c, m)
		cancel()
		d.say(e)
	}
}

// attempt is one transaction and how it ended. What is not known to have been undone may have taken
// effect.
func (d *Driver) attempt(ctx context.Context, c *client, m request) end {
	e := end{Type: "end", ID: m.ID}
	if c.conn == nil {
		conn, err := node.Connect(ctx, d.Replicas)
		if err != nil {
			e.Outcome, e.Detail = "error", err.Error() // nothing has been sent
			return e
		}
		c.conn = conn
	}
	rng := rand.New(rand.NewPCG(d.hello.Seed, uint64(c.index)<<40^m.Sequence))
	done, err := d.Workload.Run(ctx, c.conn, c.index, rng)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		c.committed++
		c.kinds[done.Kind]++
		if done.Recorded {
			c.recorded++
		}
		e.Outcome = "commit"
		return e
	case errors.As(err, &refused) && (refused.Code == serializationFailure || refused.Code == deadlockDetected):
		c.aborted++
		e.Outcome = "abort"
		return e
	case ctx.Err() != nil:
		c.timedOut++
		e.Outcome = "timeout"
	default:
		c.failed++
		e.Outcome = "error"
	}
	e.Detail = err.Error()
	c.drop()
	return e
}

// drop closes the connection without waiting for the server, which may be silent.
func (c *client) drop() {
	if c.conn != nil {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.conn.Close(gone) // it has failed, or nobody needs it any more
		c.conn = nil
	}
}

// counters of the whole run, and of the comparison.
func (d *Driver) counters(ctx context.Context) map[string]int64 {
	counters := map[string]int64{"committed": 0, "aborted": 0, "timedOut": 0, "failed": 0}
	for _, c := range d.clients {
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
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	found, err := d.audit(ctx, w)
	if err != nil {
		counters["notChecked"] = 1
	}
	maps.Copy(counters, found)
	return counters
}

// audit compares what clients were told with what the database has. A client's ledger is read when
// all of them are quiet, so what the load generator gave up may still be on its way.
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

func (d *Driver) say(message any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.err != nil {
		return
	}
	if err := d.out.Encode(message); err != nil {
		d.err = fmt.Errorf("write output: %w", err)
	}
}

// silence drops the ends of what bye abandons.
func (d *Driver) silence() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
}
