package echo

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/loadgen"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serve runs the echo server and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	l := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve() = %v after its context ended", err)
		}
	})
	return l.Addr().String()
}

func TestServerEchoesAnySize(t *testing.T) {
	conn, err := net.Dial("tcp", serve(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, n := range []int{0, 1, 32, 33, 5000, MaxBody} {
		out := append(binary.BigEndian.AppendUint32(nil, uint32(n)), bytes.Repeat([]byte{byte(n)}, n)...)
		go func() { _, _ = conn.Write(out) }()
		in := make([]byte, len(out))
		if _, err := io.ReadFull(conn, in); err != nil || !bytes.Equal(in, out) {
			t.Fatalf("a body of %d bytes does not come back as it was: %v", n, err)
		}
	}
	_, _ = conn.Write(binary.BigEndian.AppendUint32(nil, MaxBody+1))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a body that is too large is not refused")
	}
}

func TestDriver(t *testing.T) {
	d := New(serve(t), time.Minute)
	s, err := d.Session(7)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if r := s.Do(loadgen.Request{}); r.Outcome != loadgen.Commit {
			t.Fatalf("%+v", r)
		}
	}
	if _, err := d.Close(); err != nil || d.Err() != nil {
		t.Errorf("Close() = %v, Err() = %v", err, d.Err())
	}
	if r := s.Do(loadgen.Request{}); r.Outcome != loadgen.Error {
		t.Errorf("after Close a request ends with %v, want error", r.Outcome)
	}
	if r := s.Do(loadgen.Request{}); r.Outcome != loadgen.Error {
		t.Errorf("after Close a second request ends with %v, want error: nothing may be connected again", r.Outcome)
	}
}

// misbehaving serves connections one after the other, each with the next function.
func misbehaving(t *testing.T, behaviours ...func(net.Conn)) string {
	t.Helper()
	l := listen(t)
	go func() {
		for _, b := range behaviours {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b(conn)
		}
	}()
	return l.Addr().String()
}

func readOne(conn net.Conn) (message []byte) {
	message = make([]byte, headerSize+bodySize)
	_, _ = io.ReadFull(conn, message)
	return message
}

func echoes(conn net.Conn) { go serveConn(context.Background(), conn) }

func TestDriverConnectsAgain(t *testing.T) {
	tests := map[string]struct {
		behaviour func(net.Conn)
		outcome   loadgen.Outcome
		detail    string
	}{
		"after a closed connection": {func(c net.Conn) { readOne(c); _ = c.Close() }, loadgen.Error, ""},
		"after a wrong reply":       {func(c net.Conn) { m := readOne(c); m[20]++; _, _ = c.Write(m) }, loadgen.Error, "another message came back"},
		"after silence":             {func(c net.Conn) {}, loadgen.Timeout, "timeout"},
		"after half a reply":        {func(c net.Conn) { _, _ = c.Write(readOne(c)[:10]) }, loadgen.Timeout, "timeout"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			timeout := 200 * time.Millisecond
			if tc.outcome != loadgen.Timeout {
				timeout = time.Minute // so long that a busy machine's late reply is no timeout
			}
			d := New(misbehaving(t, tc.behaviour, echoes), timeout)
			defer d.Close()
			s, err := d.Session(0)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Do(loadgen.Request{}); r.Outcome != tc.outcome || !strings.Contains(r.Detail, tc.detail) {
				t.Errorf("%v, %q; want %v, %q", r.Outcome, r.Detail, tc.outcome, tc.detail)
			}
			d.timeout = time.Minute
			if r := s.Do(loadgen.Request{}); r.Outcome != loadgen.Commit {
				t.Errorf("the next request ends with %+v, want a commit on a new connection", r)
			}
		})
	}
}

func TestCloseEndsRunningRequests(t *testing.T) {
	got := make(chan []byte, 1)
	d := New(misbehaving(t, func(c net.Conn) { got <- readOne(c) }), time.Minute)
	s, err := d.Session(0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan loadgen.Result, 1)
	go func() { done <- s.Do(loadgen.Request{}) }()
	<-got
	_, _ = d.Close()
	select {
	case r := <-done:
		if r.Outcome != loadgen.Error {
			t.Errorf("the request ends with %v, want error", r.Outcome)
		}
	case <-time.After(time.Minute):
		t.Error("the request has not ended")
	}
}

func TestSessionFailsWithoutServer(t *testing.T) {
	l := listen(t)
	_ = l.Close()
	if _, err := New(l.Addr().String(), time.Second).Session(0); err == nil || !strings.Contains(err.Error(), "connect to the echo server") {
		t.Errorf("error = %v", err)
	}
}
