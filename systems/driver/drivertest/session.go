// Package drivertest plays the load generator for a driver in a test.
package drivertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"assay.dev/assay/systems/driver"
)

// Line that a driver wrote.
type Line struct {
	Type     string           `json:"type"`
	ID       uint64           `json:"id"`
	Outcome  string           `json:"outcome"`
	Detail   string           `json:"detail"`
	Message  string           `json:"message"`
	Counters map[string]int64 `json:"counters"`
}

// Session is a conversation with a driver. Its methods end the test when the conversation breaks.
type Session struct {
	t    testing.TB
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan error
}

// Start serves the system until the session ends. The session ends with the test, or earlier.
func Start(t testing.TB, system driver.System) *Session {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	s := &Session{t: t, in: inWrite, out: bufio.NewScanner(outRead), done: make(chan error, 1)}
	go func() {
		s.done <- driver.Serve(t.Context(), inRead, outWrite, system)
		inRead.Close() // Send fails from now on
		outWrite.Close()
	}()
	t.Cleanup(func() {
		inWrite.Close()
		outRead.Close()
	})
	return s
}

// Send sends a line.
func (s *Session) Send(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatalf("the driver reads no more: %v", err)
	}
}

// Next is the driver's next line.
func (s *Session) Next() Line {
	s.t.Helper()
	if !s.out.Scan() {
		s.t.Fatalf("the driver says nothing more: %v", s.out.Err())
	}
	var l Line
	if err := json.Unmarshal(s.out.Bytes(), &l); err != nil {
		s.t.Fatalf("%q: %v", s.out.Text(), err)
	}
	return l
}

// Hello sends the hello to the driver and waits until it is ready.
func (s *Session) Hello(hello driver.Hello) {
	s.t.Helper()
	s.Greet(hello)
	if l := s.Next(); l.Type != "ready" {
		s.t.Fatalf("got %+v, want ready", l)
	}
}

// Greet sends the hello to the driver.
func (s *Session) Greet(hello driver.Hello) {
	s.t.Helper()
	s.Send(`{"type":"hello","version":1,"firstClient":%d,"clients":%d,"seed":%d,"requestTimeoutMicros":%d}`,
		hello.FirstClient, hello.Clients, hello.Seed, hello.RequestTimeout/time.Microsecond)
}

// Begin begins a client's transaction. The line with its end has the same id.
func (s *Session) Begin(id uint64, client int64, sequence uint64) {
	s.t.Helper()
	s.Send(`{"type":"begin","id":%d,"client":%d,"sequence":%d,"attempt":1}`, id, client, sequence)
}

// Transact carries out a client's transaction, while no other one runs.
func (s *Session) Transact(id uint64, client int64, sequence uint64) Line {
	s.t.Helper()
	s.Begin(id, client, sequence)
	l := s.Next()
	if l.Type != "end" || l.ID != id {
		s.t.Fatalf("got %+v, want the end of %d", l, id)
	}
	return l
}

// Bye ends the session and returns the driver's counters.
func (s *Session) Bye() map[string]int64 {
	s.t.Helper()
	s.Send(`{"type":"bye"}`)
	l := s.Next()
	if l.Type != "stats" {
		s.t.Fatalf("got %+v, want stats", l)
	}
	if err := s.End(); err != nil {
		s.t.Error(err)
	}
	return l.Counters
}

// End closes the input and returns the result of Serve. The driver may write no more lines.
func (s *Session) End() error {
	s.t.Helper()
	s.in.Close()
	if s.out.Scan() {
		s.t.Errorf("the driver goes on with %q", s.out.Text())
	}
	return <-s.done
}

// Refused reads the driver's error and returns its message.
func (s *Session) Refused() string {
	s.t.Helper()
	l := s.Next()
	if l.Type != "error" {
		s.t.Fatalf("got %+v, want an error", l)
	}
	if err := s.End(); err == nil {
		s.t.Error("the session ended without an error")
	}
	return l.Message
}
