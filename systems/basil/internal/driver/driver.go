// Package driver speaks the driver protocol, version 1: newline-delimited JSON
// on a pair of pipes, by which a load generator runs many clients through one
// child process.
//
//	-> hello  firstClient, clients, seed, requestTimeoutMicros
//	<- ready | error
//	-> begin  id, client, sequence, attempt
//	<- end    id, outcome: commit, abort, error or timeout
//	-> bye
//	<- stats  counters
//
// An aborted transaction is not tried again unless the load generator begins
// its next attempt; client and sequence determine what it does.
package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/transport"
	"assay.dev/assay/systems/basil/internal/wire"
	"assay.dev/assay/systems/basil/internal/workload"
)

// version is the protocol's version.
const version = 1

// connectLimit stays below the ten seconds that the protocol allows for ready.
const connectLimit = 8 * time.Second

// request is any message from the load generator.
type request struct {
	Type                 string `json:"type"`
	Version              int    `json:"version"`
	FirstClient          uint32 `json:"firstClient"`
	Clients              uint32 `json:"clients"`
	Seed                 uint64 `json:"seed"`
	RequestTimeoutMicros int64  `json:"requestTimeoutMicros"`

	ID       uint64 `json:"id"`
	Client   uint32 `json:"client"`
	Sequence uint64 `json:"sequence"`
	Attempt  int    `json:"attempt"`
}

type end struct {
	Type    string `json:"type"`
	ID      uint64 `json:"id"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

type stats struct {
	Type     string            `json:"type"`
	Counters map[string]uint64 `json:"counters"`
}

type status struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
}

// Driver runs one session.
type Driver struct {
	Host     *transport.ClientHost
	Workload *workload.YCSBT
	In       io.Reader
	Out      io.Writer
	Log      io.Writer // free text
	// Misbehavior of all clients, in every Frequency-th transaction of each
	// (0 and 1: in all).
	Misbehavior client.Misbehavior
	Frequency   uint64

	hello request
	out   chan any
	over  bool // after the stats; belongs to the client's loop
}

// Run serves the session until bye, the end of input, or an error, which the
// load generator has been told.
func (d *Driver) Run() error {
	d.out = make(chan any, 4096)
	var writer sync.WaitGroup
	writer.Add(1)
	var writeErr error
	go func() {
		defer writer.Done()
		writeErr = d.write()
	}()
	err := d.serve()
	d.Host.Close() // nobody ends a transaction from here on
	close(d.out)
	writer.Wait()
	return errors.Join(err, writeErr)
}

// write sends answers; many at a time when they come fast.
func (d *Driver) write() error {
	w := bufio.NewWriterSize(d.Out, 64<<10)
	enc := json.NewEncoder(w)
	var err error
	for m := range d.out {
		if err != nil {
			continue // the reader is gone; keep draining
		}
		if err = enc.Encode(m); err == nil && len(d.out) == 0 {
			err = w.Flush()
		}
	}
	return errors.Join(err, w.Flush())
}

func (d *Driver) refuse(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	d.out <- status{Type: "error", Message: err.Error()}
	return err
}

func (d *Driver) serve() error {
	in := bufio.NewScanner(d.In)
	in.Buffer(make([]byte, 64<<10), 1<<20)
	greeted := false
	for in.Scan() {
		var m request
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return d.refuse("malformed line: %v", err)
		}
		switch {
		case m.Type == "hello" && !greeted:
			greeted = true
			if err := d.onHello(m); err != nil {
				return err
			}
		case m.Type == "begin" && greeted:
			if m.Client-d.hello.FirstClient >= d.hello.Clients {
				return d.refuse("begin %d: client %d is not one of %d clients from %d", m.ID, m.Client, d.hello.Clients, d.hello.FirstClient)
			}
			d.begin(m)
		case m.Type == "bye":
			d.Host.Do(func() {
				d.over = true
				d.out <- stats{"stats", d.Host.Client.Counters.Map()}
			})
			return nil
		default:
			return d.refuse("unexpected message of type %q", m.Type)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	return nil
}

func (d *Driver) onHello(m request) error {
	if m.Version != version {
		return d.refuse("protocol version %d is not supported, only %d", m.Version, version)
	}
	if m.Clients < 1 {
		return d.refuse("hello: clients must be at least 1")
	}
	if m.RequestTimeoutMicros < 1000 {
		return d.refuse("hello: requestTimeoutMicros is %d, must be at least 1000", m.RequestTimeoutMicros)
	}
	d.hello = m
	d.Workload.Seed = m.Seed
	missing, err := d.Host.WaitConnected(connectLimit)
	if err != nil {
		return d.refuse("connect: %v", err)
	}
	if len(missing) > 0 {
		fmt.Fprintf(d.Log, "basil driver: replicas %v are not reachable, going on without them\n", missing)
	}
	d.out <- status{Type: "ready"}
	return nil
}

// begin starts a transaction in the client's loop.
func (d *Driver) begin(m request) {
	req := Transaction(d.Workload, m.Client, m.Sequence)
	if (m.Sequence+1)%max(d.Frequency, 1) == 0 {
		req.Misbehavior = d.Misbehavior
	}
	req.Timeout = time.Duration(d.hello.RequestTimeoutMicros) * time.Microsecond
	req.Done = func(res client.Result) {
		if !d.over {
			d.out <- end{Type: "end", ID: m.ID, Outcome: outcomeName(res.Outcome), Detail: res.Detail}
		}
	}
	d.Host.Post(func() { d.Host.Client.Begin(req) })
}

// Transaction returns a client's sequence-th transaction.
func Transaction(y *workload.YCSBT, clientIndex uint32, sequence uint64) client.Request {
	req := client.Request{Client: clientIndex, Keys: y.Keys(clientIndex, sequence)}
	if y.ReadOnly {
		return req
	}
	req.Update = func(rows []client.Row) []wire.Write {
		writes := make([]wire.Write, len(rows))
		for i, r := range rows {
			writes[i] = wire.Write{Key: r.Key, Value: workload.Increment(r.Value, y.ValueSize, clientIndex)}
		}
		return writes
	}
	return req
}

func outcomeName(o client.Outcome) string {
	switch o {
	case client.Committed:
		return "commit"
	case client.Aborted:
		return "abort"
	case client.TimedOut, client.Abandoned:
		// For the load generator a client that gave up is ready for its next
		// transaction, at once, and does not try this one again.
		return "timeout"
	}
	return "error"
}
