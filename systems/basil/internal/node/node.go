// Package node is the interface between Basil's protocol and its environment. Replica and client
// are single-threaded state machines: they read the time, send and set timers only through Env. The
// TCP runtime (package transport) and the deterministic simulation (package sim) implement Env. So
// the simulation explores the same code that runs on a cluster.
package node

import (
	"time"

	"assay.dev/assay/systems/basil/internal/wire"
)

// ID names a message's sender or receiver. Replicas have their global index (shard-major, from 0).
// Any other node has an ID from FirstClient on; for TCP it names the connection of its messages.
type ID int

// FirstClient is the smallest ID that is not a replica.
const FirstClient ID = 1 << 20

// Env has the operations of a state machine. All calls into one state machine, including its
// timers, come from one goroutine at a time.
type Env interface {
	// Now returns nanoseconds since the Unix epoch on the local clock.
	Now() int64
	// Send queues a message. It never blocks; the message may be lost.
	Send(to ID, m wire.Message)
	// After calls fn once, after d. It cannot be cancelled: fn must check whether its work is still
	// needed.
	After(d time.Duration, fn func())
}
