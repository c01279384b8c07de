package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// loop is a closed loop of clients, second by second of a window: each transaction takes a random
// time, and counts where it ends in the window. Each client may pause after it for longer than it
// is said to think, and stuck clients never get an answer.
func loop(rng *rand.Rand, clients, stuck int, think, pause, window float64) results.Trial {
	var s results.Summary
	sum := 0.0
	for range clients - stuck {
		for now := -1.0; ; {
			latency := 0.02 * rng.ExpFloat64()
			now += latency
			if now >= window {
				break
			}
			if now >= 0 {
				s.Committed++
				sum += latency
			}
			now += think + pause
		}
	}
	s.MeanMillis, s.P99Millis, s.Throughput = 1000*sum/float64(s.Committed), 1000*0.02*math.Log(100), float64(s.Committed)/window
	return results.Trial{MeasureNanos: int64(window * 1e9), CorrectClients: int32(clients), Summary: s, ClosedLoop: &results.ClosedLoop{ThinkMillis: 1000 * think, TimeoutMillis: 500}}
}

// A transaction of a closed loop that never ended was left out of every number, and nothing said
// so. With one hung client of ten, or with clients that pause without counting it, throughput and
// latency are those of the other clients.
func TestClientTime(t *testing.T) {
	for name, tc := range map[string]struct {
		clients, stuck int
		think, pause   float64
		want           float64
		fits           bool
	}{
		"one client":          {clients: 1, want: 1, fits: true},
		"ten clients":         {clients: 10, want: 1, fits: true},
		"that think":          {clients: 10, think: 0.03, want: 1, fits: true},
		"one of them hangs":   {clients: 10, stuck: 1, want: 0.9},
		"they pause for 2 ms": {clients: 10, pause: 0.002, want: 20.0 / 22},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				trial := loop(rand.New(rand.NewPCG(seed, 14)), tc.clients, tc.stuck, tc.think, tc.pause, 10)
				share := stats.ClientTime(trial)
				if share == nil || math.Abs(*share-tc.want) > 0.015 {
					t.Fatalf("seed %d: share %v, want %.3f", seed, share, tc.want)
				}
				line := results.TrialLine{ClientTimeShare: share, Committed: trial.Summary.Committed, Throughput: trial.Summary.Throughput, P99Millis: trial.Summary.P99Millis, CorrectClients: trial.CorrectClients}
				if fits := stats.ClientTimeFits(line); fits != tc.fits {
					t.Errorf("seed %d: %.4f fits: %t", seed, *share, fits)
				}
			}
		})
	}
	// Each timeout took 500 ms of a client; with none of them counted, half of the time is missing.
	trial := results.Trial{MeasureNanos: 10e9, CorrectClients: 2, ClosedLoop: &results.ClosedLoop{TimeoutMillis: 500},
		Summary: results.Summary{Counters: results.Counters{Committed: 1000, Timeouts: 20}, MeanMillis: 10, P99Millis: 10, Throughput: 100}}
	if share := stats.ClientTime(trial); share == nil || math.Abs(*share-1) > 1e-9 {
		t.Errorf("with timeouts %v, want 1", share)
	}
	// The driver gives up before the timeout. With whole timeouts, the shipped bundle of a primary
	// that crashes had 133% of its clients' time.
	for name, tc := range map[string]struct {
		timeouts int64
		millis   float64
		want     float64
	}{
		"as long as the rest allows": {timeouts: 8, millis: 10_000, want: 1},
		"less than is missing":       {timeouts: 2, millis: 500, want: 0.55},
		"nothing is left for them":   {timeouts: 8, millis: 10_000, want: 1.2},
	} {
		early := trial
		early.ClosedLoop = &results.ClosedLoop{TimeoutMillis: tc.millis}
		early.Summary.Timeouts = tc.timeouts
		if tc.want > 1 {
			early.Summary.MeanMillis = 24
		}
		if share := stats.ClientTime(early); share == nil || math.Abs(*share-tc.want) > 1e-9 {
			t.Errorf("timeouts %s: %v, want %g", name, *share, tc.want)
		}
	}
	// Clients think for 2 ms after commits, failures and giving up: 10 s and 1,300 times 2 ms,
	// of 20 s.
	thinking := trial
	thinking.ClosedLoop = &results.ClosedLoop{ThinkMillis: 2}
	thinking.Summary.Counters = results.Counters{Committed: 1000, Errors: 200, GivenUp: 100}
	if share := stats.ClientTime(thinking); share == nil || math.Abs(*share-0.63) > 1e-9 {
		t.Errorf("clients that think after failures: %v, want 0.63", *share)
	}
	// The bound of 3% and of 22% at the edges is part of what fits.
	for share, fits := range map[float64]bool{0.75: true, 1.25: true, 0.749: false} {
		if got := stats.ClientTimeFits(results.TrialLine{ClientTimeShare: &share, P99Millis: 110, Throughput: 1, Committed: 1, CorrectClients: 1}); got != fits {
			t.Errorf("a share of %g fits: %t", share, got)
		}
	}
	// If the law does not apply, there is no result.
	for name, change := range map[string]func(*results.Trial){
		"an open loop":        func(t *results.Trial) { t.ClosedLoop = nil },
		"of the whole run":    func(t *results.Trial) { t.Summary.RunSummary = true },
		"nothing committed":   func(t *results.Trial) { t.Summary.Committed = 0 },
		"clients are unknown": func(t *results.Trial) { t.CorrectClients = 0 },
	} {
		without := trial
		change(&without)
		if share := stats.ClientTime(without); share != nil {
			t.Errorf("%s: %g", name, *share)
		}
	}
	if !stats.ClientTimeFits(results.TrialLine{}) {
		t.Error("what is not known does not fit")
	}
}

