package loadgen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// memory is a driver whose requests take a while. A function of the request gives the outcome.
type memory struct {
	takes   time.Duration
	outcome func(Request) Outcome
	err     error // of Close
	died    atomic.Pointer[error]

	mu          sync.Mutex
	outstanding int
	most        int
	closed      chan struct{}
}

func newMemory(takes time.Duration, outcome func(Request) Outcome) *memory {
	return &memory{takes: takes, outcome: outcome, closed: make(chan struct{})}
}

func (m *memory) Session(int32) (Session, error) { return m, nil }

func (m *memory) Err() error {
	if err := m.died.Load(); err != nil {
		return *err
	}
	return nil
}

func (m *memory) Close() (map[string]int64, error) {
	close(m.closed)
	return map[string]int64{"requests": 1}, m.err
}

func (m *memory) Do(r Request) Result {
	m.mu.Lock()
	m.outstanding++
	m.most = max(m.most, m.outstanding)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.outstanding--
		m.mu.Unlock()
	}()
	select {
	case <-time.After(m.takes):
		return Result{Outcome: m.outcome(r)}
	case <-m.closed:
		return Result{Outcome: Error, Detail: "closed"}
	}
}

func commit(Request) Outcome { return Commit }

func closedConfig() Config {
	return Config{Clients: 4, Loop: LoopClosed, Timeout: Duration(time.Minute), Seed: 1,
		Windows: Windows{WarmUp: Duration(50 * ms), Measure: Duration(300 * ms), CoolDown: Duration(50 * ms), Drain: Duration(time.Second)},
		Driver:  DriverConfig{Protocol: ProtocolEcho, Address: "unused:1"}}
}

// virtual is the clock of a synctest bubble. In a bubble, work takes no time unless it sleeps. So
// counts and instants are exact on a busy machine, too.
func virtual() clock {
	return clock{monotonic: func() int64 { return time.Now().UnixNano() }, newAlarm: func() (sleeper, error) { return virtualAlarm{}, nil }}
}

type virtualAlarm struct{}

func (virtualAlarm) sleep(d time.Duration) error { time.Sleep(d); return nil }

func (virtualAlarm) close() {}

// runTest runs in a bubble.
func runTest(t *testing.T, cfg Config, d Driver) (results.Client, string) {
	t.Helper()
	var log bytes.Buffer
	c, err := runBy(context.Background(), virtual(), cfg, Drivers{Correct: d}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := results.EncodeClient(c); err != nil {
		t.Fatalf("the results cannot be encoded: %v", err)
	}
	return c, log.String()
}

func summary(t *testing.T, c results.Client) results.Summary {
	t.Helper()
	m, err := results.Merge([]results.Client{c})
	if err != nil {
		t.Fatal(err)
	}
	return m.Summary
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(5*ms, commit)
		c, _ := runTest(t, closedConfig(), d)
		s := summary(t, c)
		total := int64(0)
		for _, n := range c.Timeline.Committed {
			total += n
		}
		// 4 clients with 5 ms each commit 240 in 300 ms. From the warm-up to the end of the
		// cool-down, in 400 ms, they commit 320, of which the last four end too late.
		if s.Committed != 240 || total != 316 || d.most != 4 {
			t.Errorf("committed %d, in the timeline %d, at most %d outstanding; want 240, 316 and 4", s.Committed, total, d.most)
		}
		if s.P50Millis < 5 || s.P50Millis > 5.01 || s.Throughput != 800 {
			t.Errorf("p50 %v ms, throughput %v; want 5 and 800", s.P50Millis, s.Throughput)
		}
		if c.StartedNanos != 0 || c.Driver["requests"] != 1 || c.SendLag != "" || c.Failure != "" {
			t.Errorf("started %d ns after the release, driver %v, send lag %q, failure %q", c.StartedNanos, c.Driver, c.SendLag, c.Failure)
		}
		if c.Timeline.FirstMillis != -100 || len(c.Timeline.Committed) != 5 {
			t.Errorf("the timeline has %d bins from %d ms; want 5 bins from -100 ms", len(c.Timeline.Committed), c.Timeline.FirstMillis)
		}
	})
}

