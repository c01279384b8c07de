package loadgen

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// observed is a request as a driver got it.
type observed struct {
	client int32
	at     time.Duration // relative to t = 0
}

// observer is a driver that records when requests come.
type observer struct {
	zero  time.Time
	takes time.Duration
	mu    sync.Mutex
	seen  []observed
}

func (o *observer) Session(client int32) (Session, error) { return observedSession{o, client}, nil }

func (o *observer) Err() error { return nil }

func (o *observer) Close() (map[string]int64, error) { return nil, nil }

type observedSession struct {
	*observer
	client int32
}

func (s observedSession) Do(Request) Result {
	s.mu.Lock()
	s.seen = append(s.seen, observed{s.client, time.Since(s.zero)})
	s.mu.Unlock()
	time.Sleep(s.takes)
	return Result{Outcome: Commit}
}

// watch runs the load in a bubble and returns the requests that its driver got.
func watch(t *testing.T, cfg Config, takes time.Duration) (results.Client, []observed) {
	t.Helper()
	o := &observer{zero: time.Now().Add(standaloneLead + time.Duration(cfg.Windows.WarmUp)), takes: takes}
	c, _ := runTest(t, cfg, o)
	return c, o.seen
}

// mountain goes up, has a plateau and a silence, and returns at half of the load.
func mountain() []Phase {
	return []Phase{
		{Duration(500 * ms), 0.1, 0.1}, {Duration(1000 * ms), 0.1, 1}, {Duration(300 * ms), 1, 1},
		{Duration(400 * ms), 0, 0}, {Duration(200 * ms), 0.5, 0.5}}
}

// shareAt computes the shape of the mountain in another way, with a case for each part.
func shareAt(at time.Duration) float64 {
	switch {
	case at < 500*ms:
		return 0.1
	case at < 1500*ms:
		return 0.1 + 0.9*float64(at-500*ms)/float64(1000*ms)
	case at < 1800*ms:
		return 1
	case at < 2200*ms:
		return 0
	}
	return 0.5
}

func openConfig(rate float64) Config {
	cfg := closedConfig()
	cfg.Clients, cfg.Loop, cfg.Rate, cfg.Arrivals = 50, LoopOpen, rate, ArrivalsConstant
	cfg.Windows = Windows{WarmUp: Duration(200 * ms), Measure: Duration(2400 * ms), CoolDown: Duration(200 * ms), Drain: Duration(time.Second)}
	return cfg
}

// Requests arrive when the area below the requested shape reaches whole numbers. The test adds up
// the area in steps of a microsecond.
func TestArrivalsFollowThePhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := openConfig(1000)
		cfg.Phases = mountain()
		c, seen := watch(t, cfg, ms)
		var want []time.Duration
		area := 0.0
		for at := -200 * ms; at < 2600*ms; at += time.Microsecond {
			if area >= float64(len(want))-1e-9 && shareAt(at) > 0 {
				want = append(want, at)
			}
			area += 1000 * shareAt(at) / 1e6
		}
		if len(seen) != len(want) {
			t.Fatalf("%d requests arrived, want %d", len(seen), len(want))
		}
		slices.SortFunc(seen, func(a, b observed) int { return int(a.at - b.at) })
		for i := range want {
			// The pacer sleeps for at least 50 us.
			if d := seen[i].at - want[i]; d < -2*time.Microsecond || d > pacerQuantum+2*time.Microsecond {
				t.Fatalf("request %d arrived at %v, want %v", i, seen[i].at, want[i])
			}
		}
		if c.GeneratorLag == "" {
			t.Fatal("the report does not say how late requests were sent")
		}
		// The window has 50 + 550 + 300 + 0 + 100 requests.
		if c.Counters.Offered != 1000 || c.Counters.Committed < 990 {
			t.Errorf("offered %d, committed %d; want 1000, and nearly as many", c.Counters.Offered, c.Counters.Committed)
		}
		bins := c.Timeline.Offered[-c.Timeline.FirstMillis/100:]
		for i, share := range map[int]int64{0: 10, 4: 10, 9: 50, 15: 100, 17: 100, 18: 0, 21: 0, 22: 50} {
			if got := bins[i]; got < share-5 || got > share+5 {
				t.Errorf("the bin at %d ms has %d offered requests, want some %d", i*100, got, share)
			}
		}
	})
}

