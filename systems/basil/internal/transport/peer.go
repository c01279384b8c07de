package transport

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"assay.dev/assay/systems/basil/internal/wire"
)

// peer keeps a connection to one replica.
type peer struct {
	address   Address
	q         *queue
	connected atomic.Bool
	handle    func(wire.Message)
}

// send sends if there is a connection. It drops frames for an absent peer at once: late frames
// would only be work for a replica that comes back.
func (p *peer) send(frame []byte) {
	if p.connected.Load() {
		p.q.put(frame)
	}
}

func (p *peer) run(ctx context.Context) {
	wait := minRedial
	for ctx.Err() == nil {
		d := net.Dialer{Timeout: dialTimeout}
		conn, err := d.DialContext(ctx, "tcp", p.address.String())
		if err == nil {
			wait = minRedial
			p.q.drain()
			p.connected.Store(true)
			serve(conn, p.q, true, ctx.Done(), p.handle)
			p.connected.Store(false)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRedial)
	}
}

// peers are connections to all other replicas.
type peers struct {
	list []*peer
	wg   sync.WaitGroup
}

func dialAll(ctx context.Context, addresses []Address, self int, handle func(int, wire.Message)) *peers {
	ps := &peers{list: make([]*peer, len(addresses))}
	for i, a := range addresses {
		if i == self {
			continue
		}
		p := &peer{address: a, q: newQueue(), handle: func(m wire.Message) { handle(i, m) }}
		ps.list[i] = p
		ps.wg.Add(1)
		go func() {
			defer ps.wg.Done()
			p.run(ctx)
		}()
	}
	return ps
}
