package testseries

import (
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// jumping is a trial of ten seconds. Its latency rises from about 4.5 ms by 5 ms after 5 s, and its
// machine stalls from 7.2 s to 9 s.
func jumping() results.Trial {
	r := results.Trial{Name: "jumping", Timeline: &results.Timeline{IntervalMillis: results.TimelineInterval.Milliseconds()}}
	for at := time.Duration(0); at < 10*time.Second; at += results.TimelineInterval {
		latency := 4000 + 500*int64(len(r.Timeline.Committed)%3)
		switch {
		case at >= 7200*time.Millisecond && at < 9*time.Second:
			latency = 40000
		case at >= 5*time.Second:
			latency += 5000
		}
		r.Timeline.Committed = append(r.Timeline.Committed, 7)
		r.Timeline.LatencySumMicros = append(r.Timeline.LatencySumMicros, 7*latency)
	}
	return r
}

func TestJumpIsFoundThoughTheMachineStallsAfterIt(t *testing.T) {
	r := jumping()
	before := LowLatency(r, 0, 4500*time.Millisecond)
	if jump := Jump(r, time.Second, 9*time.Second, before+6); jump != 5*time.Second {
		t.Errorf("the latency jumps at %s, want 5s", jump)
	}
}

func TestLowLatencyComesFromTheSystem(t *testing.T) {
	r := jumping()
	for name, tc := range map[string]struct {
		from, to time.Duration
		want     float64
	}{
		"before":           {0, 5 * time.Second, 4},
		"half of a stall":  {6 * time.Second, 8 * time.Second, 9.5},
		"only the stall":   {7500 * time.Millisecond, 8500 * time.Millisecond, 40},
		"after the trial":  {11 * time.Second, 12 * time.Second, 0},
		"an empty instant": {time.Second, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LowLatency(r, tc.from, tc.to); got != tc.want {
				t.Errorf("LowLatency = %v ms, want %v", got, tc.want)
			}
		})
	}
}

func TestRates(t *testing.T) {
	r := jumping()
	if got := Committed(r, time.Second, 2*time.Second); got != 70 {
		t.Errorf("Committed = %d in a second of 7 per bin, want 70", got)
	}
	if got := UsuallyCommitted(r, time.Second, 4*time.Second); got != 35 {
		t.Errorf("UsuallyCommitted = %v in half a second, want 35", got)
	}
	if got := MeanLatency(r, 0, 300*time.Millisecond); got != 4.5 {
		t.Errorf("MeanLatency = %v ms, want 4.5", got)
	}
}

func TestQuantile(t *testing.T) {
	h := results.NewHistogram()
	for ms := 1; ms <= 100; ms++ {
		h.Record(time.Duration(ms) * time.Millisecond)
	}
	text, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Quantile(results.Trial{Latency: text}, 10); err != nil || got < 10 || got > 10.1 {
		t.Errorf("Quantile = %v, %v; want 10 ms", got, err)
	}
	if _, err := Quantile(results.Trial{Name: "empty"}, 10); err == nil {
		t.Error("a trial without latencies has a quantile")
	}
}