func TestClientBusy(t *testing.T) {
	pod := func(client bool, cores, limit, busy float64) results.Pod {
		p := results.Pod{Resources: &results.Resources{Seconds: 10, Containers: []results.ContainerUse{{CPUMeanCores: cores, LimitCores: limit}}, Node: results.NodeUse{BusyShare: busy}}}
		if client {
			p.ClientRun = &results.ClientRun{}
		}
		return p
	}
	for name, tc := range map[string]struct {
		pods []results.Pod
		want float64 // below 0: not known
	}{
		"its limit":         {[]results.Pod{pod(true, 0.5, 1, 0.1), pod(true, 1.9, 2, 0.2)}, 0.95},
		"its node":          {[]results.Pod{pod(true, 0.5, 0, 0.97)}, 0.97},
		"a replica":         {[]results.Pod{pod(false, 2, 2, 1), pod(true, 0.1, 0, 0.3)}, 0.3},
		"without resources": {[]results.Pod{{ClientRun: &results.ClientRun{}}}, -1},
	} {
		got := stats.ClientBusy(results.Trial{Pods: tc.pods})
		if (got == nil) != (tc.want < 0) || got != nil && math.Abs(*got-tc.want) > 1e-9 {
			t.Errorf("%s: %v, want %g", name, got, tc.want)
		}
	}
}

func TestTheShareOfRequestsThatFailed(t *testing.T) {
	tests := map[string]struct {
		line  results.TrialLine
		share float64
		known bool
	}{
		"nothing ended":             {line: results.TrialLine{}},
		"one request, which failed": {line: results.TrialLine{Errors: 1}, share: 1, known: true},
		"one in four":               {line: results.TrialLine{Committed: 3, Timeouts: 1}, share: 0.25, known: true},
		"never sent":                {line: results.TrialLine{Committed: 2, Errors: 1, Unsent: 1}, share: 0.5, known: true},
		"failures are not reported": {line: results.TrialLine{Committed: 3, Unreported: []string{results.CounterErrors, results.CounterTimeouts}}},
		"timeouts alone are not":    {line: results.TrialLine{Committed: 3, Errors: 1, Unreported: []string{results.CounterTimeouts}}, share: 0.25, known: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if share, known := stats.FailedShare(tc.line); share != tc.share || known != tc.known {
				t.Errorf("share %v, known %t; want %v, %t", share, known, tc.share, tc.known)
			}
		})
	}
}
