// Package driver runs the clients of etcd for the load generator. Every client has a goroutine and
// a connection of its own.
package driver

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/etcd/internal/client"
	"assay.dev/assay/systems/etcd/internal/member"
	"assay.dev/assay/systems/etcd/internal/workload"
)

// connectLimit is how long the first answer of the cluster may take. The protocol allows 60 s for
// ready.
const connectLimit = 30 * time.Second

// Driver runs one session.
type Driver struct {
	Members []string // client addresses of all members, HOST:PORT
	Attempt time.Duration
	// Workload without its seed, which the load generator gives.
	Workload     workload.Workload
	Serializable bool // one member may answer gets from its own data

	first    int64 // index of the first client
	clients  []*client.Client
	counters client.Counters
	puts     atomic.Int64 // that were answered
	gets     atomic.Int64
}

// Connect makes all connections, and waits until the cluster has a leader: its read is
// linearizable.
func (d *Driver) Connect(ctx context.Context, hello protocol.Hello) error {
	d.first = hello.FirstClient
	d.Workload.Seed = uint64(hello.Seed)
	if err := d.Workload.Validate(); err != nil {
		return err
	}
	for i := range hello.Clients {
		c, err := client.New(client.Options{Members: d.Members, Index: int(d.first + i), Attempt: d.Attempt, Counters: &d.counters})
		if err != nil {
			return err
		}
		d.clients = append(d.clients, c)
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	failures := make(chan error, len(d.clients))
	for _, c := range d.clients {
		go func() {
			failures <- c.Do(ctx, func(ctx context.Context, m *member.Member) error {
				_, err := m.Get(ctx, workload.Key(0), false)
				return err
			})
		}()
	}
	var first error
	for range d.clients {
		if err := <-failures; err != nil && first == nil {
			first = fmt.Errorf("no member of the cluster answers a linearizable read: %w", err)
			cancel()
		}
	}
	return first
}

// Transact carries out an operation. An answer that comes after the operation was given up does not
// count.
func (d *Driver) Transact(ctx context.Context, a protocol.Attempt) error {
	op := d.Workload.Operation(uint64(a.Client), a.Sequence)
	err := d.clients[a.Client-d.first].Do(ctx, func(ctx context.Context, m *member.Member) error {
		if op.Get {
			_, err := m.Get(ctx, op.Pair.Key, d.Serializable)
			return err
		}
		return m.Put(ctx, op.Pair)
	})
	if err == nil {
		err = ctx.Err()
	}
	switch {
	case err != nil:
	case op.Get:
		d.gets.Add(1)
	default:
		d.puts.Add(1)
	}
	return err
}

// Close returns the counters of the whole run. The attempts include the first read of each client.
func (d *Driver) Close() map[string]int64 {
	for _, c := range d.clients {
		c.Close()
	}
	return map[string]int64{
		"puts":             d.puts.Load(),
		"gets":             d.gets.Load(),
		"attempts":         d.counters.Attempts.Load(),
		"attemptsTimedOut": d.counters.TimedOut.Load(),
		"attemptsFailed":   d.counters.Failed.Load(),
		"roundsInVain":     d.counters.Exhausted.Load(),
	}
}
