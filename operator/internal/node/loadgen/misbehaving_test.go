package loadgen

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

// indexed is a driver that notes the clients of its sessions.
type indexed struct {
	*memory
	mu      sync.Mutex
	clients []int32
}

func (d *indexed) Session(client int32) (Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients = append(d.clients, client)
	return d.memory.Session(client)
}

func (d *indexed) Close() (map[string]int64, error) {
	slices.Sort(d.clients)
	return d.memory.Close()
}

// misbehavingConfig has five clients, 10 to 14, of which 11 and 14 misbehave.
func misbehavingConfig() Config {
	cfg := closedConfig()
	cfg.FirstClient, cfg.Clients = 10, 5
	cfg.Misbehaving = &Misbehaving{Clients: []int32{11, 14}, Driver: cfg.Driver}
	return cfg
}

// runBoth runs in a bubble.
func runBoth(t *testing.T, cfg Config, correct, misbehaving *memory) (results.Client, string, [2][]int32) {
	t.Helper()
	var log strings.Builder
	a, b := &indexed{memory: correct}, &indexed{memory: misbehaving}
	c, err := runBy(context.Background(), virtual(), cfg, Drivers{Correct: a, Misbehaving: b}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := results.EncodeClient(c); err != nil {
		t.Fatalf("the results cannot be encoded: %v", err)
	}
	return c, log.String(), [2][]int32{a.clients, b.clients}
}

// Requests of clients that misbehave are in no counter and no timeline, however they end.
func TestMisbehavingClientsAreNotMeasured(t *testing.T) {
	every := func(r Request) Outcome { return Outcome(r.Sequence % 4) }
	for name, tc := range map[string]struct {
		change func(*Config)
		want   int64 // committed
	}{
		"closed": {func(*Config) {}, 180},                                                                // of three clients at 5 ms each
		"open":   {func(c *Config) { c.Loop, c.Rate, c.Arrivals = LoopOpen, 500, ArrivalsConstant }, 90}, // three fifths of 150
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := misbehavingConfig()
				tc.change(&cfg)
				c, log, clients := runBoth(t, cfg, newMemory(5*ms, commit), newMemory(ms, every))
				checkMeasured(t, c, log, clients, tc.want)
			})
		})
	}
}

// checkMeasured checks that three of five clients are measured, and that they commit all their
// requests.
func checkMeasured(t *testing.T, c results.Client, log string, clients [2][]int32, want int64) {
	t.Helper()
	if diff := cmp.Diff([2][]int32{{10, 12, 13}, {11, 14}}, clients); diff != "" {
		t.Errorf("clients of the two drivers (-want +got):\n%s", diff)
	}
	n := c.Counters
	if n.Aborted+n.GivenUp+n.Errors+n.Timeouts+n.Retries != 0 {
		t.Errorf("counters %+v; those that are measured commit everything", n)
	}
	if len(c.Timeline.Committed) == 0 {
		t.Error("there is no timeline")
	}
	for i := range c.Timeline.Committed {
		if c.Timeline.Aborted[i]+c.Timeline.Failed[i] != 0 {
			t.Errorf("bin %d: %d aborts and %d failures; those that are measured have none", i, c.Timeline.Aborted[i], c.Timeline.Failed[i])
		}
	}
	if s := summary(t, c); s.P50Millis < 5 || s.P50Millis > 5.01 || s.Committed != want {
		t.Errorf("p50 %v ms, %d committed; want 5 ms and %d", s.P50Millis, s.Committed, want)
	}
	if c.Clients != 5 || c.MisbehavingClients != 2 || c.MisbehavingDriver["requests"] != 1 || c.Failure != "" {
		t.Errorf("%d clients, %d of them misbehaving, their driver's counters %v, failure %q", c.Clients, c.MisbehavingClients, c.MisbehavingDriver, c.Failure)
	}
	if c.MisbehavingCounters == nil {
		t.Error("nothing says what became of the requests of clients that misbehave")
	}
	if strings.Contains(log, "Request failed") {
		t.Errorf("failures on purpose are logged:\n%s", log)
	}
	m, err := results.Merge([]results.Client{c})
	if err != nil {
		t.Fatal(err)
	}
	if m.Clients != 5 || m.CorrectClients != 3 || m.Driver["requests"] != 1 || m.MisbehavingDriver["requests"] != 1 {
		t.Errorf("merged: %d clients, %d correct, drivers %v and %v", m.Clients, m.CorrectClients, m.Driver, m.MisbehavingDriver)
	}
}

// Misbehaving clients of an open loop never end a request. They delay no request of the other
// clients: of every five arrivals three are offered.
func TestMisbehavingClientsTakeTheirShareOfArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := misbehavingConfig()
		cfg.Loop, cfg.Rate, cfg.Arrivals = LoopOpen, 1000, ArrivalsConstant
		cfg.Windows.Drain = Duration(50 * ms)
		c, _, _ := runBoth(t, cfg, newMemory(0, commit), newMemory(time.Hour, commit))
		lag, err := results.DecodeHistogram(c.SendLag)
		if err != nil {
			t.Fatal(err)
		}
		if n := c.Counters; n.Offered != 180 || lag.Count() != n.Offered-n.Unsent {
			t.Errorf("offered %d, unsent %d, %d send lags; want three fifths of the 300 that were intended in the window, one lag for each that was sent",
				n.Offered, n.Unsent, lag.Count())
		}
	})
}

