// Package driver runs the clients of Basil for the load generator. They share one loop.
//
// The driver does not retry an aborted transaction, unless the load generator begins the next
// attempt. Client and sequence determine the transaction's content.
package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/transport"
	"assay.dev/assay/systems/basil/internal/wire"
	"assay.dev/assay/systems/basil/internal/workload"
	protocol "assay.dev/assay/systems/driver"
)

// connectLimit is how long to wait for a replica that does not answer.
const connectLimit = 8 * time.Second

// Driver runs one session. It is a protocol.System: clients need no goroutines.
type Driver struct {
	Host     *transport.ClientHost
	Workload *workload.YCSBT
	Log      io.Writer // free text
	// Misbehavior of all clients, in every Frequency-th transaction of each
	// (0 and 1: in all).
	Misbehavior client.Misbehavior
	Frequency   uint64

	timeout time.Duration
}

// Connect waits for the replicas. It continues without some if the others are enough.
func (d *Driver) Connect(_ context.Context, hello protocol.Hello) error {
	d.timeout = hello.RequestTimeout
	d.Workload.Seed = uint64(hello.Seed)
	missing, err := d.Host.WaitConnected(connectLimit)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if len(missing) > 0 {
		fmt.Fprintf(d.Log, "basil driver: replicas %v are not reachable, going on without them\n", missing)
	}
	return nil
}

// Begin starts a transaction in the clients' loop. The loop gives it up after the timeout, and when
// the client begins its next transaction.
func (d *Driver) Begin(_ context.Context, a protocol.Attempt, end func(error)) {
	req := Transaction(d.Workload, uint32(a.Client), a.Sequence)
	if (a.Sequence+1)%max(d.Frequency, 1) == 0 {
		req.Misbehavior = d.Misbehavior
	}
	req.Timeout = d.timeout
	req.Done = func(res client.Result) { end(failure(res)) }
	d.Host.Post(func() { d.Host.Client.Begin(req) })
}

// Close returns the counters of the whole run.
func (d *Driver) Close() map[string]int64 {
	counters := map[string]int64{}
	d.Host.Do(func() {
		for name, n := range d.Host.Client.Counters.Map() {
			counters[name] = int64(n)
		}
	})
	d.Host.Close() // no caller ends a transaction from here on
	return counters
}

// Transaction returns a client's sequence-th transaction.
func Transaction(y *workload.YCSBT, clientIndex uint32, sequence uint64) client.Request {
	req := client.Request{Client: clientIndex, Keys: y.Keys(clientIndex, sequence)}
	if y.ReadOnly {
		return req
	}
	req.Update = func(rows []client.Row) []wire.Write {
		writes := make([]wire.Write, len(rows))
		for i, r := range rows {
			writes[i] = wire.Write{Key: r.Key, Value: workload.Increment(r.Value, y.ValueSize, clientIndex)}
		}
		return writes
	}
	return req
}

// failure is the outcome of a transaction in the words of the protocol; nil for a commit.
func failure(res client.Result) error {
	var err error
	switch res.Outcome {
	case client.Committed:
		return nil
	case client.Aborted:
		err = protocol.ErrAborted
	case client.TimedOut, client.Abandoned:
		// For the load generator, a client that gave up is ready for its next transaction at once,
		// and does not retry this one.
		err = protocol.ErrTimeout
	default:
		return errors.New(res.Detail)
	}
	if res.Detail != "" {
		err = fmt.Errorf("%w: %s", err, res.Detail)
	}
	return err
}
