// Package client is one client of an etcd cluster. It uses one member. It changes to the next
// member when that one gives no answer in time, breaks the connection, or answers that it cannot
// serve now.
//
// An attempt without an answer may still have taken effect. So doing an operation twice must have
// the same effect as doing it once. A put has that property: the next attempt writes the same
// value. An operation counts once, when an attempt is answered. An answer to an attempt that was
// given up is lost with its connection.
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

// pause is how long a client waits after all members have failed to answer: members that refuse
// connections do so at once.
const pause = 10 * time.Millisecond

// Counters count for all clients that share them. They count attempts by their failure; the
// remaining attempts succeeded.
type Counters struct {
	Attempts  atomic.Int64
	TimedOut  atomic.Int64 // no answer within the attempt's time
	Failed    atomic.Int64 // no connection, or an error as the answer
	Exhausted atomic.Int64 // rounds in which no member answered
}

// Client has at most one running operation, and one connection: do not call its methods from
// several goroutines at once.
type Client struct {
	addresses []string
	at        int
	member    *member.Member // at addresses[at]
	attempt   time.Duration
	counters  *Counters
}

// Options of a client.
type Options struct {
	// Members are the client addresses of all members, HOST:PORT, in an order that all clients
	// share.
	Members []string
	// Index of the client over all processes: it begins with the member of this index, modulo their
	// number.
	Index int
	// Attempt is how long one member may take to answer, with the time for making a connection.
	Attempt  time.Duration
	Counters *Counters
}

// New returns a client without a connection. The caller must close it.
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

// Do carries out an operation at some member. It returns nil as soon as one attempt has succeeded,
// and the error of an attempt that no other member could carry out either. When the context ends,
// it returns the context's error with that of the last attempt.
func (c *Client) Do(ctx context.Context, operation func(context.Context, *member.Member) error) error {
	for tried := 1; ; tried++ {
		err := c.once(ctx, operation)
		if err == nil || member.Final(err) {
			return err
		}
		// The client also changes the member when the operation's time is up. Otherwise a client
		// whose operations have less time than an attempt would never leave a dead member.
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
		<-limited.Done() // the member, which knows the deadline, may notice first
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

// open makes the member at addresses[at] the client's. It always makes a new connection: an old one
// to a machine that was silent for a while would continue only when TCP retries, at longer and
// longer intervals.
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
