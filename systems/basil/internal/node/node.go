// Package node is the border between Basil's protocol and the world it runs in. Replica and client
// are single-threaded state machines: they learn the time, send and set timers through Env and
// nothing else. The TCP runtime (package transport) and the deterministic simulation (package sim)
// implement Env. So the simulation explores the code that runs on a cluster.
package node

import (
	"time"

	"assay.dev/assay/systems/basil/internal/wire"
)

// ID names a message's sender or receiver. Replicas have their global index (shard-major, from 0);
// any other node has an ID from FirstClient on, which for TCP names the connection that its
// messages came from.
type ID int

// FirstClient is the smallest ID that is not a replica.
const FirstClient ID = 1 << 20

// Env is what a state machine may do. All calls into one state machine,
// including its timers, come from one goroutine at a time.
type Env interface {
	// Now returns nanoseconds since the Unix epoch on the local clock.
	Now() int64
	// Send queues a message. It never blocks; the message may be lost.
	Send(to ID, m wire.Message)
	// After calls fn once, d from now. It cannot be cancelled: fn must check
	// whether it is still wanted.
	After(d time.Duration, fn func())
}
