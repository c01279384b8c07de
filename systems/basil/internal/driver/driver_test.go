package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/transport"
	"assay.dev/assay/systems/basil/internal/workload"
)

// session is a driver with a cluster of one replica behind it.
type session struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan error
}

func start(t *testing.T, replicas bool) *session {
	t.Helper()
	l := quorum.Layout{Sizes: quorum.For(0), Shards: 1}
	c := &quorum.Checker{Layout: l, Verifier: auth.NewVerifier(nil, 1)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addresses := []transport.Address{{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port}}
	if replicas {
		h := transport.ServeReplicaOn(ln, addresses, replica.Config{Checker: c, Signer: auth.Unsigned{}})
		t.Cleanup(h.Close)
	} else {
		ln.Close()
	}
	y := &workload.YCSBT{Tables: 1, KeysPerTable: 100, RangeSize: 10, ValueSize: 8}
	if err := y.Init(); err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, in: inW, out: bufio.NewScanner(outR), done: make(chan error, 1)}
	d := &Driver{
		Host:     transport.RunClient(addresses, client.Config{Checker: c, FastPath: true, Genesis: y.Genesis}),
		Workload: y, In: inR, Out: outW, Log: io.Discard,
	}
	go func() {
		s.done <- d.Run()
		outW.Close()
	}()
	return s
}

func (s *session) send(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) next() map[string]any {
	s.t.Helper()
	if !s.out.Scan() {
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(s.out.Bytes(), &m); err != nil {
		s.t.Fatalf("%q: %v", s.out.Text(), err)
	}
	return m
}

const hello = `{"type":"hello","version":1,"firstClient":40,"clients":2,"seed":9,"requestTimeoutMicros":5000000}`

func TestSession(t *testing.T) {
	s := start(t, true)
	s.send(hello)
	if m := s.next(); m["type"] != "ready" {
		t.Fatalf("got %v", m)
	}
	outcomes := map[any]int{}
	for id := range 20 {
		s.send(`{"type":"begin","id":%d,"client":%d,"sequence":%d,"attempt":1}`, id, 40+id%2, id/2)
		m := s.next()
		if m["type"] != "end" || m["id"] != float64(id) {
			t.Fatalf("got %v", m)
		}
		outcomes[m["outcome"]]++
	}
	if outcomes["commit"] < 10 || outcomes["commit"]+outcomes["abort"] != 20 {
		t.Errorf("got %v", outcomes)
	}
	s.send(`{"type":"bye"}`)
	m := s.next()
	counters, _ := m["counters"].(map[string]any)
	if m["type"] != "stats" || counters["fastPathCommits"] != float64(outcomes["commit"]) {
		t.Errorf("got %v, want %d commits", m, outcomes["commit"])
	}
	if s.next() != nil {
		t.Error("something follows the stats")
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

func TestReadOnlyTransactionsWriteNothing(t *testing.T) {
	y := &workload.YCSBT{Tables: 1, KeysPerTable: 100, RangeSize: 10, ValueSize: 8}
	if req := Transaction(y, 1, 2); req.Update == nil {
		t.Error("ycsb-t updates nothing")
	}
	y.ReadOnly = true
	if req := Transaction(y, 1, 2); req.Update != nil || len(req.Keys) != 10 {
		t.Errorf("read-only: got %d keys, and an update: %t", len(req.Keys), req.Update != nil)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := start(t, true)
	s.send(hello)
	s.next()
	go func() {
		for id := range 100 {
			fmt.Fprintf(s.in, `{"type":"begin","id":%d,"client":40,"sequence":%d,"attempt":1}`+"\n", id, id)
		}
	}()
	seen := map[any]bool{}
	for range 100 {
		seen[s.next()["id"]] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different ends", len(seen))
	}
	s.in.Close() // the end of input is bye without stats
	if m := s.next(); m != nil {
		t.Errorf("got %v", m)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"version":          {[]string{strings.Replace(hello, `"version":1`, `"version":2`, 1)}, "version 2"},
		"no clients":       {[]string{strings.Replace(hello, `"clients":2`, `"clients":0`, 1)}, "clients"},
		"no timeout":       {[]string{strings.Replace(hello, `5000000`, `0`, 1)}, "requestTimeoutMicros"},
		"begin first":      {[]string{`{"type":"begin","id":1}`}, "begin"},
		"foreign client":   {[]string{hello, `{"type":"begin","id":1,"client":42}`}, "client 42"},
		"client too small": {[]string{hello, `{"type":"begin","id":1,"client":39}`}, "client 39"},
		"no JSON":          {[]string{"hello"}, "malformed"},
		"hello twice":      {[]string{hello, hello}, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, true)
			var m map[string]any
			for _, line := range tc.lines {
				s.send("%s", line)
				m = s.next()
			}
			if m["type"] != "error" || !strings.Contains(fmt.Sprint(m["message"]), tc.want) {
				t.Errorf("got %v, want an error about %q", m, tc.want)
			}
			if err := <-s.done; err == nil {
				t.Error("Run returned no error")
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	s := start(t, true)
	s.send("%s", strings.Replace(hello, `5000000`, `1000`, 1)) // shorter than the batch timeout
	s.next()
	quickest := time.Hour
	for id := range 3 { // a busy machine may hold up any of them
		begun := time.Now()
		s.send(`{"type":"begin","id":%d,"client":40,"sequence":%d,"attempt":1}`, id, id)
		if m := s.next(); m["outcome"] != "timeout" {
			t.Errorf("got %v", m)
		}
		quickest = min(quickest, time.Since(begun))
	}
	if quickest > 3*time.Second {
		t.Errorf("the quickest of three timeouts of 1 ms came after %v", quickest)
	}
	s.in.Close()
	<-s.done
}
