package client_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"assay.dev/assay/systems/etcd/internal/client"
	"assay.dev/assay/systems/etcd/internal/fakekv"
	"assay.dev/assay/systems/etcd/internal/member"
)

func says(code codes.Code) fakekv.Answer {
	return func(context.Context, bool) error { return status.Error(code, "etcdserver: no") }
}

// start serves members, each with its own behaviour; nil is a member without a server. A test of
// the program shows the behaviour of a real etcd.
func start(t *testing.T, members []fakekv.Answer) []string {
	t.Helper()
	var addresses []string
	for _, answer := range members {
		if answer != nil {
			addresses = append(addresses, fakekv.Start(t, answer))
			continue
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		l.Close()
	}
	return addresses
}

type counts struct{ Attempts, TimedOut, Failed, Exhausted int64 }

func read(c *client.Counters) counts {
	return counts{c.Attempts.Load(), c.TimedOut.Load(), c.Failed.Load(), c.Exhausted.Load()}
}

func put(ctx context.Context, m *member.Member) error {
	return m.Put(ctx, member.Pair{Key: []byte("k"), Value: []byte("v")})
}

func TestDo(t *testing.T) {
	answers, hangs, noLeader, invalid := fakekv.Answer(fakekv.Good), fakekv.Answer(fakekv.Hang), says(codes.Unavailable), says(codes.InvalidArgument)
	for name, tc := range map[string]struct {
		members []fakekv.Answer
		index   int
		times   int // operations, one after the other
		want    counts
		refused bool
	}{
		"stays with one that answers":     {[]fakekv.Answer{answers, hangs}, 0, 3, counts{Attempts: 3}, false},
		"begins with its own":             {[]fakekv.Answer{hangs, answers}, 3, 2, counts{Attempts: 2}, false},
		"leaves one that is silent":       {[]fakekv.Answer{hangs, answers}, 0, 3, counts{Attempts: 4, TimedOut: 1}, false},
		"leaves one that has no leader":   {[]fakekv.Answer{noLeader, answers}, 0, 3, counts{Attempts: 4, Failed: 1}, false},
		"leaves one that is not there":    {[]fakekv.Answer{nil, answers}, 0, 3, counts{Attempts: 4, Failed: 1}, false},
		"goes round":                      {[]fakekv.Answer{answers, nil, noLeader}, 1, 1, counts{Attempts: 3, Failed: 2}, false},
		"does not repeat what is invalid": {[]fakekv.Answer{invalid, answers}, 0, 1, counts{Attempts: 1, Failed: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			attempt := time.Minute // an answer may take long on a busy machine, and must not count as missing
			if tc.want.TimedOut > 0 {
				attempt = 5 * time.Second
			}
			var counters client.Counters
			c, err := client.New(client.Options{Members: start(t, tc.members), Index: tc.index, Attempt: attempt, Counters: &counters})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range tc.times {
				if err := c.Do(t.Context(), put); (err != nil) != tc.refused || tc.refused && !member.Final(err) {
					t.Errorf("error %v, want a refusal: %v", err, tc.refused)
				}
			}
			if diff := cmp.Diff(tc.want, read(&counters)); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
		})
	}
}

// While no member answers, the client asks all again and again, with pauses, until the operation's
// own time is up.
func TestDoUntilTheEnd(t *testing.T) {
	var counters client.Counters
	c, err := client.New(client.Options{Members: start(t, []fakekv.Answer{nil, nil}), Attempt: time.Minute, Counters: &counters})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// On a busy machine one round may take as long as 30 rounds elsewhere.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := c.Do(ctx, put); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that time is up", err)
	}
	// 3 s have room for 300 rounds with a pause of 10 ms after each.
	if got := read(&counters); got.Exhausted < 1 || got.Exhausted > 301 || got.Attempts > 2*got.Exhausted+2 || got.TimedOut > 1 {
		t.Errorf("counters %+v", got)
	}
}

// A client whose operations have less time than an attempt leaves a silent member, too.
func TestShortOperations(t *testing.T) {
	var counters client.Counters
	c, err := client.New(client.Options{Members: start(t, []fakekv.Answer{fakekv.Hang, fakekv.Good}), Attempt: time.Minute, Counters: &counters})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.Do(ctx, put); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that time is up", err)
	}
	if err := c.Do(t.Context(), put); err != nil {
		t.Errorf("the next operation: %v", err)
	}
	if diff := cmp.Diff(counts{Attempts: 2, TimedOut: 1}, read(&counters)); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestNew(t *testing.T) {
	for _, members := range [][]string{nil, {"http://a:1", "b:2"}} {
		if _, err := client.New(client.Options{Members: members, Attempt: time.Second, Counters: &client.Counters{}}); err == nil {
			t.Errorf("%v: no error", members)
		}
	}
}