// A client that thinks sends at most one request in each think time, and no latency includes its
// thinking.
func TestThinkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := closedConfig()
		cfg.ThinkTime = Duration(30 * ms)
		c, _ := runTest(t, cfg, newMemory(5*ms, commit))
		// 4 clients in 300 ms at 35 ms each: 8 or 9 for each client, depending on its random phase.
		if s := summary(t, c); s.Committed < 32 || s.Committed > 36 || s.P50Millis < 5 || s.P50Millis > 5.01 {
			t.Errorf("committed %d, p50 %v ms; want 32 to 36, and 5 ms without the 30 ms of thinking", s.Committed, s.P50Millis)
		}
	})
}

func TestOpenLoopBoundsOutstandingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := closedConfig()
		cfg.Loop, cfg.Rate, cfg.Arrivals, cfg.Timeout = LoopOpen, 1000, ArrivalsConstant, Duration(100*ms)
		d := newMemory(40*ms, commit) // 4 clients commit 100 per second: a tenth of the rate
		c, _ := runTest(t, cfg, d)
		n := c.Counters
		if n.Offered != 300 || d.most != 4 {
			t.Errorf("offered %d, at most %d outstanding; want the 300 that were intended in the window, and 4", n.Offered, d.most)
		}
		if sent := n.Offered - n.Unsent; sent < 28 || sent > 32 {
			t.Errorf("%d of %d were sent, want some 30", sent, n.Offered)
		}
		lag, err := results.DecodeHistogram(c.SendLag)
		if err != nil {
			t.Fatal(err)
		}
		if lag.Count() != n.Offered-n.Unsent || n.LateSends != lag.Count() {
			t.Errorf("%d send lags, %d late; want one for each of the %d sent, all late", lag.Count(), n.LateSends, n.Offered-n.Unsent)
		}
		// Requests wait for a client until they time out, after 100 ms. The latency includes that
		// wait.
		if s := summary(t, c); s.P50Millis < 100 || s.P50Millis > 141 {
			t.Errorf("p50 is %v ms, want 100 ms of waiting and 40 ms of service at most", s.P50Millis)
		}
	})
}

// If clients are free in time, every lag is the generator's own. If they are busy all the time, no
// lag is, however late requests are.
func TestLagOfABusyClientIsNotTheGenerators(t *testing.T) {
	for name, tc := range map[string]struct {
		rate     float64
		service  time.Duration
		own, all int64
	}{
		"free": {rate: 100, service: 0, own: 30, all: 30},
		// The first request of each client is in the warm-up. The 50th arrival is the first of the
		// window, and 12 others of the same client come before it. By the end of the drain 140 are
		// sent.
		"busy": {rate: 1000, service: 40 * ms, own: 0, all: 90},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := closedConfig()
				cfg.Loop, cfg.Rate, cfg.Arrivals = LoopOpen, tc.rate, ArrivalsConstant
				c, _ := runTest(t, cfg, newMemory(tc.service, commit))
				own, err := results.DecodeHistogram(c.GeneratorLag)
				if err != nil {
					t.Fatal(err)
				}
				all, err := results.DecodeHistogram(c.SendLag)
				if err != nil {
					t.Fatal(err)
				}
				if own.Count() != tc.own || all.Count() < tc.all || all.Count() > tc.all+1 {
					t.Errorf("of %d lags %d are the generator's own, want %d of %d", all.Count(), own.Count(), tc.own, tc.all)
				}
				if own.Max() > time.Microsecond { // the least value of the histogram
					t.Errorf("the generator is %v late, on a clock that does not pass while it works", own.Max())
				}
			})
		})
	}
}

func TestRetriesAndFailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := closedConfig()
		cfg.Retry = Retry{Attempts: 3, Backoff: Duration(ms), MaxBackoff: Duration(2 * ms)}
		c, log := runTest(t, cfg, newMemory(ms, func(r Request) Outcome {
			switch {
			case r.Sequence%3 == 1:
				return Abort // three times, and then the client gives up
			case r.Sequence%3 == 2:
				return Error
			}
			return Commit
		}))
		n := c.Counters
		if n.Timeouts != 0 {
			t.Errorf("%d timeouts, want none", n.Timeouts)
		}
		// At both ends of the window, the attempts of a transaction may be on either side.
		if d := n.Aborted - 3*n.GivenUp; d < -12 || d > 12 {
			t.Errorf("%d aborts for %d given up after three attempts", n.Aborted, n.GivenUp)
		}
		// A round of three takes 1 ms, 3 ms with waits of 1 to 2 ms between them, and 1 ms with a
		// wait of milliseconds.
		if n.Committed < 30 || n.GivenUp < n.Committed-4 || n.GivenUp > n.Committed+4 || n.Errors < n.Committed-4 || n.Errors > n.Committed+4 {
			t.Errorf("committed %d, given up %d, errors %d; want as many of each, but for what is at the ends", n.Committed, n.GivenUp, n.Errors)
		}
		if got := strings.Count(log, "Request failed"); got != maxFailuresLogged || !strings.Contains(log, "outcome=error") {
			t.Errorf("%d failures are logged, want %d:\n%s", got, maxFailuresLogged, log)
		}
	})
}

func TestRequestsWithoutReplyEndWithTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := closedConfig()
		cfg.Windows.Drain = Duration(50 * ms)
		began := time.Now()
		c, _ := runTest(t, cfg, newMemory(time.Hour, commit))
		if took, want := time.Since(began), 450*ms+standaloneLead; took != want {
			t.Errorf("the run took %v, want warm-up, window, cool-down, drain and what is before: %v", took, want)
		}
		if n := c.Counters; n.Committed+n.Errors+n.Timeouts != 0 {
			t.Errorf("counters %+v; nothing ended in the window", n)
		}
	})
}

func TestDriverFailureMarksTheResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(ms, commit)
		d.err = errors.New("it died: " + strings.Repeat("x", 2*results.MaxFailureText))
		c, _ := runTest(t, closedConfig(), d)
		if !strings.HasPrefix(c.Failure, "it died: ") || c.Counters.Committed != 1200 {
			t.Errorf("failure %q, committed %d; want the reason, and the 1200 that were measured", c.Failure, c.Counters.Committed)
		}
	})
}

func TestRunStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := closedConfig()
		cfg.Windows.Measure = Duration(time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
		defer cancel()
		began := time.Now()
		d := newMemory(time.Hour, commit)
		_, err := runBy(ctx, virtual(), cfg, Drivers{Correct: d}, slog.New(slog.DiscardHandler))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want that of the context", err)
		}
		if took := time.Since(began); took != 100*ms {
			t.Errorf("it stopped after %v, want 100ms", took)
		}
		<-d.closed
		time.Sleep(time.Second) // clients that waited before another attempt now see that the run is over
	})
}

func TestProgress(t *testing.T) {
	cfg := closedConfig()
	cfg.Windows.Measure = Duration(1300 * ms)
	cfg.Files.Progress = filepath.Join(t.TempDir(), "progress.json")
	synctest.Test(t, func(t *testing.T) {
		runTest(t, cfg, newMemory(10*ms, commit))
		b, err := os.ReadFile(cfg.Files.Progress)
		var p protocol.Progress
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		// The progress is written once, a second after the run began. That is 980 ms after the
		// first requests, when four more requests end.
		if err != nil || p.Committed < 388 || p.Committed > 392 || p.PerSecond != p.Committed {
			t.Errorf("progress %s (%v), want the 388 to 392 that 4 clients commit until then", b, err)
		}
	})
}

