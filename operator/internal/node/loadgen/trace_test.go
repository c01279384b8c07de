package loadgen

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// writeTrace writes lines to a file.
func writeTrace(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func traceConfig(path string) Config {
	cfg := openConfig(0)
	cfg.Arrivals, cfg.Trace = "", &Trace{File: path, Speed: 1}
	return cfg
}

// Three generators together replay a trace with bursts and gaps, each arrival once. They begin at
// its instant 10 s and replay at twice its speed.
func TestATraceIsReplayed(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	lines, want := []string{"# seconds,user"}, []time.Duration{}
	for at := 9.0; at < 16; at += rng.ExpFloat64() / 100 {
		for range 1 + rng.IntN(4) { // bursts
			lines = append(lines, fmt.Sprintf("%.6f,u%d", at, rng.IntN(9)))
			if zero := time.Duration((at - 10) / 2 * 1e9); zero >= -200*ms && zero < 2600*ms {
				want = append(want, zero)
			}
		}
	}
	path := writeTrace(t, lines...)
	var seen []time.Duration
	for i, clients := range []int32{50, 30, 20} {
		synctest.Test(t, func(t *testing.T) {
			cfg := traceConfig(path)
			cfg.Trace.Begin, cfg.Trace.Speed = Duration(10*time.Second), 2
			cfg.Index, cfg.FirstClient, cfg.Clients, cfg.AllClients = int32(i), []int32{0, 50, 80}[i], clients, 100
			_, requests := watch(t, cfg, ms)
			if part := float64(len(requests)) / float64(len(want)); part < float64(clients)/100-0.05 || part > float64(clients)/100+0.05 {
				t.Errorf("generator %d replays %.2f of the trace for %d of 100 clients", i, part, clients)
			}
			for _, r := range requests {
				seen = append(seen, r.at)
			}
		})
	}
	slices.Sort(seen)
	if len(seen) != len(want) {
		t.Fatalf("%d arrivals are replayed, want the %d between the load's beginning and its end", len(seen), len(want))
	}
	for i := range want {
		if late := seen[i] - want[i]; late < -time.Microsecond || late > 2*pacerQuantum {
			t.Fatalf("arrival %d is replayed at %v, want %v", i, seen[i], want[i])
		}
	}
}

func TestWrongTracesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"words":         {[]string{"# time", "0.5", "soon"}, `line 3: "soon" is no instant in seconds`},
		"a header":      {[]string{"time,user", "0.5,a"}, "a line of names begins with #"},
		"before others": {[]string{"0.5", "", "0.4"}, "line 3: 0.4 comes after 0.5; arrivals must ascend"},
		"negative":      {[]string{"-1"}, "line 1"},
		"no number":     {[]string{"NaN"}, "line 1"},
		"too short":     {[]string{"0.1", "2.3"}, "ends 2.3s after t = 0, and the window lasts 2.4s"},
		"too late":      {[]string{"2.4"}, "has no arrival in the window"},
		"empty":         {nil, "has no arrival in the window"},
		"long line":     {[]string{strings.Repeat("1", 100_000)}, "line 1: bufio.Scanner: token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := traceConfig(writeTrace(t, tc.lines...)).arrivals()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := traceConfig("/nowhere").arrivals(); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("a trace that is not there: %v", err)
	}
}

// A trace covers the window if its last arrival is at the window's end. Lines may have more
// columns.
func TestATraceMayEndWithTheWindow(t *testing.T) {
	got, err := traceConfig(writeTrace(t, "0.5;a b", "1 x", "2.4")).arrivals()
	if want := []time.Duration{500 * ms, time.Second, 2400 * ms}; err != nil || !slices.Equal(got, want) {
		t.Errorf("arrivals %v, error %v; want %v", got, err, want)
	}
}

// Each user of a semi-open loop sends the requests of a session one after the other.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := openConfig(100)
		cfg.Session, cfg.ThinkTime = &UserSession{Requests: 5, Length: LengthFixed}, Duration(10*ms)
		c, seen := watch(t, cfg, 5*ms)
		// A session begins every 50 ms, and sends a request every 15 ms.
		var want []time.Duration
		for begin := -200 * ms; begin < 2600*ms; begin += 50 * ms {
			for at := begin; at < min(begin+75*ms, 2600*ms); at += 15 * ms {
				want = append(want, at)
			}
		}
		slices.Sort(want)
		slices.SortFunc(seen, func(a, b observed) int { return int(a.at - b.at) })
		if len(seen) != len(want) {
			t.Fatalf("%d requests, want %d", len(seen), len(want))
		}
		for i := range want {
			if late := seen[i].at - want[i]; late < -time.Microsecond || late > 2*pacerQuantum {
				t.Fatalf("request %d is sent at %v, want %v", i, seen[i].at, want[i])
			}
		}
		// 48 sessions begin in the window. The last of them has one request after the window, and
		// one earlier session has one request in it.
		if n := c.Counters.Offered; n != 240 {
			t.Errorf("offered %d, want 240", n)
		}
		offered := int64(0)
		for i, n := range c.Timeline.Offered {
			if at := c.Timeline.FirstMillis + 100*int64(i); at >= 0 && at < 2400 {
				offered += n
			}
		}
		if offered != c.Counters.Offered {
			t.Errorf("the timeline has %d offered requests, the counters %d", offered, c.Counters.Offered)
		}
	})
}

// A session for which no client is free counts all its requests as never sent.
func TestUnsentSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := openConfig(100)
		cfg.Clients, cfg.Timeout = 1, Duration(20*ms)
		cfg.Session = &UserSession{Requests: 10, Length: LengthFixed}
		c, _ := watch(t, cfg, 15*ms) // a session takes 150 ms, and one arrives every 100 ms
		if n := c.Counters; n.Unsent == 0 || n.Unsent%10 != 0 || n.Offered-n.Unsent < n.Committed-10 {
			t.Errorf("offered %d, unsent %d, committed %d; want whole sessions of 10 unsent", n.Offered, n.Unsent, n.Committed)
		}
	})
}

func TestGeometricSessions(t *testing.T) {
	c := &client{run: &run{cfg: Config{Session: &UserSession{Requests: 4, Length: LengthGeometric}}}, rng: rand.New(rand.NewPCG(1, 2))}
	const draws = 200_000
	sum, ones := 0.0, 0.0
	for range draws {
		n := c.requests()
		sum += float64(n)
		if n == 1 {
			ones++
		}
	}
	// With so many draws, one sigma of the mean is 0.8% (3.5 divided by the root), and one sigma of
	// the share 0.4%.
	if mean := sum / draws; mean < 3.97 || mean > 4.03 {
		t.Errorf("a session has %v requests in the mean, want 4", mean)
	}
	if share := ones / draws; share < 0.246 || share > 0.254 {
		t.Errorf("%v of sessions have one request, want a quarter", share)
	}
}
