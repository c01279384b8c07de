// Package client is one client of an etcd cluster. It stays with one member, and moves on to the
// next when that one gives no answer in time, breaks the connection, or says that it cannot serve
// now.
//
// An attempt without an answer may have taken effect all the same, so operations must be such that
// doing them twice is as good as once. A put is: the next attempt writes the same value. It counts
// once, when an attempt is answered; what comes for an attempt that was given up is dropped with
// its connection.
package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"assay.dev/assay/systems/etcd/internal/member"
)

// pause is how long a client waits after it has asked all members in vain: members that refuse
// connections do so at once.
const pause = 10 * time.Millisecond

// Counters count over all clients that share them. An attempt is counted by how it failed; the rest
// succeeded.
type Counters struct {
	Attempts  atomic.Int64
	TimedOut  atomic.Int64 // no answer within the attempt's time
	Failed    atomic.Int64 // no connection, or an answer that says no
	Exhausted atomic.Int64 // rounds over all members in vain
}

// Client has one operation running at a time, and one connection: its methods must not be called
// from several goroutines at once.
type Client struct {
	addresses []string
	at        int
	member    *member.Member // the one of addresses[at]
	attempt   time.Duration
	counters  *Counters
}

// Options of a client.
type Options struct {
	// Members are the client addresses of all members, HOST:PORT, in an order that all clients
	// share.
	Members []string
	// Index of the client over all processes: it begins with the member of this index, counted
	// round.
	Index int
	// Attempt is how long one member may take to answer, with the making of a connection.
	Attempt  time.Duration
	Counters *Counters
}

// New returns a client that has no connection yet. Close it.
func New(o Options) (*Client, error) {
	if len(o.Members) == 0 {
		return nil, errors.New("no members are given")
	}
	for _, address := range o.Members {
		m, err := member.Open(address)
		if err != nil {
			return nil, err
		}
		m.Close()
	}
	c := &Client{addresses: o.Members, at: o.Index % len(o.Members), attempt: o.Attempt, counters: o.Counters}
	return c, c.open()
}

// Do carries an operation out at some member. It returns nil as soon as one attempt succeeded, and
// the error of an attempt that was refused for good. When the context ends, it returns the
// context's error with that of the last attempt.
func (c *Client) Do(ctx context.Context, operation func(context.Context, *member.Member) error) error {
	for tried := 1; ; tried++ {
		err := c.once(ctx, operation)
		if err == nil || member.Final(err) {
			return err
		}
		// Also when the operation's time is up, or else a client whose operations have less time
		// than an attempt would never leave a dead member.
		if err := c.moveOn(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w; the last attempt: %w", ctx.Err(), err)
		}
		if tried%len(c.addresses) == 0 {
			c.counters.Exhausted.Add(1)
			wait(ctx, pause)
		}
	}
}

func (c *Client) once(ctx context.Context, operation func(context.Context, *member.Member) error) error {
	limited, cancel := context.WithTimeout(ctx, c.attempt)
	defer cancel()
	c.counters.Attempts.Add(1)
	err := operation(limited, c.member)
	if status.Code(err) == codes.DeadlineExceeded {
		<-limited.Done() // the member, which has been told the deadline, may notice first
	}
	switch {
	case err == nil || errors.Is(ctx.Err(), context.Canceled): // another goroutine ended it
	case limited.Err() != nil:
		c.counters.TimedOut.Add(1)
	default:
		c.counters.Failed.Add(1)
	}
	return err
}

func (c *Client) moveOn() error {
	c.member.Close()
	c.at = (c.at + 1) % len(c.addresses)
	return c.open()
}

// open makes the member of addresses[at] the client's. Each time it is a new connection. One to a
// machine that was silent for a while would go on only when TCP tries again, which it does ever
// more rarely.
func (c *Client) open() (err error) {
	c.member, err = member.Open(c.addresses[c.at])
	return err
}

// Close drops the connection.
func (c *Client) Close() { c.member.Close() }

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
