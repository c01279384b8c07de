package driver

import (
	"context"
	"sync"
)

// Transactor carries transactions out, each in a call of its own.
type Transactor interface {
	// Connect prepares all clients, before the clock runs: see System.
	Connect(ctx context.Context, hello Hello) error
	// Transact carries an attempt out. It is called by one goroutine for each client, so that a
	// client has one attempt at a time. When ctx ends, it should return soon. It returns nil for a
	// commit, an error that wraps ErrAborted or ErrTimeout, or another one.
	Transact(ctx context.Context, attempt Attempt) error
	// Close releases what Connect took, when no call of Transact is left, and returns the counters
	// of the whole run.
	Close() map[string]int64
}

// Clients is a System in which each client is a goroutine.
func Clients(t Transactor) System { return &clients{Transactor: t} }

type clients struct {
	Transactor
	first   int64
	tasks   []chan task
	running sync.WaitGroup
}

// task is an attempt that a client has to carry out.
type task struct {
	ctx     context.Context
	attempt Attempt
	end     func(error)
}

// Connect starts the clients once the Transactor is connected.
func (c *clients) Connect(ctx context.Context, hello Hello) error {
	if err := c.Transactor.Connect(ctx, hello); err != nil {
		return err
	}
	c.first = hello.FirstClient
	for range hello.Clients {
		// One waits while the one before it, which has been given up, comes to its end.
		tasks := make(chan task, 1)
		c.tasks = append(c.tasks, tasks)
		c.running.Go(func() {
			for t := range tasks {
				t.end(c.Transact(t.ctx, t.attempt))
			}
		})
	}
	return nil
}

// Begin hands the attempt to its client.
func (c *clients) Begin(ctx context.Context, attempt Attempt, end func(error)) {
	c.tasks[attempt.Client-c.first] <- task{ctx, attempt, end}
}

// Close waits for the clients.
func (c *clients) Close() map[string]int64 {
	for _, tasks := range c.tasks {
		close(tasks)
	}
	c.running.Wait()
	return c.Transactor.Close()
}
