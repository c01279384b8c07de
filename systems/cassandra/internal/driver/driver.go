// Package driver runs the clients of Cassandra for the load generator. All clients share one
// session, like the threads of a YCSB client: the client library keeps connections to all nodes and
// sends a request to a replica of its key.
package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"assay.dev/assay/systems/cassandra/internal/workload"
	protocol "assay.dev/assay/systems/driver"
)

// connectLimit is how long the first connections may take. The protocol allows 60 s for ready.
const connectLimit = 45 * time.Second

// Driver runs one session.
type Driver struct {
	// Nodes are the addresses of all, HOST or IP.
	Nodes []string
	Port  int
	// Connections to each node.
	Connections int
	// Attempt is how long a request may take, at most the load generator's timeout.
	Attempt  time.Duration
	Workload *workload.YCSB

	seed    int64
	session *gocql.Session

	mu       sync.Mutex
	counters map[string]int64
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

// Connect connects the session that all clients share.
func (d *Driver) Connect(_ context.Context, hello protocol.Hello) (err error) {
	d.seed, d.counters = hello.Seed, map[string]int64{}
	d.Attempt = min(d.Attempt, hello.RequestTimeout)
	if d.session, err = Connect(d.Nodes, d.Port, d.Connections, d.Attempt); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// Transact is one operation.
func (d *Driver) Transact(ctx context.Context, a protocol.Attempt) error {
	ctx, cancel := context.WithTimeout(ctx, d.Attempt)
	defer cancel()
	rng := rand.New(rand.NewSource(d.seed ^ a.Client<<40 ^ int64(a.Sequence)))
	kind, err := d.Workload.Run(ctx, d.session, a.Client, rng)
	var refused gocql.RequestError
	switch {
	case err == nil:
		d.count(kind + "Committed")
		return nil
	case errors.Is(err, workload.ErrMissing):
		d.count("missing")
		d.count(kind + "Committed")
		return nil
	case ctx.Err() != nil || errors.Is(err, gocql.ErrTimeoutNoResponse):
		return fmt.Errorf("%w: %w", protocol.ErrTimeout, err)
	case errors.As(err, &refused) && (refused.Code() == gocql.ErrCodeReadTimeout || refused.Code() == gocql.ErrCodeWriteTimeout):
		d.count("replicasTooSlow")
		return fmt.Errorf("%w: %w", protocol.ErrTimeout, err)
	case errors.As(err, &refused) && refused.Code() == gocql.ErrCodeUnavailable:
		d.count("tooFewReplicas")
	}
	return err
}

func (d *Driver) count(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counters[name]++
}

// Close closes the session and returns the counters of the whole run.
func (d *Driver) Close() map[string]int64 {
	if d.session != nil {
		d.session.Close()
	}
	return maps.Clone(d.counters)
}
