// Package driver runs the clients of a Cap'n Proto server for the load generator. A transaction is
// one message with a batch of commands. It is done when the server has confirmed that all of them
// arrived.
package driver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"capnproto.org/go/capnp/v3/rpc"

	"assay.dev/assay/systems/capnp-rpc/internal/message"
	protocol "assay.dev/assay/systems/driver"
)

// connectLimit is how long the connections may take. The protocol allows 60 s for ready.
const connectLimit = 30 * time.Second

// Driver runs one session. It is a protocol.Transactor.
type Driver struct {
	// Server is its address, HOST:PORT.
	Server string
	// Connections that the clients share, in turn.
	Connections int
	// Commands of a message, and the bytes of each.
	Commands, CommandSize int

	first     int64
	command   []byte
	links     []link
	messages  atomic.Int64
	answered  atomic.Int64
	abandoned atomic.Int64
	failed    atomic.Int64
}

type link struct {
	conn     *rpc.Conn
	receiver message.Receiver
}

// Connect connects, and waits for one answer of the server on each connection.
func (d *Driver) Connect(ctx context.Context, hello protocol.Hello) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	d.first = hello.FirstClient
	d.command = make([]byte, d.CommandSize)
	random := rand.New(rand.NewPCG(uint64(hello.Seed), uint64(hello.FirstClient)))
	for i := range d.command {
		d.command[i] = byte(random.Uint32())
	}
	for range d.Connections {
		var dialer net.Dialer
		socket, err := dialer.DialContext(ctx, "tcp", d.Server)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		conn := rpc.NewConn(rpc.NewStreamTransport(socket), nil)
		l := link{conn, message.Receiver(conn.Bootstrap(ctx))}
		d.links = append(d.links, l)
		if err := d.deliver(ctx, l); err != nil {
			return fmt.Errorf("first message: %w", err)
		}
	}
	return nil
}

// Transact sends one message and waits for its answer.
func (d *Driver) Transact(ctx context.Context, a protocol.Attempt) error {
	d.messages.Add(1)
	err := d.deliver(ctx, d.links[int(a.Client-d.first)%len(d.links)])
	switch {
	case err == nil:
		d.answered.Add(1)
	case ctx.Err() != nil:
		d.abandoned.Add(1)
	default:
		d.failed.Add(1)
	}
	return err
}

func (d *Driver) deliver(ctx context.Context, l link) error {
	future, release := l.receiver.Deliver(ctx, d.fill)
	defer release()
	arrived, err := future.Struct()
	if err != nil {
		return err
	}
	if int(arrived.Commands()) != d.Commands || arrived.Bytes() != uint64(d.Commands)*uint64(d.CommandSize) {
		return fmt.Errorf("%d commands with %d bytes arrived; sent were %d of %d bytes each", arrived.Commands(), arrived.Bytes(), d.Commands, d.CommandSize)
	}
	return nil
}

func (d *Driver) fill(p message.Receiver_deliver_Params) error {
	commands, err := p.NewCommands(int32(d.Commands))
	if err != nil {
		return err
	}
	for i := range d.Commands {
		if err := commands.Set(i, d.command); err != nil {
			return err
		}
	}
	return nil
}

// Close returns the counters of the whole run.
func (d *Driver) Close() map[string]int64 {
	for _, l := range d.links {
		l.receiver.Release()
		_ = l.conn.Close() // the server may be gone
	}
	return map[string]int64{
		"messages": d.messages.Load(), "answered": d.answered.Load(), "abandoned": d.abandoned.Load(), "failed": d.failed.Load(),
		"commandsAnswered": d.answered.Load() * int64(d.Commands),
	}
}
