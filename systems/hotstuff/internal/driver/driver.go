// Package driver runs the clients of HotStuff for the load generator. A transaction is one command.
// It goes to all replicas and is done when f+1 have executed it, as in the project's own client.
// All clients share one connection to each replica.
package driver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang/protobuf/ptypes/empty"
	"github.com/relab/gorums"
	"github.com/relab/hotstuff/client"
	"google.golang.org/grpc"

	protocol "assay.dev/assay/systems/driver"
)

const (
	// connectLimit is how long the connections may take. The protocol allows 60 s for ready.
	connectLimit = 30 * time.Second
	// sendBuffer is how many commands may wait for one replica. Without a buffer all clients would
	// wait for a silent replica.
	sendBuffer = 1 << 16
)

// Driver runs one session. It is a protocol.System: sending a command needs no goroutine.
type Driver struct {
	// Replicas are the client addresses of all replicas, HOST:PORT, in the order of their ids.
	Replicas []string
	// PayloadSize of a command in bytes.
	PayloadSize int

	session context.Context
	timeout time.Duration
	manager *client.Manager
	config  *client.Configuration
	payload []byte
	running sync.WaitGroup

	commands, executed, timedOut, failed atomic.Int64
}

// Connect opens a stream to every replica. All replicas must run.
func (d *Driver) Connect(ctx context.Context, hello protocol.Hello) error {
	d.session, d.timeout = ctx, hello.RequestTimeout
	d.payload = make([]byte, d.PayloadSize)
	random := rand.New(rand.NewPCG(uint64(hello.Seed), uint64(hello.FirstClient)))
	for i := range d.payload {
		d.payload[i] = byte(random.Uint32())
	}
	ids := map[string]uint32{}
	for i, address := range d.Replicas {
		ids[address] = uint32(i + 1)
	}
	if len(ids) < len(d.Replicas) {
		return errors.New("two replicas have the same address")
	}
	d.manager = client.NewManager(gorums.WithDialTimeout(connectLimit), gorums.WithSendBufferSize(sendBuffer),
		gorums.WithGrpcDialOptions(grpc.WithBlock(), grpc.WithInsecure()))
	config, err := d.manager.NewConfiguration(quorum((len(ids)-1)/3+1), gorums.WithNodeMap(ids))
	if err != nil {
		return fmt.Errorf("connect to the replicas: %w", err)
	}
	d.config = config
	return nil
}

// quorum is how many replicas must have executed a command: f+1, so that at least one is correct.
type quorum int

// ExecCommandQF decides whether the replies are enough.
func (q quorum) ExecCommandQF(_ *client.Command, replies map[uint32]*empty.Empty) (*empty.Empty, bool) {
	return &empty.Empty{}, len(replies) >= int(q)
}

// Begin sends a command. Its context lasts until the timeout, even when the command is executed or
// abandoned sooner. If a context ends, gorums concludes that the replica is stuck, and drops the
// stream.
func (d *Driver) Begin(_ context.Context, a protocol.Attempt, end func(error)) {
	ctx, cancel := context.WithTimeout(d.session, d.timeout)
	context.AfterFunc(ctx, cancel)
	d.commands.Add(1)
	// Replicas accept a command only if its number is above that of the client's last one, from 1.
	promise := d.config.ExecCommand(ctx, &client.Command{ClientID: uint32(a.Client + 1), SequenceNumber: a.Sequence + 1, Data: d.payload})
	d.running.Go(func() {
		_, err := promise.Get()
		switch {
		case err == nil:
			d.executed.Add(1)
		case errors.Is(ctx.Err(), context.Canceled): // the session is over
		case ctx.Err() != nil:
			d.timedOut.Add(1)
			err = protocol.ErrTimeout
		default:
			d.failed.Add(1)
		}
		end(err)
	})
}

// Close returns the counters of the whole run.
func (d *Driver) Close() map[string]int64 {
	d.running.Wait()
	if d.manager != nil {
		d.manager.Close()
	}
	return map[string]int64{
		"commands": d.commands.Load(), "executed": d.executed.Load(), "timedOut": d.timedOut.Load(), "failed": d.failed.Load(),
	}
}
