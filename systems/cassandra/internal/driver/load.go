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
	return create(ctx, nodes, port, w, w.Fill)
}

// samples is how many records are read of a table that was not filled here.
const samples = 1000

// Open waits until every node knows all others, and makes the table over files that the nodes have.
// It reads records from all over the table, and fails if one of them is not as loaded.
func Open(ctx context.Context, nodes []string, port int, w *workload.YCSB) error {
	return create(ctx, nodes, port, w, func(ctx context.Context, s *gocql.Session) error {
		if err := w.Sample(ctx, s, samples); err != nil {
			return fmt.Errorf("the nodes did not begin with the loaded records: %w", err)
		}
		return nil
	})
}

// create makes the table when every node knows all others, and does more with it.
func create(ctx context.Context, nodes []string, port int, w *workload.YCSB, more func(context.Context, *gocql.Session) error) error {
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
	if err := w.Create(ctx, s); err != nil {
		return err
	}
	return more(ctx, s)
}

// quiet is how often in a row a node must have nothing to compact. Between two compactions of a
// chain there is a moment without any.
const quiet = 6

// Compacted waits until no node has anything left to compact.
func Compacted(ctx context.Context, nodes []string, port int) error {
	for _, node := range nodes {
		s, err := alone(node, port)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", node, err)
		}
		err = compacted(ctx, s)
		s.Close()
		if err != nil {
			return fmt.Errorf("compactions of %s: %w", node, err)
		}
	}
	return nil
}

func compacted(ctx context.Context, s *gocql.Session) error {
	for idle := 0; idle < quiet; {
		var running, active, waiting int
		err := s.Query("SELECT count(*) FROM system_views.sstable_tasks").ScanContext(ctx, &running)
		if err == nil {
			err = s.Query("SELECT active_tasks, pending_tasks FROM system_views.thread_pools WHERE name = 'CompactionExecutor'").ScanContext(ctx, &active, &waiting)
		}
		if err != nil {
			return err
		}
		idle++
		if running+active+waiting > 0 {
			idle = 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
	return nil
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
	s, err := alone(node, port)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	err = s.Query("SELECT count(*) FROM system.peers_v2").ScanContext(ctx, &n)
	return n + 1, err
}

// alone is a session with one node.
func alone(node string, port int) (*gocql.Session, error) {
	c := gocql.NewCluster(node)
	c.Port, c.NumConns, c.DisableInitialHostLookup = port, 1, true
	c.Timeout, c.ConnectTimeout = loadAttempt, loadAttempt
	return c.CreateSession()
}
