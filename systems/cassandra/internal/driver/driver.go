// Package driver speaks the driver protocol, version 1: newline-delimited JSON on a pair of pipes,
// by which a load generator runs many clients through one child process. See
// docs/reference/driver-protocol.md.
//
// All clients share one session, as threads of a YCSB client do: the client library keeps
// connections to all nodes and sends a request to a replica of its key.
package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"assay.dev/assay/systems/cassandra/internal/workload"
)

const (
	version = 1
	// connectLimit is how long the first connections may take. The protocol allows 60 s for ready.
	connectLimit = 45 * time.Second
)

// Driver runs one session.
type Driver struct {
	// Nodes are the addresses of all, HOST or IP.
	Nodes []string
	Port  int
	// Connections to each node.
	Connections int
	// Attempt is how long a request may take; at most the load generator's timeout is used.
	Attempt  time.Duration
	Workload *workload.YCSB
	In       io.Reader
	Out      io.Writer

	hello   request
	session *gocql.Session
	clients []chan request
	running sync.WaitGroup

	mu       sync.Mutex // for what follows
	out      *json.Encoder
	over     bool
	err      error // the first of writing
	counters map[string]int64
}

// request is any message from the load generator.
type request struct {
	Type                 string `json:"type"`
	Version              int    `json:"version"`
	FirstClient          int64  `json:"firstClient"`
	Clients              int64  `json:"clients"`
	Seed                 int64  `json:"seed"`
	RequestTimeoutMicros int64  `json:"requestTimeoutMicros"`

	ID       uint64 `json:"id"`
	Client   int64  `json:"client"`
	Sequence int64  `json:"sequence"`
}

type end struct {
	Type    string `json:"type"`
	ID      uint64 `json:"id"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

// Connect makes a session with all nodes.
func Connect(nodes []string, port, connections int, timeout time.Duration) (*gocql.Session, error) {
	c := gocql.NewCluster(nodes...)
	c.Port, c.NumConns = port, connections
	c.Timeout, c.WriteTimeout, c.ConnectTimeout = timeout, timeout, connectLimit/3
	c.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	c.ReconnectInterval = time.Second
	return c.CreateSession()
}

// Run serves the session until bye, the end of input, or an error, which the load generator has
// been told.
func (d *Driver) Run(ctx context.Context) error {
	d.out, d.counters = json.NewEncoder(d.Out), map[string]int64{}
	working, stop := context.WithCancel(ctx)
	bye, err := d.serve(working)
	stop() // what is under way is abandoned
	for _, c := range d.clients {
		close(c)
	}
	d.running.Wait()
	if d.session != nil {
		d.session.Close()
	}
	if err != nil {
		d.say(map[string]any{"type": "error", "message": err.Error()})
	}
	if bye {
		d.over = false
		d.say(map[string]any{"type": "stats", "counters": d.counters})
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
			d.say(map[string]any{"type": "ready"})
		case m.Type == "begin" && d.clients != nil:
			if m.Client < d.hello.FirstClient || m.Client >= d.hello.FirstClient+d.hello.Clients {
				return false, fmt.Errorf("begin %d: client %d is not one of %d clients from %d", m.ID, m.Client, d.hello.Clients, d.hello.FirstClient)
			}
			// A client whose last attempt the load generator has given up is about to give it up,
			// too.
			d.clients[m.Client-d.hello.FirstClient] <- m
		case m.Type == "bye":
			d.mu.Lock()
			d.over = true // no ends of what is abandoned
			d.mu.Unlock()
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
	session, err := Connect(d.Nodes, d.Port, d.Connections, d.Attempt)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	d.session = session
	for i := range m.Clients {
		tasks := make(chan request, 1)
		d.clients = append(d.clients, tasks)
		d.running.Go(func() {
			for t := range tasks {
				d.say(d.attempt(ctx, m.FirstClient+i, t))
			}
		})
	}
	return nil
}

// attempt is one operation and how it ended.
func (d *Driver) attempt(ctx context.Context, client int64, m request) end {
	ctx, cancel := context.WithTimeout(ctx, d.Attempt)
	defer cancel()
	rng := rand.New(rand.NewSource(d.hello.Seed ^ client<<40 ^ m.Sequence))
	kind, err := d.Workload.Run(ctx, d.session, client, rng)
	e := end{Type: "end", ID: m.ID, Outcome: "commit"}
	var refused gocql.RequestError
	switch {
	case err == nil:
	case errors.Is(err, workload.ErrMissing):
		d.count("missing")
	case ctx.Err() != nil || errors.Is(err, gocql.ErrTimeoutNoResponse):
		e.Outcome, e.Detail = "timeout", err.Error()
	case errors.As(err, &refused) && (refused.Code() == gocql.ErrCodeReadTimeout || refused.Code() == gocql.ErrCodeWriteTimeout):
		e.Outcome, e.Detail = "timeout", err.Error()
		d.count("replicasTooSlow")
	case errors.As(err, &refused) && refused.Code() == gocql.ErrCodeUnavailable:
		e.Outcome, e.Detail = "error", err.Error()
		d.count("tooFewReplicas")
	default:
		e.Outcome, e.Detail = "error", err.Error()
	}
	if e.Outcome == "commit" {
		d.count(kind + "Committed")
	}
	return e
}

func (d *Driver) count(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counters[name]++
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