// The arrivals of both kinds of clients together equal those of a generator whose clients all
// behave.
func TestSharesOfArrivals(t *testing.T) {
	for _, arrivals := range []string{ArrivalsConstant, ArrivalsPoisson} {
		t.Run(arrivals, func(t *testing.T) {
			cfg := misbehavingConfig()
			cfg.Rate, cfg.Arrivals, cfg.Index = 1000, arrivals, 3
			first := func(p pacer, n int) (out []time.Duration) {
				for range n {
					out = append(out, p.next())
				}
				return out
			}
			none := cfg
			none.Misbehaving = nil
			all := first(newPacer(none, nil, 0, false), 10_000)
			part := func(misbehaving bool) []time.Duration {
				got := first(newPacer(cfg, nil, 0, misbehaving), 9_000)
				after, _ := slices.BinarySearch(got, all[len(all)-1]+1)
				return got[:after]
			}
			correct, others := part(false), part(true)
			if diff := cmp.Diff(correct, part(false)); diff != "" {
				t.Error("the same seed and index give other arrivals")
			}
			// With random shares the number has a standard deviation of 49; the seed is fixed.
			if n, spread := len(others), map[string]int{ArrivalsConstant: 0, ArrivalsPoisson: 150}[arrivals]; n < 4000-spread || n > 4000+spread {
				t.Errorf("%d of 10000 arrivals fall to two of five clients", n)
			}
			both := slices.Sorted(slices.Values(slices.Concat(correct, others)))
			if diff := cmp.Diff(all, both); diff != "" {
				t.Errorf("arrivals of both kinds are not those of all (-want +got):\n%.500s", diff)
			}
		})
	}
}

// A measured client draws the same waits whether or not others misbehave.
func TestMisbehavingClientsChangeNoRandomNumbers(t *testing.T) {
	open := func(cfg Config, d Drivers) *run {
		t.Helper()
		r := &run{cfg: cfg, drivers: d}
		if err := r.openSessions(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	some := misbehavingConfig()
	none := some
	none.Misbehaving = nil
	with := open(some, Drivers{Correct: newMemory(0, commit), Misbehaving: newMemory(0, commit)})
	without := open(none, Drivers{Correct: newMemory(0, commit)})
	for i, c := range with.clients {
		if a, b := c.rng.Uint64(), without.clients[i].rng.Uint64(); a != b {
			t.Errorf("client %d draws %d, and %d when nobody misbehaves", i, a, b)
		}
		if (c.shard == with.apart) != c.misbehaves || slices.Contains(with.shards, with.apart) {
			t.Errorf("client %d, which misbehaves: %v, is recorded with the wrong ones", i, c.misbehaves)
		}
	}
}

// Without the misbehaving clients, the system was measured under less load than requested. After
// the window nothing is measured any more.
func TestDeathOfTheMisbehavingDriver(t *testing.T) {
	died := errors.New("it died")
	t.Run("before the window's end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(ms, func(Request) Outcome { return Error })
			d.died.Store(&died) // without a barrier no client checks before the start
			c, _, _ := runBoth(t, misbehavingConfig(), newMemory(ms, commit), d)
			if want := "the clients that misbehave on purpose were missing: it died"; c.Failure != want {
				t.Errorf("failure %q, want %q", c.Failure, want)
			}
			if c.Counters.Committed != 900 {
				t.Errorf("%d committed, want the 900 of three clients", c.Counters.Committed)
			}
		})
	})
	t.Run("at the end of the run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(ms, commit)
			d.err = died
			c, log, _ := runBoth(t, misbehavingConfig(), newMemory(ms, commit), d)
			if c.Failure != "" || !strings.Contains(log, "it died") {
				t.Errorf("failure %q, want none; log:\n%s", c.Failure, log)
			}
		})
	})
	t.Run("before the start", func(t *testing.T) {
		cfg := misbehavingConfig()
		cfg.Files.Start = filepath.Join(t.TempDir(), "start")
		a, b := newMemory(ms, commit), newMemory(ms, commit)
		b.died.Store(&died)
		_, err := Run(context.Background(), cfg, Drivers{Correct: a, Misbehaving: b}, slog.New(slog.DiscardHandler))
		if !errors.Is(err, died) {
			t.Errorf("error = %v, want that of the driver", err)
		}
		<-a.closed
		<-b.closed
	})
}

// All clients of a pod may misbehave. Then the pod measures nothing and reports when it started.
func TestAllClientsOfAPodMisbehave(t *testing.T) {
	for name, loop := range map[string]string{"closed": LoopClosed, "open": LoopOpen} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := misbehavingConfig()
				cfg.Misbehaving.Clients = []int32{10, 11, 12, 13, 14}
				if cfg.Loop = loop; loop == LoopOpen {
					cfg.Rate, cfg.Arrivals = 1000, ArrivalsConstant
				}
				c, _, _ := runBoth(t, cfg, newMemory(ms, commit), newMemory(ms, commit))
				if c.Counters != (results.Counters{}) {
					t.Errorf("counters %+v, want none", c.Counters)
				}
				// Without a first request, it would be exactly the warm-up later.
				if started := time.Duration(c.StartedNanos); started < 0 || started > ms {
					t.Errorf("started %v after the release, want 0s, or the first arrival", started)
				}
			})
		})
	}
}

func TestMisbehavingClientsNeedTheirDriver(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg Config
		d   Drivers
	}{
		"no driver":  {misbehavingConfig(), Drivers{Correct: newMemory(ms, commit)}},
		"no clients": {closedConfig(), Drivers{Correct: newMemory(ms, commit), Misbehaving: newMemory(ms, commit)}},
	} {
		if _, err := Run(context.Background(), tc.cfg, tc.d, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "need a driver for them") {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}
