package loadgen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stalltest"
	"assay.dev/assay/operator/internal/timeline"
)

// memory is a driver whose requests take a while and end as a function of the request says.
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
	// A busy machine may hold a request up for seconds, so that no shorter timeout than this is sure not to be reached.
	return Config{Clients: 4, Loop: LoopClosed, Timeout: Duration(time.Minute), Seed: 1,
		Windows: Windows{WarmUp: Duration(50 * ms), Measure: Duration(300 * ms), CoolDown: Duration(50 * ms), Drain: Duration(time.Second)},
		Driver:  DriverConfig{Protocol: ProtocolEcho, Address: "unused:1"}}
}

func runTest(t *testing.T, cfg Config, d Driver) (results.Client, string) {
	t.Helper()
	var log bytes.Buffer
	c, err := Run(context.Background(), cfg, Drivers{Correct: d}, slog.New(slog.NewTextHandler(&log, nil)))
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

// stall is how long a machine may stand still in a run of some hundred milliseconds whose counts are judged.
const stall = 20 * ms

func TestClosedLoop(t *testing.T) {
	stalltest.Try(t, stall, func() error { return closedLoop(t) })
}

func closedLoop(t *testing.T) error {
	t.Helper()
	d := newMemory(5*ms, commit)
	c, _ := runTest(t, closedConfig(), d)
	s := summary(t, c)
	total := int64(0)
	for _, n := range c.Timeline.Committed {
		total += n
	}
	if s.Committed < 24 || total <= s.Committed {
		return fmt.Errorf("committed %d, want some 240; the timeline has %d, want more", s.Committed, total)
	}
	// 4 clients with 5 ms each can do 240 in 300 ms; a busy machine does fewer, none can do more.
	if s.Committed > 244 || d.most != 4 {
		t.Errorf("committed %d, want some 240; at most %d outstanding, want 4", s.Committed, d.most)
	}
	if s.P50Millis < 5 || s.Throughput != float64(s.Committed)/0.3 {
		t.Errorf("p50 %v ms, throughput %v for %d committed in 300 ms", s.P50Millis, s.Throughput, s.Committed)
	}
	if c.StartedNanos < 0 || c.Driver["requests"] != 1 || c.SendLag != "" || c.Failure != "" {
		t.Errorf("started %d ns after the release, driver %v, send lag %q, failure %q", c.StartedNanos, c.Driver, c.SendLag, c.Failure)
	}
	if c.Timeline.FirstMillis != -100 || len(c.Timeline.Committed) != 5 {
		t.Errorf("the timeline has %d bins from %d ms; want 5 bins from -100 ms", len(c.Timeline.Committed), c.Timeline.FirstMillis)
	}
	return nil
}

// A client that thinks sends no more than one request in each think time, and its thinking is no latency.
func TestThinkTime(t *testing.T) {
	cfg := closedConfig()
	cfg.ThinkTime = Duration(30 * ms)
	stalltest.Try(t, stall, func() error {
		c, _ := runTest(t, cfg, newMemory(5*ms, commit))
		s := summary(t, c)
		// 4 clients in 300 ms, 35 ms each time: 34, and each may begin one more.
		if s.Committed > 40 {
			t.Errorf("committed %d, want some 34", s.Committed)
		}
		if s.Committed < 8 || s.P50Millis < 5 || s.P50Millis > 25 {
			return fmt.Errorf("committed %d, want some 34; p50 is %v ms, want about 5 without the 30 ms of thinking", s.Committed, s.P50Millis)
		}
		return nil
	})
}

func TestOpenLoopBoundsOutstandingRequests(t *testing.T) {
	cfg := closedConfig()
	cfg.Loop, cfg.Rate, cfg.Arrivals, cfg.Timeout = LoopOpen, 1000, ArrivalsConstant, Duration(100*ms)
	stalltest.Try(t, stall, func() error {
		d := newMemory(40*ms, commit) // 4 clients do 100 per second: a tenth of the rate
		c, _ := runTest(t, cfg, d)
		n := c.Counters
		if n.Offered != 300 {
			t.Errorf("offered %d, want the 300 that were intended in the window", n.Offered)
		}
		if d.most > 4 || n.Unsent < 200 {
			t.Errorf("at most %d outstanding, %d unsent; want 4, and most unsent", d.most, n.Unsent)
		}
		if n.Unsent >= 300 {
			return errors.New("nothing was sent in the window")
		}
		lag, err := results.DecodeHistogram(c.SendLag)
		if err != nil {
			t.Fatal(err)
		}
		if lag.Count() != n.Offered-n.Unsent {
			t.Errorf("%d send lags; want one for each of the %d sent", lag.Count(), n.Offered-n.Unsent)
		}
		if s := summary(t, c); n.LateSends == 0 || s.P50Millis < 40 {
			return fmt.Errorf("%d late, p50 is %v ms; it includes the time that requests waited for a client", n.LateSends, s.P50Millis)
		}
		return nil
	})
}

// Where clients are free in time every lag is the generator's own; where they are busy all the time none is, however late requests are.
func TestOnlyAFreeClientsLagIsTheGenerators(t *testing.T) {
	for name, tc := range map[string]struct {
		rate    float64
		service time.Duration
		own     func(own, all int64) bool
	}{
		"free": {rate: 100, service: 0, own: func(own, all int64) bool { return all == 30 && own >= all/2 }},
		"busy": {rate: 1000, service: 40 * ms, own: func(own, all int64) bool { return all > 0 && own <= 4 }}, // the first of each client, at most
	} {
		t.Run(name, func(t *testing.T) {
			cfg := closedConfig()
			cfg.Loop, cfg.Rate, cfg.Arrivals = LoopOpen, tc.rate, ArrivalsConstant
			stalltest.Try(t, stall, func() error {
				c, _ := runTest(t, cfg, newMemory(tc.service, commit))
				own, err := results.DecodeHistogram(c.GeneratorLag)
				if err != nil {
					t.Fatal(err)
				}
				all, err := results.DecodeHistogram(c.SendLag)
				if err != nil {
					t.Fatal(err)
				}
				if !tc.own(own.Count(), all.Count()) {
					return fmt.Errorf("of %d lags %d are the generator's own", all.Count(), own.Count())
				}
				return nil
			})
		})
	}
}

func TestRetriesAndFailuresAreCounted(t *testing.T) {
	cfg := closedConfig()
	cfg.Retry = Retry{Attempts: 3, Backoff: Duration(ms), MaxBackoff: Duration(2 * ms)}
	stalltest.Try(t, stall, func() error { return retriesAndFailures(t, cfg) })
}

func retriesAndFailures(t *testing.T, cfg Config) error {
	t.Helper()
	c, log := runTest(t, cfg, newMemory(ms, func(r Request) Outcome {
		switch {
		case r.Sequence%3 == 1:
			return Abort // three times, then given up
		case r.Sequence%3 == 2:
			return Error
		}
		return Commit
	}))
	n := c.Counters
	if n.Timeouts != 0 {
		t.Errorf("%d timeouts, want none", n.Timeouts)
	}
	// At both ends of the window, a transaction's attempts may lie on either side.
	if d := n.Aborted - 3*n.GivenUp; d < -12 || d > 12 {
		t.Errorf("%d aborts for %d given up after three attempts", n.Aborted, n.GivenUp)
	}
	if n.Committed == 0 || n.GivenUp == 0 || n.Errors == 0 {
		return fmt.Errorf("committed %d, given up %d, errors %d; want some of each", n.Committed, n.GivenUp, n.Errors)
	}
	if got := strings.Count(log, "Request failed"); got == 0 || got > maxFailuresLogged || !strings.Contains(log, "outcome=error") {
		t.Errorf("%d failures are logged:\n%s", got, log)
	}
	return nil
}

func TestRequestsWithoutReplyEndWithTheDrain(t *testing.T) {
	cfg := closedConfig()
	cfg.Windows.Drain = Duration(50 * ms)
	began := time.Now()
	c, _ := runTest(t, cfg, newMemory(time.Hour, commit))
	if took := time.Since(began); took < 450*ms || took > 20*time.Second {
		t.Errorf("the run took %v, want warm-up, window, cool-down and drain: 450ms", took)
	}
	if n := c.Counters; n.Committed+n.Errors+n.Timeouts != 0 {
		t.Errorf("counters %+v; nothing ended in the window", n)
	}
}

func TestDriverFailureMarksTheResults(t *testing.T) {
	stalltest.Try(t, stall, func() error {
		d := newMemory(ms, commit)
		d.err = errors.New("it died: " + strings.Repeat("x", 2*results.MaxFailureText))
		c, _ := runTest(t, closedConfig(), d)
		if !strings.HasPrefix(c.Failure, "it died: ") {
			t.Errorf("failure %q, want the reason", c.Failure)
		}
		if c.Counters.Committed == 0 {
			return errors.New("nothing was committed; want what was measured")
		}
		return nil
	})
}

func TestRunStopsWithItsContext(t *testing.T) {
	cfg := closedConfig()
	cfg.Windows.Measure = Duration(time.Hour)
	ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
	defer cancel()
	d := newMemory(time.Hour, commit)
	_, err := Run(ctx, cfg, Drivers{Correct: d}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want that of the context", err)
	}
	<-d.closed
}

func TestProgress(t *testing.T) {
	cfg := closedConfig()
	cfg.Windows.Measure = Duration(1300 * ms)
	cfg.Files.Progress = filepath.Join(t.TempDir(), "progress.json")
	stalltest.Try(t, stall, func() error {
		runTest(t, cfg, newMemory(ms, commit))
		b, err := os.ReadFile(cfg.Files.Progress)
		var p protocol.Progress
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		if err != nil || p.Committed == 0 || p.PerSecond == 0 {
			return fmt.Errorf("progress %s (%w), want committed transactions", b, err)
		}
		return nil
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
	stalltest.Try(t, stall, func() error { return startAtBarrier(t) })
}

func startAtBarrier(t *testing.T) error {
	t.Helper()
	dir := t.TempDir()
	cfg := closedConfig()
	cfg.Clients = 1
	cfg.Files = Files{Ready: filepath.Join(dir, "ready"), Start: filepath.Join(dir, "start")}
	d := newMemory(ms, commit)
	var firstAt atomic.Int64
	d.outcome = func(r Request) Outcome {
		if r.Sequence == 0 {
			firstAt.Store(MonotonicNanos())
		}
		return Commit
	}
	var zero atomic.Int64
	go func() {
		for {
			if _, err := os.Stat(cfg.Files.Ready); err == nil {
				break
			}
			time.Sleep(ms)
		}
		zero.Store(MonotonicNanos() + int64(300*ms))
		release(t, cfg.Files.Start, protocol.StartSignal{ZeroMonotonicNanos: zero.Load(),
			Windows: timeline.Windows{WarmUp: 100 * ms, Measure: 200 * ms, Drain: time.Second}})
	}()
	c, _ := runTest(t, cfg, d)
	// It ended 1 ms after it was sent, 100 ms before t = 0.
	if firstAt.Load() == 0 {
		return errors.New("the run was over before the first request")
	}
	lag, started := time.Duration(firstAt.Load()-zero.Load())+100*ms, time.Duration(c.StartedNanos)
	if c.MeasureNanos != int64(200*ms) || started < 0 || lag < ms {
		t.Errorf("window %v, started %v after the release, the first request ended %v after it; want the window of the start file, and 1 ms at least",
			time.Duration(c.MeasureNanos), started, lag)
	}
	if lag > 80*ms || started > 80*ms {
		return fmt.Errorf("started %v after the release, and the first request ended %v after it; want 0s and 1 ms", started, lag)
	}
	return nil
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
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 2 * ms, 30 * ms} {
		stalltest.Try(t, stall, func() error {
			began := time.Now()
			if err := a.sleep(d); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			if took < d {
				t.Errorf("sleep(%v) took %v", d, took)
			}
			if took > d+2*time.Second {
				return fmt.Errorf("sleep(%v) took %v", d, took)
			}
			return nil
		})
	}
	stalltest.Try(t, stall, func() error {
		if now := clockAt(MonotonicNanos() - int64(time.Hour))(); now < time.Hour || now > time.Hour+time.Second {
			return fmt.Errorf("a clock whose zero is an hour ago says %v", now)
		}
		return nil
	})
}
