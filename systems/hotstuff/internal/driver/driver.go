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
// A transaction is one command of HotStuff. It goes to all replicas and is done when f+1 have
// executed it, as in the project's own client. All clients share one connection to each replica.
package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang/protobuf/ptypes/empty"
	"github.com/relab/gorums"
	"github.com/relab/hotstuff/client"
	"google.golang.org/grpc"
)

const (
	// version of the protocol.
	version = 1
	// connectLimit is how long the connections may take. The protocol allows 60 s for ready.
	connectLimit = 30 * time.Second
	// sendBuffer is how many commands may wait for one replica. Without a buffer all clients would
	// wait for a replica that is silent.
	sendBuffer = 1 << 16
)

// Driver runs one session.
type Driver struct {
	// Replicas are the client addresses of all replicas, HOST:PORT, in the order of their ids.
	Replicas []string
	// PayloadSize of a command in bytes.
	PayloadSize int
	In          io.Reader
	Out         io.Writer

	hello   request
	manager *client.Manager
	config  *client.Configuration
	payload []byte
	running sync.WaitGroup

	mu   sync.Mutex // for out and over
	out  *json.Encoder
	over bool
	err  error // the first of writing

	commands, executed, timedOut, failed atomic.Int64
}

// request is any message from the load generator.
type request struct {
	Type                 string `json:"type"`
	Version              int    `json:"version"`
	FirstClient          int64  `json:"firstClient"`
	Clients              int64  `json:"clients"`
	Seed                 uint64 `json:"seed"`
	RequestTimeoutMicros int64  `json:"requestTimeoutMicros"`

	ID       uint64 `json:"id"`
	Client   int64  `json:"client"`
	Sequence uint64 `json:"sequence"`
}

type end struct {
	Type    string `json:"type"`
	ID      uint64 `json:"id"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

type stats struct {
	Type     string           `json:"type"`
	Counters map[string]int64 `json:"counters"`
}

type status struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
}

// Run serves the session until bye, the end of input, or an error, which the load generator has
// been told. When it returns, what was under way is abandoned.
func (d *Driver) Run(ctx context.Context) error {
	d.out = json.NewEncoder(d.Out)
	ctx, stop := context.WithCancel(ctx)
	bye, err := d.serve(ctx)
	if err != nil {
		d.say(status{Type: "error", Message: err.Error()})
	}
	if bye {
		d.finish(stats{Type: "stats", Counters: map[string]int64{
			"commands": d.commands.Load(), "executed": d.executed.Load(), "timedOut": d.timedOut.Load(), "failed": d.failed.Load(),
		}})
	}
	stop()
	d.running.Wait()
	if d.manager != nil {
		d.manager.Close()
	}
	return errors.Join(err, d.err)
}

// serve reads the input, and reports whether it ended with bye.
func (d *Driver) serve(ctx context.Context) (bye bool, err error) {
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
			if err := d.greet(m); err != nil {
				return false, err
			}
			d.say(status{Type: "ready"})
		case m.Type == "begin" && greeted:
			if m.Client < d.hello.FirstClient || m.Client >= d.hello.FirstClient+d.hello.Clients {
				return false, fmt.Errorf("begin %d: client %d is not one of %d clients from %d", m.ID, m.Client, d.hello.Clients, d.hello.FirstClient)
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

func (d *Driver) greet(m request) error {
	switch {
	case m.Version != version:
		return fmt.Errorf("protocol version %d is not supported, only %d", m.Version, version)
	case m.Clients < 1 || m.FirstClient < 0:
		return fmt.Errorf("hello: %d clients from %d; want at least 1, from 0 or more", m.Clients, m.FirstClient)
	case m.RequestTimeoutMicros < 1000:
		return fmt.Errorf("hello: requestTimeoutMicros is %d; want at least 1000", m.RequestTimeoutMicros)
	}
	d.hello = m
	d.payload = make([]byte, d.PayloadSize)
	random := rand.New(rand.NewPCG(m.Seed, uint64(m.FirstClient)))
	for i := range d.payload {
		d.payload[i] = byte(random.Uint32())
	}
	return d.connect()
}

// connect opens a stream to every replica; all must be there.
func (d *Driver) connect() error {
	ids := map[string]uint32{}
	for i, address := range d.Replicas {
		ids[address] = uint32(i + 1)
	}
	if len(ids) < len(d.Replicas) {
		return errors.New("two replicas have the same address")
	}
	d.manager = client.NewManager(gorums.WithDialTimeout(connectLimit), gorums.WithSendBufferSize(sendBuffer),
		gorums.WithGrpcDialOptions(grpc.WithBlock(), grpc.WithInsecure()))
	config, err := d.manager.NewConfiguration(quorum((len(ids)-1)/3+1), gorums.WithNodeMap(ids))
	if err != nil {
		return fmt.Errorf("connect to the replicas: %w", err)
	}
	d.config = config
	return nil
}

// quorum is how many replicas must have executed a command: f+1, of which one is correct.
type quorum int

// ExecCommandQF decides whether the replies are enough.
func (q quorum) ExecCommandQF(_ *client.Command, replies map[uint32]*empty.Empty) (*empty.Empty, bool) {
	return &empty.Empty{}, len(replies) >= int(q)
}

// begin sends a command. Its context lasts until the timeout even when the command is executed
// sooner: gorums takes a context that ends for a sign that the replica is stuck, and drops the
// stream.
func (d *Driver) begin(ctx context.Context, m request) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(d.hello.RequestTimeoutMicros)*time.Microsecond)
	context.AfterFunc(ctx, cancel)
	d.commands.Add(1)
	// Replicas take a command only if its number is above that of the client's last one, from 1.
	promise := d.config.ExecCommand(ctx, &client.Command{ClientID: uint32(m.Client + 1), SequenceNumber: m.Sequence + 1, Data: d.payload})
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		_, err := promise.Get()
		switch {
		case err == nil:
			d.executed.Add(1)
			d.say(end{Type: "end", ID: m.ID, Outcome: "commit"})
		case errors.Is(ctx.Err(), context.Canceled): // the session is over
		case ctx.Err() != nil:
			d.timedOut.Add(1)
			d.say(end{Type: "end", ID: m.ID, Outcome: "timeout"})
		default:
			d.failed.Add(1)
			d.say(end{Type: "end", ID: m.ID, Outcome: "error", Detail: err.Error()})
		}
	}()
}

func (d *Driver) say(message any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.err != nil {
		return
	}
	if err := d.out.Encode(message); err != nil {
		d.err = fmt.Errorf("write output: %w", err)
	}
}

// finish says the last message; what comes later is dropped.
func (d *Driver) finish(message any) {
	d.say(message)
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
}
