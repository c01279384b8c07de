package driver

import (
	"net"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/systems/capnp-rpc/internal/server"
	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
)

var hello = protocol.Hello{FirstClient: 40, Clients: 3, Seed: 9, RequestTimeout: 2 * time.Second}

// serve starts a server on loopback.
func serve(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { _ = server.Serve(l) }() // until the listener closes
	return l
}

func TestMessagesAreAnswered(t *testing.T) {
	l := serve(t)
	for name, d := range map[string]*Driver{
		"one command":       {Connections: 1, Commands: 1, CommandSize: 32},
		"600 commands":      {Connections: 1, Commands: 600, CommandSize: 32},
		"empty commands":    {Connections: 2, Commands: 3},
		"no command":        {Connections: 1, CommandSize: 32},
		"several megabytes": {Connections: 1, Commands: 5000, CommandSize: 1024},
	} {
		t.Run(name, func(t *testing.T) {
			d.Server = l.Addr().String()
			s := drivertest.Start(t, protocol.Clients(d))
			s.Hello(hello)
			for id := range uint64(12) {
				if got := s.Transact(id, 40+int64(id%3), id/3); got.Outcome != "commit" {
					t.Fatalf("message %d: %+v, want a commit", id, got)
				}
			}
			if c := s.Bye(); c["messages"] != 12 || c["answered"] != 12 || c["commandsAnswered"] != 12*int64(d.Commands) {
				t.Errorf("counters %v; want 12 messages, all answered", c)
			}
		})
	}
}

// A connection becomes silent: its messages time out, and its clients do not wait for each other.
func TestSilenceIsATimeout(t *testing.T) {
	relay, silence := between(t, serve(t).Addr().String())
	d := &Driver{Server: relay, Connections: 1, Commands: 10, CommandSize: 32}
	s := drivertest.Start(t, protocol.Clients(d))
	s.Hello(hello)
	if got := s.Transact(1, 40, 0); got.Outcome != "commit" {
		t.Fatalf("%+v, want a commit", got)
	}
	silence()
	began := time.Now()
	s.Begin(2, 40, 1)
	s.Begin(3, 41, 0)
	for range 2 {
		if got := s.Next(); got.Outcome != "timeout" {
			t.Errorf("%+v, want a timeout", got)
		}
	}
	if took := time.Since(began); took > 3*hello.RequestTimeout/2 {
		t.Errorf("two messages timed out one after the other: %v", took)
	}
	if c := s.Bye(); c["answered"] != 1 || c["messages"] != 3 {
		t.Errorf("counters %v; want 3 messages, 1 answered", c)
	}
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	d := &Driver{Server: l.Addr().String(), Connections: 1, Commands: 1}
	if err := d.Connect(t.Context(), hello); err == nil || !strings.Contains(err.Error(), "connect") {
		t.Errorf("got %v, want that it cannot connect", err)
	}
	d.Close()
}

// between relays connections to a server until it is told to be silent. Then it drops all bytes
// that arrive.
func between(t *testing.T, server string) (address string, silence func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	quiet := make(chan struct{})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				return // the server has ended
			}
			go relay(client, to, quiet)
			go relay(to, client, quiet)
			t.Cleanup(func() { client.Close(); to.Close() })
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() { close(quiet) }
}

func relay(from, to net.Conn, quiet chan struct{}) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-quiet:
		default:
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}
