package driver

import (
	"context"
	"sync"
)

// Transactor carries out transactions, each in a call of its own.
type Transactor interface {
	// Connect prepares all clients, before the clock runs: see System.
	Connect(ctx context.Context, hello Hello) error
	// Transact carries out an attempt. One goroutine for each client calls it, so a client has one
	// attempt at a time. When ctx ends, it should return soon. It returns nil for a commit, an
	// error that wraps ErrAborted or ErrTimeout, or another error.
	Transact(ctx context.Context, attempt Attempt) error
	// Close releases the resources of Connect when no call of Transact is left, and returns the
	// counters of the whole run.
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
		// An attempt may wait here while the one before, which has been given up, ends.
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

// Begin passes the attempt to its client.
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
