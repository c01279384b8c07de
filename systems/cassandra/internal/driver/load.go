package driver

import (
	"context"
	"fmt"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"assay.dev/assay/systems/cassandra/internal/workload"
)

const (
	// poll is the time between requests to the nodes.
	poll = 500 * time.Millisecond
	// loadAttempt is how long one write of the loading may take.
	loadAttempt = 20 * time.Second
)

// Load waits until every node knows all others, makes the table and fills it.
func Load(ctx context.Context, nodes []string, port int, w *workload.YCSB) error {
	for _, node := range nodes {
		if err := ring(ctx, node, port, len(nodes)); err != nil {
			return err
		}
	}
	s, err := Connect(nodes, port, 2, loadAttempt)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer s.Close()
	return w.Load(ctx, s)
}

// ring waits until a node answers and has as many peers as there are others.
func ring(ctx context.Context, node string, port, want int) error {
	for {
		has, err := size(ctx, node, port)
		if err == nil && has == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s knows %d of %d nodes: %w", node, has, want, ctx.Err())
		case <-time.After(poll):
		}
	}
}

// size asks only this node, and none of the other nodes that it knows.
func size(ctx context.Context, node string, port int) (n int, err error) {
	c := gocql.NewCluster(node)
	c.Port, c.NumConns, c.DisableInitialHostLookup = port, 1, true
	c.Timeout, c.ConnectTimeout = loadAttempt, loadAttempt
	s, err := c.CreateSession()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	err = s.Query("SELECT count(*) FROM system.peers_v2").ScanContext(ctx, &n)
	return n + 1, err
}