// Gaps of a Poisson process with a changing rate are exponential once time is measured by the area
// below the shape.
func TestPoissonArrivalsFollowThePhases(t *testing.T) {
	cfg := openConfig(40_000)
	cfg.Arrivals, cfg.Phases = ArrivalsPoisson, mountain()
	p := newPacer(cfg, nil, 200*ms, false)
	area := func(at time.Duration) float64 { // of the whole shape, in closed form
		s := at.Seconds()
		switch {
		case s < 0.5:
			return 0.1 * (s + 0.2)
		case s < 1.5:
			return 0.07 + 0.1*(s-0.5) + 0.45*(s-0.5)*(s-0.5)
		case s < 1.8:
			return 0.62 + (s - 1.5)
		case s < 2.2:
			return 0.92
		}
		return 0.92 + 0.5*(s-2.2)
	}
	var gaps []float64
	last := 0.0
	for {
		at := p.next() - 200*ms
		if at >= 2400*ms {
			break
		}
		if shareAt(at) == 0 {
			t.Fatalf("a request arrives at %v, where there is no load", at)
		}
		now := 40_000 * area(at)
		gaps, last = append(gaps, now-last), now
	}
	slices.Sort(gaps)
	// The Kolmogorov-Smirnov distance from the exponential distribution. The seed is fixed, so the
	// test cannot be flaky. 1.63 / sqrt(n) is the 1% point.
	most := 0.0
	for i, g := range gaps {
		most = max(most, math.Abs(1-math.Exp(-g)-(float64(i)+0.5)/float64(len(gaps))))
	}
	if n := float64(len(gaps)); n < 39_000 || n > 43_000 || most > 1.63/math.Sqrt(n) {
		t.Errorf("%g arrivals, want some 40800; the gaps are %v from exponential, want %v at most", n, most, 1.63/math.Sqrt(n))
	}
}

// With phases, a share of all clients of a closed loop takes part, and each joins at its instant.
func TestClientsFollowThePhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := closedConfig()
		cfg.Clients, cfg.Windows = 10, openConfig(1).Windows
		cfg.Phases = mountain()
		c, seen := watch(t, cfg, 5*ms)
		active := map[int]map[int32]bool{} // in bins of 100 ms
		for _, r := range seen {
			bin := int((r.at + time.Microsecond) / (100 * ms)) // instants are rounded
			if active[bin] == nil {
				active[bin] = map[int32]bool{}
			}
			active[bin][r.client] = true
		}
		for bin := range 24 {
			// Clients that stop do so within a request. On the ramp a client joins every 111 ms.
			at := time.Duration(bin) * 100 * ms
			least, most := math.Floor(10*shareAt(at)+1e-9), math.Floor(10*shareAt(at+99*ms)+1e-9)
			if n := float64(len(active[bin])); n < min(least, most) || n > max(least, most) {
				t.Errorf("in the 100 ms from %v on %g clients send, want %g to %g", at, n, least, most)
			}
		}
		lag, err := results.DecodeHistogram(c.GeneratorLag)
		if err != nil {
			t.Fatal(err)
		}
		// Nine clients join on the ramp, and five after the silence.
		if lag.Count() != 14 || lag.Max() > 2*time.Microsecond {
			t.Errorf("%d clients joined, the latest %v late; want 14, without a lag", lag.Count(), lag.Max())
		}
	})
}

// However clients are distributed over generators, the share of all clients takes part. Each
// generator has its part of that share.
func TestGeneratorsShareThePhases(t *testing.T) {
	generators := []Config{{FirstClient: 0, Clients: 7}, {FirstClient: 7, Clients: 7}, {FirstClient: 14, Clients: 6}}
	for percent := range 101 {
		share, total := float64(percent)/100, 0
		for _, g := range generators {
			g.AllClients = 20
			own := 0
			for k := range g.Clients {
				if g.level(g.FirstClient+k) <= share+rounding {
					own++
				}
			}
			if part := share * float64(g.Clients); math.Abs(float64(own)-part) > 1.7 {
				t.Errorf("at %d%% a generator has %d of its %d clients", percent, own, g.Clients)
			}
			total += own
		}
		if want := int(math.Floor(20*share + 1e-6)); total != want {
			t.Errorf("at %d%% %d clients take part, want %d", percent, total, want)
		}
	}
}

// A run does not end with its load: the rest of the window is silent.
func TestARunLastsAsLongAsItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := openConfig(100)
		cfg.Phases = []Phase{{Duration(300 * ms), 1, 1}, {Duration(100 * ms), 0, 0}}
		began := time.Now()
		c, _ := watch(t, cfg, ms)
		if took := time.Since(began); took < standaloneLead+2600*ms {
			t.Errorf("the run ended after %v, before its window", took)
		}
		if c.Counters.Offered != 30 {
			t.Errorf("offered %d, want 30", c.Counters.Offered)
		}
	})
}

func TestShapeMeetsExactInstants(t *testing.T) {
	s := newShape([]Phase{{Duration(time.Second), 0, 2}, {Duration(time.Second), 0, 0}, {Duration(time.Second), 1, 0}}, 0)
	for work, want := range map[time.Duration]time.Duration{
		0: 0, 250 * ms: 500 * ms, time.Second - 10: time.Second - 5, time.Second: 2 * time.Second, 1375 * ms: 2500 * ms, 1500 * ms: never, time.Hour: never,
	} {
		if got := s.when(work); got != want && (got-want).Abs() > 2 {
			t.Errorf("work of %v is reached at %v, want %v", work, got, want)
		}
	}
	for level, want := range map[float64]time.Duration{0.5: 250 * ms, 2: time.Second, 2.1: never} {
		if got := s.from(0, level); got != want && (got-want).Abs() > 2 {
			t.Errorf("%g is reached at %v, want %v", level, got, want)
		}
	}
	if got := s.from(1500*ms, 0.5); got != 2*time.Second {
		t.Errorf("from 1.5s on, 0.5 is reached at %v, want 2s", got)
	}
}
