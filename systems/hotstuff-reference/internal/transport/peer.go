package transport

import (
	"context"
	"net"
	"time"

	"capnproto.org/go/capnp/v3/rpc"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/wire"
)

const (
	dialTimeout = time.Second
	callTimeout = 1500 * time.Millisecond
	redial      = 50 * time.Millisecond
	queueLength = 1024 // messages to one replica
	callsLength = 64   // without an answer, to one replica
)

// peer is another replica, to which this one sends messages.
type peer struct {
	address string
	self    int
	queue   chan message.Message
}

func newPeer(address string, self int) *peer {
	return &peer{address: address, self: self, queue: make(chan message.Message, queueLength)}
}

// put drops the message if the queue is full: the receiver is silent or far behind, and messages
// that still matter are repeated.
func (p *peer) put(m message.Message) {
	select {
	case p.queue <- m:
	default:
	}
}

// run keeps a connection to the peer. Messages that come while there is none are dropped: late
// messages would only be work.
func (p *peer) run(ctx context.Context) {
	for ctx.Err() == nil {
		p.talk(ctx)
		for len(p.queue) > 0 {
			<-p.queue
		}
		select {
		case <-ctx.Done():
		case <-time.After(redial):
		}
	}
}

// talk sends messages until the connection breaks or the peer is silent.
func (p *peer) talk(ctx context.Context) {
	dialer := net.Dialer{Timeout: dialTimeout}
	socket, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return
	}
	conn := rpc.NewConn(rpc.NewStreamTransport(socket), nil)
	defer conn.Close()
	defer socket.Close() // first, so that no step waits for a silent peer
	to, ok := p.join(ctx, conn)
	if !ok {
		return
	}
	defer to.Release()
	calls := make(chan struct{}, callsLength)
	patience := time.NewTimer(callTimeout)
	defer patience.Stop()
	for {
		var m message.Message
		select {
		case m = <-p.queue:
		case <-conn.Done():
			return
		case <-ctx.Done():
			return
		}
		patience.Reset(callTimeout)
		select {
		case calls <- struct{}{}:
		case <-patience.C:
			return
		case <-conn.Done():
			return
		}
		future, release := to.Deliver(ctx, func(params wire.Peer_deliver_Params) error {
			place, err := params.NewMessage_()
			if err != nil {
				return err
			}
			return wire.Write(place, m)
		})
		go func() {
			<-future.Done()
			release()
			<-calls
		}()
	}
}

// join sends this replica's name to the peer.
func (p *peer) join(ctx context.Context, conn *rpc.Conn) (wire.Peer, bool) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	bootstrap := wire.Replica(conn.Bootstrap(ctx))
	defer bootstrap.Release()
	future, release := bootstrap.Join(ctx, func(params wire.Replica_join_Params) error {
		params.SetReplica(uint16(p.self))
		return nil
	})
	defer release()
	results, err := future.Struct()
	if err != nil {
		return wire.Peer{}, false
	}
	return results.Peer().AddRef(), true
}
