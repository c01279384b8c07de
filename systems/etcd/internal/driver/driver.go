// Package driver speaks the driver protocol, version 1: newline-delimited JSON on a pair of pipes,
// by which a load generator runs many clients through one child process.
//
//	-> hello  firstClient, clients, seed, requestTimeoutMicros
//	<- ready | error
//	-> begin  id, client, sequence, attempt
//	<- end    id, outcome: commit, error or timeout
//	-> bye
//	<- stats  counters
//
// Every client has a goroutine and a connection of its own.
package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"assay.dev/assay/systems/etcd/internal/client"
	"assay.dev/assay/systems/etcd/internal/member"
	"assay.dev/assay/systems/etcd/internal/workload"
)

// connectLimit is how long the first answer of the cluster may take. The protocol allows 60 s for
// ready.
const connectLimit = 30 * time.Second

// Driver runs one session.
type Driver struct {
	Members []string // client addresses of all members, HOST:PORT
	Attempt time.Duration
	// Workload without its seed, which the load generator gives.
	Workload     workload.Workload
	Serializable bool // gets may be answered from what one member has
	In           io.Reader
	Out          io.Writer

	out      *output
	first    int64 // index of the first client
	timeout  time.Duration
	clients  []*worker
	running  sync.WaitGroup
	counters client.Counters
	puts     atomic.Int64 // that were answered
	gets     atomic.Int64
}

// worker is one client. Its tasks come one at a time: before the next comes, the last one's context
// has ended.
type worker struct {
	client *client.Client
	index  int64
	tasks  chan task
	cancel context.CancelFunc // of the last task; belongs to the goroutine that reads the input
}

type task struct {
	ctx          context.Context
	cancel       context.CancelFunc
	id, sequence int64
}

// Run serves the session until bye, the end of input, or an error, which the load generator has
// been told. When the context ends, so does what is under way.
func (d *Driver) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	d.out = &output{w: d.Out}
	over, err := d.serve(ctx)
	stop() // what is under way is abandoned: it has no end
	for _, w := range d.clients {
		close(w.tasks)
	}
	d.running.Wait()
	if err != nil {
		d.out.say(status{Type: "error", Message: err.Error()})
	}
	if over {
		d.out.say(stats{Type: "stats", Counters: d.report()})
	}
	return errors.Join(err, d.out.failure())
}

// serve reads the input, and reports whether it ended with bye.
func (d *Driver) serve(ctx context.Context) (over bool, err error) {
	lines := bufio.NewScanner(d.In)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	greeted := false
	for lines.Scan() {
		var m request
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return false, fmt.Errorf("malformed line: %w", err)
		}
		switch {
		case m.Type == "hello" && !greeted:
			greeted = true
			if err := d.hello(ctx, m); err != nil {
				return false, err
			}
			d.out.say(status{Type: "ready"})
		case m.Type == "begin" && greeted:
			if m.Client < d.first || m.Client >= d.first+int64(len(d.clients)) {
				return false, fmt.Errorf("begin %d: client %d is not one of %d clients from %d", m.ID, m.Client, len(d.clients), d.first)
			}
			d.begin(ctx, m)
		case m.Type == "bye":
			return true, nil
		default:
			return false, fmt.Errorf("unexpected message of type %q", m.Type)
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("read input: %w", err)
	}
	return false, nil
}

func (d *Driver) hello(ctx context.Context, m request) error {
	switch {
	case m.Version != version:
		return fmt.Errorf("protocol version %d is not supported, only %d", m.Version, version)
	case m.Clients < 1 || m.FirstClient < 0:
		return fmt.Errorf("hello: %d clients from %d; want at least 1, from 0 or more", m.Clients, m.FirstClient)
	case m.RequestTimeoutMicros < 1000:
		return fmt.Errorf("hello: requestTimeoutMicros is %d; want at least 1000", m.RequestTimeoutMicros)
	}
	d.first, d.timeout = m.FirstClient, time.Duration(m.RequestTimeoutMicros)*time.Microsecond
	d.Workload.Seed = uint64(m.Seed)
	if err := d.Workload.Validate(); err != nil {
		return err
	}
	for i := range m.Clients {
		index := m.FirstClient + i
		c, err := client.New(client.Options{Members: d.Members, Index: int(index), Attempt: d.Attempt, Counters: &d.counters})
		if err != nil {
			return err
		}
		// One waits while the one before it, which has been given up, comes to its end.
		w := &worker{client: c, index: index, tasks: make(chan task, 1), cancel: func() {}}
		d.clients = append(d.clients, w)
	}
	if err := d.connect(ctx); err != nil {
		return err
	}
	for _, w := range d.clients {
		d.running.Go(func() { d.work(w) })
	}
	return nil
}

// connect makes all connections, and waits until the cluster has a leader: the read is
// linearizable.
func (d *Driver) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	failures := make(chan error, len(d.clients))
	for _, w := range d.clients {
		go func() {
			failures <- w.client.Do(ctx, func(ctx context.Context, m *member.Member) error {
				_, err := m.Get(ctx, workload.Key(0), false)
				return err
			})
		}()
	}
	var first error
	for range d.clients {
		if err := <-failures; err != nil && first == nil {
			first = fmt.Errorf("no member of the cluster answers a linearizable read: %w", err)
			cancel()
		}
	}
	return first
}

// begin gives a client its next operation, and abandons the last one, which the load generator has
// given up if it has not ended.
func (d *Driver) begin(ctx context.Context, m request) {
	w := d.clients[m.Client-d.first]
	w.cancel()
	t := task{id: m.ID, sequence: m.Sequence}
	t.ctx, t.cancel = context.WithTimeout(ctx, d.timeout)
	w.cancel = t.cancel
	w.tasks <- t
}

func (d *Driver) work(w *worker) {
	defer w.client.Close()
	for t := range w.tasks {
		err := d.carryOut(t.ctx, w, uint64(t.sequence))
		switch cause := t.ctx.Err(); {
		case err == nil:
			d.out.say(end{Type: "end", ID: t.id, Outcome: outcomeCommit})
		case errors.Is(cause, context.Canceled): // abandoned: it has no end
		case cause != nil:
			d.out.say(end{Type: "end", ID: t.id, Outcome: outcomeTimeout, Detail: err.Error()})
		default:
			d.out.say(end{Type: "end", ID: t.id, Outcome: outcomeError, Detail: err.Error()})
		}
		t.cancel()
	}
}

// carryOut does an operation. An answer that came when the operation had been given up counts as
// none.
func (d *Driver) carryOut(ctx context.Context, w *worker, sequence uint64) error {
	op := d.Workload.Operation(uint64(w.index), sequence)
	err := w.client.Do(ctx, func(ctx context.Context, m *member.Member) error {
		if op.Get {
			_, err := m.Get(ctx, op.Pair.Key, d.Serializable)
			return err
		}
		return m.Put(ctx, op.Pair)
	})
	if err == nil {
		err = ctx.Err()
	}
	switch {
	case err != nil:
	case op.Get:
		d.gets.Add(1)
	default:
		d.puts.Add(1)
	}
	return err
}

// report lists the counters, of the whole run: the attempts include the first read of each client.
func (d *Driver) report() map[string]int64 {
	return map[string]int64{
		"puts":             d.puts.Load(),
		"gets":             d.gets.Load(),
		"attempts":         d.counters.Attempts.Load(),
		"attemptsTimedOut": d.counters.TimedOut.Load(),
		"attemptsFailed":   d.counters.Failed.Load(),
		"roundsInVain":     d.counters.Exhausted.Load(),
	}
}
