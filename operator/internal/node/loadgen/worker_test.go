package loadgen

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// step is one attempt of a script: how long it takes on the test's clock, and how it ends.
type step struct {
	takes   time.Duration
	outcome Outcome
}

// script is a session that follows a script. Only the script moves the test's clock.
type script struct {
	now   time.Duration
	steps []step // the last one repeats
	asked []Request
}

func (s *script) Do(r Request) Result {
	at := min(len(s.asked), len(s.steps)-1)
	s.asked = append(s.asked, r)
	s.now += s.steps[at].takes
	return Result{Outcome: s.steps[at].outcome}
}

// clientOn returns a client of a run with a 20 ms warm-up, a 100 ms window and a 20 ms cool-down,
// on the script's clock.
func clientOn(s *script, retry Retry) *client {
	w := timeline.Windows{WarmUp: 20 * ms, Measure: 100 * ms, CoolDown: 20 * ms}
	s.now = -20 * ms
	r := &run{cfg: Config{Retry: retry}, clock: systemClock(), timeout: 50 * ms, last: w.LastRequest(), measure: w.Measure,
		now: func() time.Duration { return s.now }, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	return &client{run: r, session: s, rng: rand.New(rand.NewPCG(1, 1)), ticket: make(chan time.Duration, 1),
		shard: &shard{rec: results.NewRecorder(w), sendLag: results.NewHistogram(), generatorLag: results.NewHistogram()}}
}

func TestClosedLoopBoundaries(t *testing.T) {
	tests := map[string]struct {
		steps        []step
		want         results.Counters
		wantRequests int // in the whole run
	}{
		// Sent at -20, -10, ... 110; ended at -10 ... 120. The one that ends at 100 ms is outside
		// of the window, and the one that ends at 0 inside.
		"even":                  {[]step{{10 * ms, Commit}}, results.Counters{Offered: 10, Committed: 10}, 14},
		"1 ns before the ends":  {[]step{{10*ms - 1, Commit}, {10 * ms, Commit}}, results.Counters{Offered: 10, Committed: 10}, 15},
		"nothing ends in it":    {[]step{{20*ms - 1, Commit}, {110 * ms, Timeout}}, results.Counters{}, 3},
		"sent before, ends in":  {[]step{{30 * ms, Commit}, {110 * ms, Timeout}}, results.Counters{Offered: 1, Committed: 1}, 2},
		"sent in, ends in":      {[]step{{20 * ms, Commit}, {49 * ms, Commit}, {200 * ms, Timeout}}, results.Counters{Offered: 2, Committed: 2}, 3},
		"just in time":          {[]step{{50 * ms, Commit}, {200 * ms, Timeout}}, results.Counters{Offered: 1, Committed: 1}, 2},
		"1 ns later: timed out": {[]step{{50*ms + 1, Commit}, {200 * ms, Timeout}}, results.Counters{Offered: 1, Timeouts: 1}, 2},
		"late abort":            {[]step{{50*ms + 1, Abort}, {200 * ms, Timeout}}, results.Counters{Offered: 1, Timeouts: 1}, 2},
		"late error":            {[]step{{60 * ms, Timeout}, {20 * ms, Commit}, {200 * ms, Timeout}}, results.Counters{Offered: 2, Committed: 1, Timeouts: 1}, 3},
		"longer than the run":   {[]step{{time.Hour, Timeout}}, results.Counters{}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &script{steps: tc.steps}
			c := clientOn(s, Retry{})
			c.closedLoop()
			got := c.shard.rec.Counters
			got.Offered, got.Retries = c.offered, c.retries
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
			if len(s.asked) != tc.wantRequests {
				t.Errorf("%d requests, want %d", len(s.asked), tc.wantRequests)
			}
			if c.first != -20*ms {
				t.Errorf("the first was sent at %v, want the start of the warm-up", c.first)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	tests := map[string]struct {
		retry  Retry
		steps  []step
		want   results.Counters
		asked  []Request
		wantMs int64 // latency of the committed ones
	}{
		"until it commits": {
			Retry{}, []step{{20 * ms, Commit}, {10 * ms, Abort}, {10 * ms, Abort}, {10 * ms, Commit}, {200 * ms, Timeout}},
			results.Counters{Offered: 2, Committed: 2, Aborted: 2, Retries: 2},
			[]Request{{0, 1}, {1, 1}, {1, 2}, {1, 3}, {2, 1}}, 20 + 30,
		},
		"until it is given up": {
			Retry{Attempts: 2}, []step{{20 * ms, Commit}, {10 * ms, Abort}, {10 * ms, Abort}, {200 * ms, Timeout}},
			results.Counters{Offered: 2, Committed: 1, Aborted: 2, GivenUp: 1, Retries: 1},
			[]Request{{0, 1}, {1, 1}, {1, 2}, {2, 1}}, 20,
		},
		"no second attempt": {
			Retry{Attempts: 1}, []step{{20 * ms, Abort}, {200 * ms, Timeout}},
			results.Counters{Offered: 1, Aborted: 1, GivenUp: 1},
			[]Request{{0, 1}, {1, 1}}, 0,
		},
		"not after an error": {
			Retry{}, []step{{20 * ms, Commit}, {10 * ms, Abort}, {10 * ms, Error}, {200 * ms, Timeout}},
			results.Counters{Offered: 2, Committed: 1, Aborted: 1, Errors: 1, Retries: 1},
			[]Request{{0, 1}, {1, 1}, {1, 2}, {2, 1}}, 20,
		},
		"not after the last instant of sending": {
			Retry{}, []step{{140 * ms, Abort}}, results.Counters{}, []Request{{0, 1}}, 0,
		},
		"not while waiting for that instant": {
			Retry{Backoff: Duration(time.Hour), MaxBackoff: Duration(time.Hour)},
			[]step{{20 * ms, Commit}, {45 * ms, Commit}, {45 * ms, Abort}}, results.Counters{Offered: 2, Committed: 2, Aborted: 1},
			[]Request{{0, 1}, {1, 1}, {2, 1}}, 20 + 45,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &script{steps: tc.steps}
			c := clientOn(s, tc.retry)
			if tc.retry.Backoff > 0 { // waits take real time; one lasts until the last instant on the test's clock, too
				c.run.now = func() time.Duration {
					if len(s.asked) == len(tc.steps) {
						defer func() { s.now = c.run.last }()
					}
					return s.now
				}
			}
			c.closedLoop()
			got := c.shard.rec.Counters
			got.Offered, got.Retries = c.offered, c.retries
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			var out results.Client
			if err := c.shard.rec.Fill(&out); err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for _, micros := range out.Timeline.LatencySumMicros {
				sum += micros
			}
			if sum != tc.wantMs*1000 {
				t.Errorf("latencies add up to %d us, want %d ms: from the first attempt's issue to the commit", sum, tc.wantMs)
			}
		})
	}
}

// In an open loop the latency counts from the intended instant, even if the request is sent late.
func TestOpenLoopCountsFromTheIntendedInstant(t *testing.T) {
	// Requests at -20, 0, 20, ... 100 ms take 30 ms each. So each is sent 10 ms later than the one
	// before.
	s := &script{steps: []step{{30 * ms, Commit}}}
	c := clientOn(s, Retry{})
	unsent := 0
	a := newAgenda(c.run.now, &constantPacer{rate: 50}, -20*ms, c.run.last, time.Hour, 1, func(time.Duration) { unsent++ })
	c.openLoop(a)

	var sent []int64 // request n ends at 10 + 30 n, was intended at -20 + 20 n
	for n := range int64(7) {
		sent = append(sent, 30+10*n)
	}
	h := results.NewHistogram()
	inWindow := 0
	for n, latency := range sent {
		if at := -20 + 20*int64(n) + latency; at >= 0 && at < 100 {
			h.Record(time.Duration(latency) * ms)
			inWindow++
		}
	}
	var out results.Client
	if err := c.shard.rec.Fill(&out); err != nil {
		t.Fatal(err)
	}
	want, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if out.Latency != want || out.Counters.Committed != int64(inWindow) {
		t.Errorf("the latencies of %d committed are not those from the intended instants", out.Counters.Committed)
	}
	// The requests intended at 0, 20, 40, 60 and 80 ms are in the window. They are sent 10, 20, ...
	// 50 ms late.
	if c.offered != 5 || c.lateSends != 5 || unsent != 0 {
		t.Errorf("offered %d, late %d, unsent %d; want 5, 5, 0", c.offered, c.lateSends, unsent)
	}
	if lag := c.shard.sendLag; lag.Count() != 5 || lag.Max().Round(ms) != 50*ms {
		t.Errorf("%d send lags, the longest %v; want 5, 50ms", lag.Count(), lag.Max())
	}
	if own := c.shard.generatorLag; own.Count() != 0 {
		t.Errorf("%d lags are the generator's own; want none, since the client was never free in time", own.Count())
	}
}

// A run is given up while a client takes a request. The client does not send the request, and the
// run must count it as unsent.
func TestARequestTakenAsARunIsGivenUpCountsAsUnsent(t *testing.T) {
	c := clientOn(&script{steps: []step{{30 * ms, Commit}}}, Retry{})
	var unsent []time.Duration
	a := newAgenda(c.run.now, &constantPacer{rate: 50}, -20*ms, c.run.last, time.Hour, 1, func(at time.Duration) { unsent = append(unsent, at) })
	c.run.stopped.Store(true)
	c.openLoop(a)
	if len(unsent) != 1 || unsent[0] != -20*ms || c.offered != 0 {
		t.Errorf("unsent %v, %d offered by the client; want the one request that was taken, at -20ms, unsent", unsent, c.offered)
	}
}
