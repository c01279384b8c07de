package driver

import (
	"errors"
	"testing"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
)

var hello = protocol.Hello{FirstClient: 3, Clients: 2, Seed: 9, RequestTimeout: time.Minute}

func TestSession(t *testing.T) {
	for name, tc := range map[string]struct {
		driver *Driver
		want   int64
	}{
		"sign":            {&Driver{Operation: "sign", Signatures: 1, Runs: 3}, 12},
		"aggregate check": {&Driver{Operation: "aggregate-check", Signatures: 4, Runs: 1}, 4},
		"nothing":         {&Driver{Operation: "nothing", Signatures: 1, Runs: 100}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := drivertest.Start(t, protocol.Clients(tc.driver))
			s.Hello(hello)
			for id := range uint64(4) {
				if got := s.Transact(id, 3+int64(id%2), id/2); got.Outcome != "commit" {
					t.Errorf("%+v, want a commit", got)
				}
			}
			if c := s.Bye(); c["runs"] != tc.want || c["wrong"] != 0 {
				t.Errorf("counters %v; want %d runs, none wrong", c, tc.want)
			}
		})
	}
}

// A wrong result is an error and ends the transaction.
func TestWrongResult(t *testing.T) {
	d := &Driver{Operation: "nothing", Signatures: 1, Runs: 10}
	s := drivertest.Start(t, protocol.Clients(d))
	s.Hello(hello)
	left := 3
	d.run = func() error {
		if left--; left == 0 {
			return errors.New("wrong")
		}
		return nil
	}
	if got := s.Transact(1, 3, 0); got.Outcome != "error" || got.Detail != "wrong" {
		t.Errorf("%+v, want an error", got)
	}
	if c := s.Bye(); c["runs"] != 3 || c["wrong"] != 1 {
		t.Errorf("counters %v; want 3 runs, one wrong", c)
	}
}

// A transaction whose time is up ends between two runs.
func TestTimeout(t *testing.T) {
	d := &Driver{Operation: "nothing", Signatures: 1, Runs: 1_000_000}
	s := drivertest.Start(t, protocol.Clients(d))
	short := hello
	short.RequestTimeout = 20 * time.Millisecond
	s.Hello(short)
	d.run = func() error { time.Sleep(time.Millisecond); return nil }
	if got := s.Transact(1, 3, 0); got.Outcome != "timeout" {
		t.Errorf("%+v, want a timeout", got)
	}
	s.Bye()
}

func TestUnknownOperation(t *testing.T) {
	s := drivertest.Start(t, protocol.Clients(&Driver{Operation: "encrypt", Signatures: 1, Runs: 1}))
	s.Greet(hello)
	if message := s.Refused(); message == "" {
		t.Error("the error says nothing")
	}
}
