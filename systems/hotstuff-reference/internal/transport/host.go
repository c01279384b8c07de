// Package transport runs replicas and clients over TCP, with Cap'n Proto's remote procedure calls.
//
// A replica dials every other one and joins: it gets a peer, to which it sends all its messages. So
// each pair has two connections, and the messages on each are in order. A replica's name is not
// checked when it joins: run a group in a separate network.
//
// A crashed machine is silent: it sends no reset, and a write to it succeeds until buffers are
// full. So no code here waits for a peer. Each peer has a bounded queue, which drops messages that
// do not fit, and a bounded number of calls without an answer. If none of these calls is answered
// for callTimeout, the connection is given up and dialed again.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	capnp "capnproto.org/go/capnp/v3"
	"capnproto.org/go/capnp/v3/rpc"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
	"assay.dev/assay/systems/hotstuff-reference/internal/wire"
)

// loopLength is how many events may wait for the state machine. Beyond it, connections are not
// read.
const loopLength = 4096

// Host serves one replica. One goroutine, its loop, runs the state machine.
type Host struct {
	replica  *replica.Replica
	events   chan func()
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	listener net.Listener
	peers    []*peer // by replica; nil for itself

	// Only the loop uses these:
	timer   *time.Timer
	set     int // counts settings of the timer
	waiting map[message.CommandID][]chan<- error
}

// Serve runs a replica on an open listener. Addresses are those of all replicas, HOST:PORT.
func Serve(l net.Listener, addresses []string, cfg replica.Config) (*Host, error) {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{
		events: make(chan func(), loopLength), ctx: ctx, cancel: cancel, listener: l,
		waiting: map[message.CommandID][]chan<- error{},
	}
	r, err := replica.New(cfg, h)
	if err != nil {
		cancel()
		return nil, err
	}
	h.replica = r
	for i, address := range addresses {
		var p *peer
		if i != cfg.ID {
			p = newPeer(address, cfg.ID)
			h.running.Go(func() { p.run(ctx) })
		}
		h.peers = append(h.peers, p)
	}
	h.running.Go(h.loop)
	h.running.Go(h.accept)
	return h, nil
}

func (h *Host) loop() {
	for {
		select {
		case event := <-h.events:
			event()
		case <-h.ctx.Done():
			return
		}
	}
}

// post queues an event. It blocks while the loop is far behind.
func (h *Host) post(event func()) {
	select {
	case h.events <- event:
	case <-h.ctx.Done():
	}
}

// Counters returns those of the replica, its view, and whether agreement is broken.
func (h *Host) Counters() (c replica.Counters, view message.View, broken error) {
	done := make(chan struct{})
	h.post(func() {
		c, view, broken = h.replica.Counters, h.replica.View(), h.replica.Broken()
		close(done)
	})
	select {
	case <-done:
	case <-h.ctx.Done():
	}
	return c, view, broken
}

// Close stops serving.
func (h *Host) Close() {
	h.cancel()
	h.listener.Close()
	h.running.Wait()
}

// Send implements replica.Env.
func (h *Host) Send(to int, m message.Message) { h.peers[to].put(m) }

// SetTimer implements replica.Env.
func (h *Host) SetTimer(d time.Duration) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.set++
	if d == 0 {
		return
	}
	set := h.set
	h.timer = time.AfterFunc(d, func() {
		h.post(func() {
			if h.set == set {
				h.replica.Timeout()
			}
		})
	})
}

// Commit implements replica.Env. To execute a command is to inform its client.
func (h *Host) Commit(_ *message.Block, executed []message.Command) {
	for _, c := range executed {
		for _, done := range h.waiting[c.CommandID] {
			done <- nil
		}
		delete(h.waiting, c.CommandID)
	}
}

var errFull = errors.New("too many commands wait")

// execute submits a command and waits until it is executed.
func (h *Host) execute(ctx context.Context, c message.Command) error {
	done := make(chan error, 1)
	h.post(func() {
		executed, taken := h.replica.Submit(c)
		switch {
		case executed:
			done <- nil
		case !taken:
			done <- errFull
		default:
			h.waiting[c.CommandID] = append(h.waiting[c.CommandID], done)
		}
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // the client has given it up
		h.post(func() { delete(h.waiting, c.CommandID) })
		return ctx.Err()
	case <-h.ctx.Done():
		return h.ctx.Err()
	}
}

func (h *Host) accept() {
	for {
		socket, err := h.listener.Accept()
		if err != nil {
			if h.ctx.Err() != nil {
				return
			}
			time.Sleep(redial) // perhaps there are no free file descriptors
			continue
		}
		h.running.Go(func() {
			conn := rpc.NewConn(rpc.NewStreamTransport(socket), &rpc.Options{
				BootstrapClient: capnp.Client(wire.Replica_ServerToClient(service{h})),
			})
			select {
			case <-conn.Done():
			case <-h.ctx.Done():
			}
			_ = conn.Close() // the other end may be gone
		})
	}
}

// service is what a connection offers before the other end is known.
type service struct{ h *Host }

// Join makes the other end a replica.
func (s service) Join(_ context.Context, call wire.Replica_join) error {
	from := int(call.Args().Replica())
	if from >= len(s.h.peers) {
		return fmt.Errorf("replica %d joins; there are %d", from, len(s.h.peers))
	}
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	return results.SetPeer(wire.Peer_ServerToClient(inbound{s.h, from}))
}

// Execute answers a client when its command is executed.
func (s service) Execute(ctx context.Context, call wire.Replica_execute) error {
	from, err := call.Args().Command()
	if err != nil {
		return err
	}
	c, err := wire.ReadCommand(from)
	if err != nil {
		return err
	}
	call.Go()
	return s.h.execute(ctx, c)
}

// inbound receives the messages of another replica.
type inbound struct {
	h    *Host
	from int
}

// Deliver passes a message to the state machine. It answers calls one after the other. So a slow
// replica slows down its senders.
func (i inbound) Deliver(_ context.Context, call wire.Peer_deliver) error {
	from, err := call.Args().Message_()
	if err != nil {
		return err
	}
	m, err := wire.Read(from)
	if err != nil {
		return err
	}
	i.h.post(func() { i.h.replica.Handle(i.from, m) })
	return nil
}
