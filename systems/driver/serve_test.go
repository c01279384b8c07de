package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
)

// fake is a Transactor. The test decides what its transactions do.
type fake struct {
	transact func(context.Context, driver.Attempt) error
	refuse   error
	hello    driver.Hello
	called   atomic.Int64
	closed   bool
}

func (f *fake) Connect(_ context.Context, hello driver.Hello) error {
	f.hello = hello
	return f.refuse
}

func (f *fake) Transact(ctx context.Context, a driver.Attempt) error {
	f.called.Add(1)
	return f.transact(ctx, a)
}

func (f *fake) Close() map[string]int64 {
	f.closed = true
	return map[string]int64{"called": f.called.Load()}
}

var hello = driver.Hello{FirstClient: 40, Clients: 2, Seed: 9, RequestTimeout: 5 * time.Second}

func TestASession(t *testing.T) {
	f := &fake{transact: func(_ context.Context, a driver.Attempt) error {
		if a.Number != 1 {
			return fmt.Errorf("attempt %d", a.Number)
		}
		return nil
	}}
	s := drivertest.Start(t, driver.Clients(f))
	s.Hello(hello)
	if f.hello != hello {
		t.Errorf("the system hears %+v, want %+v", f.hello, hello)
	}
	for id := range uint64(20) {
		if l := s.Transact(id, 40+int64(id%2), id/2); l.Outcome != "commit" {
			t.Errorf("got %+v, want a commit", l)
		}
	}
	if counters := s.Bye(); counters["called"] != 20 || !f.closed {
		t.Errorf("counters %v, closed: %v; want 20 calls", counters, f.closed)
	}
}

func TestOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		err             error
		outcome, detail string
	}{
		"a commit":           {nil, "commit", ""},
		"an abort":           {driver.ErrAborted, "abort", ""},
		"an abort, and why":  {fmt.Errorf("%w by another transaction", driver.ErrAborted), "abort", "aborted by another transaction"},
		"a timeout":          {driver.ErrTimeout, "timeout", ""},
		"a server's timeout": {fmt.Errorf("a replica is silent: %w", driver.ErrTimeout), "timeout", "a replica is silent: timeout"},
		"another error":      {errors.New("no such table"), "error", "no such table"},
	} {
		t.Run(name, func(t *testing.T) {
			s := drivertest.Start(t, driver.Clients(&fake{transact: func(context.Context, driver.Attempt) error { return tc.err }}))
			s.Hello(hello)
			if l := s.Transact(1, 41, 0); l.Outcome != tc.outcome || l.Detail != tc.detail {
				t.Errorf("got %+v, want %s with the detail %q", l, tc.outcome, tc.detail)
			}
			s.Bye()
		})
	}
}

// hang waits until the attempt is over, like a client of a silent server.
func hang(ctx context.Context, _ driver.Attempt) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAnAttemptEndsAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := drivertest.Start(t, driver.Clients(&fake{transact: hang}))
		s.Hello(hello)
		began := time.Now()
		if l := s.Transact(1, 40, 0); l.Outcome != "timeout" || time.Since(began) != hello.RequestTimeout {
			t.Errorf("got %+v after %v, want a timeout after %v", l, time.Since(began), hello.RequestTimeout)
		}
		if err := s.End(); err != nil {
			t.Error(err)
		}
	})
}

// The load generator begins a client's next transaction when it has given up the last one. The
// driver then reports no end for the last one, even if its answer comes.
func TestTheNextAttemptAbandonsTheLast(t *testing.T) {
	f := &fake{transact: func(ctx context.Context, a driver.Attempt) error {
		if a.Sequence == 0 {
			<-ctx.Done()
		}
		return nil
	}}
	s := drivertest.Start(t, driver.Clients(f))
	s.Hello(hello)
	s.Begin(1, 40, 0)
	if l := s.Transact(2, 40, 1); l.Outcome != "commit" {
		t.Errorf("got %+v, want the commit of 2", l)
	}
	if counters := s.Bye(); counters["called"] != 2 {
		t.Errorf("counters %v, want 2 calls", counters)
	}
}

// A client that hangs delays no other client, and bye abandons it.
func TestClientsDoNotWaitForEachOther(t *testing.T) {
	f := &fake{transact: func(ctx context.Context, a driver.Attempt) error {
		if a.Client == 40 {
			return hang(ctx, a)
		}
		return nil
	}}
	s := drivertest.Start(t, driver.Clients(f))
	s.Hello(hello)
	s.Begin(1, 40, 0)
	for id := range uint64(10) {
		s.Transact(2+id, 41, id)
	}
	if counters := s.Bye(); counters["called"] != 11 {
		t.Errorf("counters %v, want 11 calls", counters)
	}
}

func TestTheEndOfInputIsTheEnd(t *testing.T) {
	f := &fake{transact: hang}
	s := drivertest.Start(t, driver.Clients(f))
	s.Hello(hello)
	s.Begin(1, 40, 0)
	if err := s.End(); err != nil || !f.closed {
		t.Errorf("closed: %v, error: %v", f.closed, err)
	}
}

func TestRefusals(t *testing.T) {
	const greeting = `{"type":"hello","version":1,"firstClient":40,"clients":2,"seed":9,"requestTimeoutMicros":5000000}`
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"another version":  {[]string{strings.Replace(greeting, `"version":1`, `"version":2`, 1)}, "version 2"},
		"no clients":       {[]string{strings.Replace(greeting, `"clients":2`, `"clients":0`, 1)}, "0 clients"},
		"a negative index": {[]string{strings.Replace(greeting, `40`, `-1`, 1)}, "from -1"},
		"no timeout":       {[]string{strings.Replace(greeting, `5000000`, `0`, 1)}, "requestTimeoutMicros is 0"},
		"begin first":      {[]string{`{"type":"begin","id":1}`}, `"begin"`},
		"a foreign client": {[]string{greeting, `{"type":"begin","id":1,"client":42}`}, "client 42"},
		"a client before":  {[]string{greeting, `{"type":"begin","id":1,"client":39}`}, "client 39"},
		"no JSON":          {[]string{"hello"}, "malformed"},
		"hello twice":      {[]string{greeting, greeting}, `"hello"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := drivertest.Start(t, driver.Clients(&fake{}))
			for i, line := range tc.lines {
				s.Send("%s", line)
				if i < len(tc.lines)-1 {
					s.Next()
				}
			}
			if said := s.Refused(); !strings.Contains(said, tc.want) {
				t.Errorf("got %q, want an error about %q", said, tc.want)
			}
		})
	}
}

func TestASystemThatIsNotThere(t *testing.T) {
	f := &fake{refuse: errors.New("connection refused")}
	s := drivertest.Start(t, driver.Clients(f))
	s.Greet(hello)
	if said := s.Refused(); said != "connection refused" || !f.closed {
		t.Errorf("got %q, closed: %v", said, f.closed)
	}
}

// broken is a load generator that is gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestALoadGeneratorThatIsGone(t *testing.T) {
	in := strings.NewReader(`{"type":"hello","version":1,"clients":1,"requestTimeoutMicros":5000}` + "\n" + `{"type":"bye"}`)
	err := driver.Serve(t.Context(), in, broken{}, driver.Clients(&fake{}))
	if err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("got %v, want an error about the broken pipe", err)
	}
}