// release makes the start file as the agent does.
func release(t *testing.T, path string, s protocol.StartSignal) {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, b); err != nil {
		t.Fatal(err)
	}
}

func TestBarrier(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := closedConfig()
		cfg.Clients = 1
		cfg.Files = Files{Ready: filepath.Join(dir, "ready"), Start: filepath.Join(dir, "start")}
		d := newMemory(ms, commit)
		var firstAt, zero atomic.Int64
		d.outcome = func(r Request) Outcome {
			if r.Sequence == 0 {
				firstAt.Store(virtual().monotonic())
			}
			return Commit
		}
		go func() {
			for {
				if _, err := os.Stat(cfg.Files.Ready); err == nil {
					break
				}
				time.Sleep(ms)
			}
			zero.Store(virtual().monotonic() + int64(300*ms))
			release(t, cfg.Files.Start, protocol.StartSignal{ZeroMonotonicNanos: zero.Load(),
				Windows: timeline.Windows{WarmUp: 100 * ms, Measure: 200 * ms, Drain: time.Second}})
		}()
		c, _ := runTest(t, cfg, d)
		// The first request ended 1 ms after it was sent, 100 ms before t = 0.
		if lag := time.Duration(firstAt.Load()-zero.Load()) + 100*ms; c.MeasureNanos != int64(200*ms) || c.StartedNanos != 0 || lag != ms {
			t.Errorf("window %v, started %v after the release, the first request ended %v after it; want the window of the start file, 0s and 1 ms",
				time.Duration(c.MeasureNanos), time.Duration(c.StartedNanos), lag)
		}
	})
}

func TestBarrierRefuses(t *testing.T) {
	past := `{"zeroMonotonicNanos":1,"measure":1000000000}`
	died := errors.New("the driver died")
	tests := map[string]struct {
		start string // content of the start file; empty: there is none
		died  error
		want  string
	}{
		"no JSON":            {"now", nil, "must appear as a whole"},
		"no instant":         {`{"measure":1000000000}`, nil, "does not say zeroMonotonicNanos"},
		"no window":          {`{"zeroMonotonicNanos":5}`, nil, "windows.measure is 0s"},
		"a run in the past":  {past, nil, "the run was over"},
		"a driver that dies": {"", died, "the driver died"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := closedConfig()
			cfg.Files.Start = filepath.Join(t.TempDir(), "start")
			if tc.start != "" {
				if err := os.WriteFile(cfg.Files.Start, []byte(tc.start), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d := newMemory(ms, commit)
			if tc.died != nil {
				d.died.Store(&tc.died)
			}
			_, err := Run(context.Background(), cfg, Drivers{Correct: d}, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
			<-d.closed
		})
	}
}

func TestAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	// The worst lateness depends on the machine, see BenchmarkAlarm.
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 2 * ms, 30 * ms} {
		began := time.Now()
		if err := a.sleep(d); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < d {
			t.Errorf("sleep(%v) took %v", d, took)
		}
	}
	const hour = int64(time.Hour)
	earlier := MonotonicNanos()
	now := int64(systemClock().at(earlier - hour)())
	if most := MonotonicNanos() - earlier + hour + int64(time.Second); now < hour || now > most {
		t.Errorf("a clock whose zero was an hour before %v says %v, want at most %v", earlier, now, most)
	}
}

// BenchmarkAlarm reports how late an alarm of a millisecond is: the median and the 99th percentile,
// in us.
func BenchmarkAlarm(b *testing.B) {
	a, err := newAlarm()
	if err != nil {
		b.Fatal(err)
	}
	defer a.close()
	late := results.NewHistogram()
	for b.Loop() {
		began := time.Now()
		if err := a.sleep(ms); err != nil {
			b.Fatal(err)
		}
		late.Record(time.Since(began) - ms)
	}
	b.ReportMetric(float64(late.Percentile(50).Microseconds()), "us-late-p50")
	b.ReportMetric(float64(late.Percentile(99).Microseconds()), "us-late-p99")
}
