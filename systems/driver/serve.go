package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// version of the protocol.
	version = 1
	// longestLine of the load generator, in bytes.
	longestLine = 1 << 20
	// shortestTimeout that the protocol allows.
	shortestTimeout = time.Millisecond
)

// request is any message from the load generator.
type request struct {
	Type                 string `json:"type"`
	Version              int    `json:"version"`
	FirstClient          int64  `json:"firstClient"`
	Clients              int64  `json:"clients"`
	Seed                 int64  `json:"seed"`
	RequestTimeoutMicros int64  `json:"requestTimeoutMicros"`

	ID       uint64 `json:"id"`
	Client   int64  `json:"client"`
	Sequence uint64 `json:"sequence"`
	Attempt  int    `json:"attempt"`
}

// Serve runs a session until bye, the end of input, or an error, which it also sends to the load
// generator. It abandons attempts that run then. When ctx ends, all attempts end.
func Serve(ctx context.Context, in io.Reader, out io.Writer, system System) error {
	s := &session{system: system, out: newOutput(out)}
	working, stop := context.WithCancel(ctx)
	bye, err := s.read(working, in)
	s.out.mute() // abandoned attempts report no end
	stop()
	var counters map[string]int64
	if s.connected {
		counters = system.Close()
	}
	switch {
	case err != nil:
		s.out.last(message{Type: "error", Message: err.Error()})
	case bye:
		s.out.last(stats{Type: "stats", Counters: counters})
	}
	return errors.Join(err, s.out.close())
}

type session struct {
	system    System
	out       *output
	hello     Hello
	connected bool                 // Connect was called
	greeted   bool                 // and the load generator has got ready
	abandon   []context.CancelFunc // for each client's last attempt
}

// read reads the input, and reports whether it ended with bye.
func (s *session) read(ctx context.Context, in io.Reader) (bye bool, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), longestLine)
	for lines.Scan() {
		var m request
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return false, fmt.Errorf("malformed line: %w", err)
		}
		switch {
		case m.Type == "hello" && !s.greeted:
			if err := s.greet(ctx, m); err != nil {
				return false, err
			}
			s.out.say(message{Type: "ready"})
		case m.Type == "begin" && s.greeted:
			if m.Client < s.hello.FirstClient || m.Client >= s.hello.FirstClient+s.hello.Clients {
				return false, fmt.Errorf("begin %d: client %d is not one of %d clients from %d", m.ID, m.Client, s.hello.Clients, s.hello.FirstClient)
			}
			s.begin(ctx, m)
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

func (s *session) greet(ctx context.Context, m request) error {
	timeout := time.Duration(m.RequestTimeoutMicros) * time.Microsecond
	switch {
	case m.Version != version:
		return fmt.Errorf("protocol version %d is not supported, only %d", m.Version, version)
	case m.Clients < 1 || m.FirstClient < 0:
		return fmt.Errorf("hello: %d clients from %d; want at least 1, from 0 or more", m.Clients, m.FirstClient)
	case timeout < shortestTimeout:
		return fmt.Errorf("hello: requestTimeoutMicros is %d; want at least %d", m.RequestTimeoutMicros, shortestTimeout.Microseconds())
	}
	s.hello = Hello{FirstClient: m.FirstClient, Clients: m.Clients, Seed: m.Seed, RequestTimeout: timeout}
	s.abandon = make([]context.CancelFunc, m.Clients)
	s.connected = true
	if err := s.system.Connect(ctx, s.hello); err != nil {
		return err
	}
	s.greeted = true
	return nil
}

// begin starts an attempt. First it abandons the client's last attempt: if that has not ended, the
// load generator has given it up.
func (s *session) begin(ctx context.Context, m request) {
	last := &s.abandon[m.Client-s.hello.FirstClient]
	if *last != nil {
		(*last)()
	}
	ctx, *last = context.WithTimeout(ctx, s.hello.RequestTimeout)
	s.system.Begin(ctx, Attempt{Client: m.Client, Sequence: m.Sequence, Number: m.Attempt}, func(err error) {
		if name, detail := outcome(ctx, err); name != "" {
			s.out.say(end{Type: "end", ID: m.ID, Outcome: name, Detail: detail})
		}
	})
}
