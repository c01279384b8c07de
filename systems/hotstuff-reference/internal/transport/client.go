package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"capnproto.org/go/capnp/v3/rpc"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/wire"
)

// Client talks to all replicas of a group, with one connection to each.
type Client struct {
	enough  int // answers: f+1, so that at least one is from a correct replica
	links   []*link
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// link is a connection to a replica, which is made again when it breaks.
type link struct {
	address string
	mu      sync.Mutex
	replica wire.Replica
	up      bool
}

// Connect dials all replicas in the background. It waits until all are connected, or until limit.
// After limit, n-f of them are enough.
func Connect(addresses []string, limit time.Duration) (*Client, error) {
	f := (len(addresses) - 1) / 3
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{enough: f + 1, cancel: cancel}
	for _, a := range addresses {
		l := &link{address: a}
		c.links = append(c.links, l)
		c.running.Go(func() { l.run(ctx) })
	}
	deadline := time.Now().Add(limit)
	for {
		missing := c.missing()
		if len(missing) == 0 {
			return c, nil
		}
		if time.Now().After(deadline) {
			if len(missing) <= f {
				return c, nil
			}
			c.Close()
			return nil, fmt.Errorf("%d of %d replicas cannot be reached after %v: %q", len(missing), len(addresses), limit, missing)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *Client) missing() (addresses []string) {
	for _, l := range c.links {
		l.mu.Lock()
		if !l.up {
			addresses = append(addresses, l.address)
		}
		l.mu.Unlock()
	}
	return addresses
}

// Close disconnects.
func (c *Client) Close() {
	c.cancel()
	c.running.Wait()
}

func (l *link) get() (wire.Replica, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up {
		return wire.Replica{}, false
	}
	return l.replica.AddRef(), true
}

func (l *link) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.connect(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(redial):
		}
	}
}

func (l *link) connect(ctx context.Context) {
	dialer := net.Dialer{Timeout: dialTimeout}
	socket, err := dialer.DialContext(ctx, "tcp", l.address)
	if err != nil {
		return
	}
	conn := rpc.NewConn(rpc.NewStreamTransport(socket), nil)
	defer conn.Close()
	defer socket.Close()
	replica := wire.Replica(conn.Bootstrap(ctx))
	defer replica.Release()
	if err := replica.Resolve(ctx); err != nil {
		return
	}
	l.set(replica, true)
	select {
	case <-conn.Done():
	case <-ctx.Done():
	}
	l.set(wire.Replica{}, false)
}

func (l *link) set(r wire.Replica, up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replica, l.up = r, up
}

// Execute sends a command to all replicas and calls end once: with nil when f+1 of them have
// executed it, or with an error when that has become impossible. Calls end with the context.
func (c *Client) Execute(ctx context.Context, command message.Command, end func(error)) {
	call := &call{enough: c.enough, left: len(c.links), end: end}
	for _, l := range c.links {
		replica, up := l.get()
		if !up {
			call.answer(errUnconnected)
			continue
		}
		future, release := replica.Execute(ctx, func(params wire.Replica_execute_Params) error {
			place, err := params.NewCommand()
			if err != nil {
				return err
			}
			return wire.WriteCommand(place, command)
		})
		go func() {
			_, err := future.Struct()
			release()
			replica.Release()
			call.answer(err)
		}()
	}
}

var errUnconnected = errors.New("not connected")

// call is a command at all replicas.
type call struct {
	mu           sync.Mutex
	enough, left int
	end          func(error)
}

func (c *call) answer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left--
	if c.end == nil {
		return
	}
	if err == nil {
		c.enough--
	}
	switch {
	case c.enough == 0:
		c.end(nil)
	case c.enough > c.left:
		c.end(fmt.Errorf("too few replicas answer: %w", err))
	default:
		return
	}
	c.end = nil
}
