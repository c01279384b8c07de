package driver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"assay.dev/assay/systems/etcd/internal/driver"
	"assay.dev/assay/systems/etcd/internal/fakekv"
	"assay.dev/assay/systems/etcd/internal/workload"
)

// session is a driver with one member behind it, which is not etcd: the protocol is tested here.
// The program's test runs it against etcd.
type session struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan error
}

func start(t *testing.T, answer fakekv.Answer) *session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, in: inW, out: bufio.NewScanner(outR), done: make(chan error, 1)}
	d := &driver.Driver{
		Members: []string{fakekv.Start(t, answer)}, Attempt: 10 * time.Second, Workload: workload.Workload{Keys: 10, ValueSize: 8}, In: inR, Out: outW,
	}
	go func() {
		s.done <- d.Run(t.Context())
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
	s := start(t, fakekv.Good)
	s.send(hello)
	if m := s.next(); m["type"] != "ready" {
		t.Fatalf("got %v", m)
	}
	for id := range 20 {
		s.send(`{"type":"begin","id":%d,"client":%d,"sequence":%d,"attempt":1}`, id, 40+id%2, id/2)
		if m := s.next(); m["type"] != "end" || m["id"] != float64(id) || m["outcome"] != "commit" {
			t.Fatalf("got %v", m)
		}
	}
	s.send(`{"type":"bye"}`)
	m := s.next()
	// 20 puts and the first read of each client.
	if counters, _ := m["counters"].(map[string]any); m["type"] != "stats" || counters["puts"] != float64(20) || counters["attempts"] != float64(22) {
		t.Errorf("got %v", m)
	}
	if m := s.next(); m != nil {
		t.Errorf("%v follows the stats", m)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// A begin for a client whose last operation has not ended abandons that one, which then has no end,
// even when its answer comes.
func TestAbandoned(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	s := start(t, func(ctx context.Context, put bool) error {
		if put {
			arrived <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nil
	})
	s.send(hello)
	s.next()
	s.send(`{"type":"begin","id":1,"client":40,"sequence":0}`)
	<-arrived
	s.send(`{"type":"begin","id":2,"client":40,"sequence":1}`)
	<-arrived
	close(release)
	if m := s.next(); m["id"] != float64(2) || m["outcome"] != "commit" {
		t.Errorf("got %v, want the commit of 2", m)
	}
	s.send(`{"type":"bye"}`)
	m := s.next()
	if counters, _ := m["counters"].(map[string]any); m["type"] != "stats" || counters["puts"] != float64(1) {
		t.Errorf("got %v, want one put", m)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

func TestOutcomes(t *testing.T) {
	for want, answer := range map[string]fakekv.Answer{
		"error": func(context.Context, bool) error {
			return status.Error(codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded")
		},
		"timeout": fakekv.Hang,
	} {
		t.Run(want, func(t *testing.T) {
			s := start(t, func(ctx context.Context, put bool) error {
				if put {
					return answer(ctx, put)
				}
				return nil
			})
			micros := "200000"
			if want != "timeout" {
				micros = "60000000" // the answer may take long on a busy machine
			}
			s.send("%s", strings.Replace(hello, "5000000", micros, 1))
			s.next()
			s.send(`{"type":"begin","id":1,"client":41,"sequence":0}`)
			if m := s.next(); m["outcome"] != want || m["detail"] == nil {
				t.Errorf("got %v, want the outcome %s with a detail", m, want)
			}
			s.in.Close()
			if m := s.next(); m != nil {
				t.Errorf("got %v after the end of input", m)
			}
			if err := <-s.done; err != nil {
				t.Error(err)
			}
		})
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
			s := start(t, fakekv.Good)
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

// A cluster that says no is reported before ready.
func TestConnectFails(t *testing.T) {
	s := start(t, func(context.Context, bool) error {
		return status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	})
	s.send(hello)
	if m := s.next(); m["type"] != "error" || !strings.Contains(fmt.Sprint(m["message"]), "permission denied") {
		t.Errorf("got %v", m)
	}
	if err := <-s.done; err == nil {
		t.Error("Run returned no error")
	}
}
