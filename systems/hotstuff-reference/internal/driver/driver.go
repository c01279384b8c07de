// Package driver runs the clients of HotStuff for the load generator. A transaction is one command.
// It goes to all replicas and is done when f+1 have executed it. All clients share one connection
// to each replica.
package driver

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/transport"
)

// connectLimit is how long to wait for a replica that does not answer.
const connectLimit = 20 * time.Second

// Driver runs one session. It is a protocol.System.
type Driver struct {
	// Replicas are the addresses of all, HOST:PORT.
	Replicas []string
	// PayloadSize of a command in bytes.
	PayloadSize int

	client  *transport.Client
	payload []byte

	commands, executed, timedOut, failed atomic.Int64
}

// Connect waits for the replicas. It continues even if f of them are missing.
func (d *Driver) Connect(_ context.Context, hello protocol.Hello) error {
	d.payload = make([]byte, d.PayloadSize)
	random := rand.New(rand.NewPCG(uint64(hello.Seed), uint64(hello.FirstClient)))
	for i := range d.payload {
		d.payload[i] = byte(random.Uint32())
	}
	client, err := transport.Connect(d.Replicas, connectLimit)
	d.client = client
	return err
}

// Begin sends a command.
func (d *Driver) Begin(ctx context.Context, a protocol.Attempt, end func(error)) {
	d.commands.Add(1)
	c := message.Command{
		CommandID: message.CommandID{Client: uint64(a.Client), Sequence: a.Sequence}, Payload: d.payload,
	}
	d.client.Execute(ctx, c, func(err error) {
		switch {
		case err == nil:
			d.executed.Add(1)
		case ctx.Err() != nil:
			d.timedOut.Add(1)
		default:
			d.failed.Add(1)
		}
		end(err)
	})
}

// Close returns the counters of the whole run.
func (d *Driver) Close() map[string]int64 {
	if d.client != nil {
		d.client.Close()
	}
	return map[string]int64{
		"commands": d.commands.Load(), "executed": d.executed.Load(), "timedOut": d.timedOut.Load(), "failed": d.failed.Load(),
	}
}
